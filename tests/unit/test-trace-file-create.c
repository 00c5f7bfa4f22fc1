/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Making a trace.dat where that is not easy: names that are taken, disks and file systems that are
 * full, small or without O_DIRECT, any size that was asked for. openat, ftruncate and renameat2 are
 * wrapped so that they fail to order.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/fake-file.h"

static bool no_direct;	      /* openat() refuses O_DIRECT */
static uint64_t largest_file; /* ftruncate() takes no more; 0: no limit */
static int truncate_error;    /* errno of ftruncate() */
static int noreplace_error;   /* errno of renameat2(RENAME_NOREPLACE) */

int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

int __wrap_openat(int dir_fd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (no_direct && flags & O_DIRECT) {
		errno = EINVAL;
		return -1;
	}
	return __real_openat(dir_fd, path, flags, mode);
}

int __wrap_ftruncate(int fd, off_t size)
{
	int error = truncate_error;

	if (!error && largest_file && (uint64_t)size > largest_file)
		error = EFBIG;
	if (error) {
		errno = error;
		return -1;
	}
	return __real_ftruncate(fd, size);
}

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (noreplace_error) {
		errno = noreplace_error;
		return -1;
	}
	return __real_renameat2(from_fd, from, to_fd, to, flags);
}

static int setup(void **state)
{
	no_direct = false;
	largest_file = 0;
	truncate_error = noreplace_error = 0;
	return 0;
}

static void test_publish(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct fault why = {};
	struct fake f;

	fake_init(&f, 1);
	/* left by one that was killed there */
	tmp_write(&f.tmp, "dir/.current.dat.new", "x");
	assert_int_equal(trace_file_create(f.dir_fd, "current.dat", &f.params, &file, &why), 0);
	tmp_write(&f.tmp, "dir/current.dat", "precious");
	assert_int_equal(trace_file_publish(f.dir_fd, "current.dat", false, &why), -EEXIST);
	assert_non_null(strstr(why.text, "current.dat"));
	/* On file systems that do not know RENAME_NOREPLACE as well */
	noreplace_error = EINVAL;
	assert_int_equal(trace_file_publish(f.dir_fd, "current.dat", false, &why), -EEXIST);
	assert_int_equal(fake_length(&f, "current.dat"), 8);
	assert_int_equal(unlinkat(f.dir_fd, "current.dat", 0), 0);
	assert_int_equal(trace_file_publish(f.dir_fd, "current.dat", false, &why), 0);
	fake_verify(&f, "current.dat", 0);
	fake_done(&f);
}

static void assert_not_created(struct fake *f, int error, const char *text)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct fault why = {};
	int r = trace_file_create(f->dir_fd, "current.dat", &f->params, &file, &why);

	if (r != error || !strstr(why.text, text))
		fail_msg("%d, \"%s\", expected \"%s\"", r, why.text, text);
	assert_int_equal(why.error, error);
	assert_int_equal(trace_file_create(f->dir_fd, "current.dat", &f->params, &file, NULL),
			 error);
	assert_null(file);
	assert_int_equal(faccessat(f->dir_fd, ".current.dat.new", F_OK, 0), -1);
}

static void test_create_fails(void **state)
{
	struct fake f;

	fake_init(&f, 2);
	truncate_error = ENOSPC;
	assert_not_created(&f, -ENOSPC, "cannot set the file's size: No space left");
	truncate_error = 0;
	largest_file = 6 * MIB;
	assert_not_created(&f, -EFBIG, "too small for 2 CPUs");
	largest_file = 0;
	no_direct = true;
	f.params.direct = STORAGE_DIRECT_YES;
	assert_not_created(&f, -EOPNOTSUPP, "Direct=yes");
	no_direct = false;
	f.params.direct = STORAGE_DIRECT_AUTO;
	assert_int_equal(unlinkat(f.tracing_fd, "instances/t/events/header_page", 0), 0);
	assert_int_equal(unlinkat(f.tracing_fd, "events/header_page", 0), 0);
	assert_not_created(&f, -ENOENT, "events/header_page");
	fake_done(&f);
}

static void test_small_and_huge_regions(void **state)
{
	const uint64_t sizes[] = {64 * KIB,  10 * MIB,	     TIB,	INT64_MAX / 2,
				  INT64_MAX, UINT64_MAX - 1, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (unsigned n_cpus = 1; n_cpus < 300; n_cpus += 149) {
			_cleanup_file_ struct trace_file *file = NULL;
			struct trace_file_region a, b;
			struct fault why = {};
			struct fake f;

			fake_init(&f, n_cpus);
			f.params.max_file_size = sizes[i];
			f.params.slack = 64 * KIB;
			largest_file = 16 * TIB;
			errno = EIO; /* must not count */
			if (trace_file_create(f.dir_fd, "a", &f.params, &file, &why) < 0)
				fail_msg("%llu: %s", (unsigned long long)sizes[i], why.text);
			trace_file_region(file, 0, &a);
			trace_file_region(file, n_cpus - 1, &b);
			assert_true(a.room >= MIN(sizes[i], 16 * TIB / 512));
			assert_true(b.offset + b.room <= 16 * TIB);
			assert_int_equal(a.room, b.room);
			trace_file_free(TAKE_PTR(file));
			fake_done(&f);
		}
	}
}

static void test_full_disk_is_named(void **state)
{
	_cleanup_fclose_ FILE *out = fopen("/dev/full", "w");
	struct fault why = {};
	struct fake f;

	fake_init(&f, 1);
	assert_non_null(out);
	setbuf(out, NULL);
	assert_int_equal(metadata_write(out, &f.params.source, 4096, f.symbols, &why), -ENOSPC);
	fake_done(&f);
}

static void test_direct(void **state)
{
	struct fake f;
	bool works;
	int fd;

	fake_init(&f, 2);
	trace_file_free(fake_create(&f, "a"));
	fd = openat(f.dir_fd, "a", O_RDWR | O_DIRECT | O_CLOEXEC);
	works = fd >= 0;
	close_p(&fd);
	for (int i = 0; i < 2; i++) { /* made, then opened again */
		const enum storage_direct modes[] = {STORAGE_DIRECT_AUTO, STORAGE_DIRECT_NO};

		for (size_t k = 0; k < ARRAY_SIZE(modes); k++) {
			_cleanup_file_ struct trace_file *file = NULL;
			struct trace_file_region region;

			f.params.direct = modes[k];
			file = i ? fake_open(&f, "a") : fake_create(&f, k ? "b" : "c");
			trace_file_region(file, 1, &region);
			assert_int_equal(trace_file_is_direct(file),
					 works && modes[k] == STORAGE_DIRECT_AUTO);
			assert_int_equal(region.data_fd != region.buffered_fd,
					 trace_file_is_direct(file));
			if (works && modes[k] == STORAGE_DIRECT_AUTO)
				assert_true(fcntl(region.data_fd, F_GETFL) & O_DIRECT);
			assert_false(fcntl(region.buffered_fd, F_GETFL) & O_DIRECT);
		}
	}
	no_direct = true;
	f.params.direct = STORAGE_DIRECT_AUTO;
	for (int i = 0; i < 2; i++) {
		_cleanup_file_ struct trace_file *file =
			i ? fake_open(&f, "a") : fake_create(&f, "d");

		assert_false(trace_file_is_direct(file));
	}
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_publish, setup),
		cmocka_unit_test_setup(test_create_fails, setup),
		cmocka_unit_test_setup(test_small_and_huge_regions, setup),
		cmocka_unit_test_setup(test_full_disk_is_named, setup),
		cmocka_unit_test_setup(test_direct, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
