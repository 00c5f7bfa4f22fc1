/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Snapshots by the methods that need no map, and the last boot's trace by them, where memory or
 * disk space is short. Pipes stand in for the ring buffers: what is read out of them is gone. With
 * a kernel: tests/integration/test-flight-drain.sh, tests/vm/scenarios/flight-methods.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cmocka.h>

#include "basic/io.h"
#include "engine/boot-trace.h"
#include "engine/flight-internal.h"
#include "tests/unit/fake-instance.h"

#define SUBBUF	  4096U
#define N_SUBBUFS 8U
#define BOOT_NOW  "11111111111111111111111111111111"
#define BOOT_THEN "00000000000000000000000000000002"

static const char freed[] = "# tracer: nop\n#\n#\n# * Snapshot is freed *\n#\n";
static const char allocated[] = "# tracer: nop\n#\n#\n# * Snapshot is allocated *\n#\n";

/* What the machine has left; NULL, UINT64_MAX: as it is */
static const char *meminfo;
static uint64_t disk = UINT64_MAX;

int __real_io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size);
int __wrap_io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size);
int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);
int __real_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs(int fd, struct statvfs *ret);

int __wrap_io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size)
{
	if (!meminfo || strcmp(path, "/proc/meminfo") != 0)
		return __real_io_read_file_at(dir_fd, path, ret_data, ret_size);
	*ret_data = strdup(meminfo);
	return *ret_data ? 0 : -ENOMEM;
}

/* Nothing is given back: good enough for one snapshot */
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
	if (disk == UINT64_MAX)
		return __real_fallocate(fd, mode, offset, size);
	if ((uint64_t)size > disk) {
		errno = ENOSPC;
		return -1;
	}
	disk -= (uint64_t)size;
	return 0;
}

int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
	if (disk == UINT64_MAX)
		return __real_fstatvfs(fd, ret);
	*ret = (struct statvfs){.f_frsize = 1, .f_bavail = disk, .f_blocks = 2 * disk};
	return 0;
}

struct rings {
	struct tmp tmp;
	struct trace_config config;
	int live, spare; /* of CPU 0 */
};

/* @first: timestamp; the others follow it */
static int put_ring(struct rings *r, const char *name, uint64_t first)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	assert_true(asprintf(&path, "%s/" FAKE_INSTANCE "per_cpu/cpu0/%s", r->tmp.path, name) > 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	for (uint64_t t = first; t < first + N_SUBBUFS; t++) {
		char bytes[SUBBUF] = {0};
		unsigned long commit = 8;

		memcpy(bytes, &t, sizeof(t));
		memcpy(bytes + sizeof(t), &commit, sizeof(commit));
		assert_int_equal(io_write_all(fd, bytes, sizeof(bytes)), 0);
	}
	return fd;
}

static unsigned left_in(int ring)
{
	int n = 0;

	assert_int_equal(ioctl(ring, FIONREAD, &n), 0);
	return (unsigned)n / SUBBUF;
}

static void begin(struct rings *r, const char *info)
{
	*r = (struct rings){.config = {.clock = (char *)"local", .persistent = !!info}};
	tmp_init(&r->tmp);
	fake_instance_put(&r->tmp, info);
	tmp_write(&r->tmp, FAKE_INSTANCE "buffer_size_kb", "64\n");
	tmp_write(&r->tmp, FAKE_INSTANCE "per_cpu/cpu0/stats", "entries: 7\n");
	r->live = put_ring(r, "trace_pipe_raw", 200);
	r->spare = -EBADF;
	meminfo = NULL;
	disk = UINT64_MAX;
}

static void end(struct rings *r)
{
	close(r->live);
	if (r->spare >= 0)
		close(r->spare);
	fake_instance_drop(&r->tmp);
}

/* A kernel that can swap; @snapshot: what its file says, NULL: every write to it fails */
static void begin_swap(struct rings *r, const char *snapshot)
{
	begin(r, NULL);
	r->spare = put_ring(r, "snapshot_raw", 100);
	if (snapshot)
		tmp_write(&r->tmp, FAKE_INSTANCE "snapshot", snapshot);
	else
		assert_int_equal(symlinkat("/dev/full", r->tmp.fd, FAKE_INSTANCE "snapshot"), 0);
}

static struct instance *attach(struct rings *r)
{
	struct instance *instance = NULL;
	struct fault why;

	assert_int_equal(
		instance_attach(FAKE_INSTANCE_NAME, "flyrec_oom", &r->config, &instance, &why), 0);
	return instance;
}

static struct flight_params params_of(struct rings *r, struct instance *instance,
				      const char *method)
{
	return (struct flight_params){
		.instance = instance,
		.dir_fd = r->tmp.fd,
		.method = method,
		.memory = MIB,
		.buffer_size = 64 * KIB,
		.threads = 1,
	};
}

static void assert_snapshot(struct rings *r, char first)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(io_read_file_at(r->tmp.fd, FAKE_INSTANCE "snapshot", &text, NULL), 0);
	assert_int_equal(text[0], first);
}

/* --- swap */

static const char *start(struct rings *r, const char *method, int expected, struct fault *why)
{
	_cleanup_(instance_freep) struct instance *instance = attach(r);
	_cleanup_(flight_freep) struct flight *flight = NULL;
	const struct flight_params params = params_of(r, instance, method);

	assert_int_equal(flight_new(&params, &flight, why), expected);
	return flight ? flight_method_name(flight) : "";
}

static void test_spare_at_start(void **state)
{
	struct fault why = {0};
	struct rings r;

	begin_swap(&r, freed);
	assert_string_equal(start(&r, "auto", 0, &why), "swap");
	assert_snapshot(&r, '1');
	end(&r);
	/* Left by an earlier process: a swap would only move what is in the ring buffer */
	begin_swap(&r, allocated);
	assert_string_equal(start(&r, "swap", 0, &why), "swap");
	assert_snapshot(&r, '#');
	end(&r);
	/* A mapped or drained ring buffer needs none */
	begin_swap(&r, freed);
	assert_string_equal(start(&r, "drain", 0, &why), "drain");
	assert_snapshot(&r, '#');
	end(&r);
}

static void test_spare_without_memory(void **state)
{
	struct fault why = {0};
	struct rings r;

	/* There is one; two would be more than half */
	begin_swap(&r, freed);
	meminfo = "MemTotal: 1000 kB\nMemAvailable: 191 kB\n";
	assert_string_equal(start(&r, "auto", FLIGHT_SECOND_BEST, &why), "drain");
	assert_non_null(strstr(why.text, "which method swap has twice"));
	assert_string_equal(start(&r, "swap", -ENOMEM, &why), "");
	assert_non_null(strstr(why.text, "Method=swap: BufferSize=64K"));
	assert_snapshot(&r, '#');
	end(&r);
	begin_swap(&r, freed);
	meminfo = "MemTotal: 100000 kB\nMemAvailable: 99999 kB\n";
	assert_string_equal(start(&r, "auto", 0, &why), "swap");
	end(&r);
}

/* It takes as much memory as the first one */
static void test_spare_given_back(void **state)
{
	_cleanup_(flight_freep) struct flight *flight = NULL;
	struct instance *instance;
	struct flight_params params;
	struct fault why;
	struct rings r;

	begin_swap(&r, allocated);
	instance = attach(&r);
	params = params_of(&r, instance, "swap");
	assert_int_equal(flight_new(&params, &flight, &why), 0);
	params.method = "swap"; /* again: nothing changes */
	assert_int_equal(flight_change(flight, &params, &why), 0);
	assert_snapshot(&r, allocated[0]);
	params.method = "drain";
	assert_int_equal(flight_change(flight, &params, &why), 0);
	assert_string_equal(flight_method_name(flight), "drain");
	assert_snapshot(&r, '0');
	instance_free(instance);
	end(&r);
}

/* The spare one first, if it was still there, then the live one: nothing is lost over it */
static void test_swap_fails(void **state)
{
	struct instance *instance;
	struct flight_params params;
	struct flight *flight;
	struct fault why;
	struct rings r;
	size_t n;

	begin_swap(&r, NULL);
	instance = attach(&r);
	params = params_of(&r, instance, "auto");
	assert_int_equal(flight_new(&params, &flight, &why), 0);
	assert_string_equal(flight_method_name(flight), "swap");
	assert_int_equal(flight_capture(flight, 0, UINT64_MAX, &why), -ENOSPC);
	assert_non_null(strstr(why.text, "cannot swap the ring buffer"));
	assert_true(flight_fall_back(flight, -ENOSPC));
	assert_string_equal(flight_method_name(flight), "drain");
	assert_int_equal(flight_capture(flight, 0, UINT64_MAX, &why), 0);
	assert_int_equal(carry_list(flight->carry, 0, &n)[0].timestamp, 100);
	assert_int_equal(n, 2 * N_SUBBUFS);
	assert_false(flight_fall_back(flight, -ENOSPC));
	flight_free(flight);

	/* Whoever asked for swap gets that or an error */
	params.method = "swap";
	assert_int_equal(flight_new(&params, &flight, &why), 0);
	assert_int_equal(flight_capture(flight, 0, UINT64_MAX, &why), -ENOSPC);
	assert_false(flight_fall_back(flight, -ENOSPC));
	flight_free(flight);
	instance_free(instance);
	end(&r);
}

/* --- the trace of the last boot */

static int save(struct rings *r, bool *ret_taken, struct fault *why)
{
	struct symbols *symbols = symbols_new_of(strdup("ffffffff81000000 T _text\n"));
	const struct boot_trace_params params = {
		.session = "oom",
		.instance = FAKE_INSTANCE_NAME,
		.group = "flyrec_oom",
		.trace = &r->config,
		.boot_id = BOOT_NOW,
		.dir_fd = r->tmp.fd,
		.tracing_fd = r->tmp.fd,
		.symbols = symbols,
		.memory = MIB,
	};
	struct boot_trace *trace = NULL;
	int result;

	assert_int_equal(boot_trace_find(&params, &trace, why), BOOT_TRACE_HERE);
	result = boot_trace_save(trace, why);
	*ret_taken = boot_trace_is_taken(trace);
	boot_trace_free(trace);
	symbols_free(symbols);
	return result;
}

static void test_boot_trace_room(void **state)
{
	struct trace_file_params file_params;
	struct fault why = {0};
	struct rings r;
	bool taken;

	begin(&r, "text delta:\t0\ndata delta:\t0\n");
	file_params = fake_instance_params(&r.tmp);
	assert_int_equal(boot_note_write(r.tmp.fd, &file_params, BOOT_THEN, &why), 0);
	/* For what is taken, or for the file: the ring buffer is left alone */
	disk = 40 * SUBBUF;
	assert_int_equal(save(&r, &taken, &why), -ENOSPC);
	assert_false(taken);
	assert_int_equal(left_in(r.live), N_SUBBUFS);
	assert_non_null(strstr(why.text, "method drain takes"));
	/* For both */
	disk = 16 * MIB;
	assert_int_equal(save(&r, &taken, &why), 0);
	assert_true(taken);
	assert_int_equal(left_in(r.live), 0);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spare_at_start),
		cmocka_unit_test(test_spare_without_memory),
		cmocka_unit_test(test_spare_given_back),
		cmocka_unit_test(test_swap_fails),
		cmocka_unit_test(test_boot_trace_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
