/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "ctl/verify.h"
#include "formats/trace-dat-read.h"
#include "formats/trace-dat.h"
#include "tests/unit/craft.h"
#include "tests/unit/tmp.h"

static int file_of(const struct craft *c, size_t size)
{
	int fd = memfd_create("test-trace-dat-read", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite_all(fd, c->bytes, size, 0), 0);
	return fd;
}

static void test_frame(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;
		_cleanup_close_ int fd = -EBADF;
		_cleanup_free_ char *text = NULL;
		struct fault why = {};
		struct craft_dat at;

		craft_dat(&c, "CPU: 0\n", NULL, &at);
		fd = file_of(&c, c.size);
		assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
		assert_int_equal(dat->version, 6);
		assert_int_equal(dat->big_endian, c.big_endian);
		assert_int_equal(dat->long_size, c.commit_size);
		assert_int_equal(dat->page_size, 4096);
		assert_int_equal(dat->page_size_offset, at.page_size);
		assert_int_equal(dat->layout.data_offset, 8 + c.commit_size);
		assert_int_equal(dat->layout.commit_size, c.commit_size);
		assert_int_equal(dat->header_page_subbuf, 4096);
		assert_int_equal(dat->header_page.offset, at.header_page);
		assert_int_equal(dat->n_systems, 2);
		assert_string_equal(dat->systems[1], "demo");
		assert_int_equal(dat->n_formats, 1);
		assert_int_equal(dat->formats[0].text.offset, at.format);
		assert_int_equal(dat->formats[0].system, 1);
		assert_int_equal(dat->kallsyms.size, 26);
		assert_int_equal(dat->printk_formats.size, 0);
		assert_int_equal(dat->cmdlines.offset, at.cmdlines);
		assert_int_equal(dat->cmdlines.size, 10);
		assert_int_equal(dat->n_cpus, 2);
		assert_int_equal(dat->n_cpus_offset, at.n_cpus);
		assert_int_equal(dat->n_options, 2);
		assert_int_equal(dat->options[1].id, TRACE_DAT_OPTION_CPUSTAT);
		assert_int_equal(dat->options[1].data.offset, at.option_cpustat);
		assert_int_equal(dat->options[1].data.size, 8);
		assert_int_equal(dat->options_end, at.option_cpustat + 8);
		assert_int_equal(dat->n_buffers, 1);
		assert_int_equal(dat->buffers[0].table.offset, at.table - 10);
		assert_int_equal(dat->buffers[0].table.size, 10 + 32);
		for (unsigned cpu = 0; cpu < 2; cpu++) {
			assert_int_equal(dat->buffers[0].regions[cpu].entry, at.table + 16 * cpu);
			assert_int_equal(dat->buffers[0].regions[cpu].offset, at.region[cpu]);
			assert_int_equal(trace_dat_check_region(dat, &dat->buffers[0], cpu, &why),
					 0);
		}
		assert_int_equal(dat->clock.offset, at.table + 32 + 8);
		assert_int_equal(dat->clock.size, 7);
		assert_int_equal(trace_dat_load(dat, &dat->cmdlines, 100, &text, &why), 0);
		assert_string_equal(text, "1 init\n\n\n\n");
		assert_int_equal(trace_dat_load(dat, &dat->cmdlines, 9, &text, &why), -EFBIG);
	}
}

static void test_buffers(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;
		_cleanup_close_ int fd = -EBADF;
		struct fault why = {};
		struct craft_dat at;

		craft_dat(&c, NULL, "second", &at);
		fd = file_of(&c, c.size);
		assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
		assert_int_equal(dat->n_buffers, 2);
		assert_string_equal(dat->buffers[1].name, "second");
		assert_int_equal(dat->buffers[1].regions[0].size, 0);
		assert_int_equal(dat->buffers[1].regions[1].size, 4096);
		assert_int_equal(dat->buffers[1].regions[1].offset, c.size - 4096);
	}
}

/* As trace-cmd split 3.3.1 leaves it: the first of two options of a buffer says nowhere */
static void test_buffer_nowhere(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;
		_cleanup_close_ int fd = -EBADF;
		struct fault why = {};
		struct craft_dat at;
		size_t first;

		/* the CPUSTAT becomes a BUFFER: offset and "two" */
		craft_dat(&c, "12345678two", "two", &at);
		first = at.option_cpustat;
		craft_set(&c, first - 6, 2, TRACE_DAT_OPTION_BUFFER);
		craft_set(&c, first, 8, 0);
		fd = file_of(&c, c.size);
		assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
		assert_int_equal(dat->n_buffers, 2);
		assert_string_equal(dat->buffers[1].name, "two");
		assert_int_equal(dat->buffers[1].regions[1].size, 4096);
	}
}

/* Cut anywhere inside the frame: an error that names file and offset; behind it: verify says which
 * CPU */
static void test_cut_at_every_byte(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct craft_dat at;

		craft_dat(&c, "CPU: 0\n", "second", &at);
		for (size_t size = 0; size < at.buffer_table_end;
		     size += size < at.region[0] ? 1 : 61) {
			_cleanup_trace_dat_ struct trace_dat *dat = NULL;
			_cleanup_close_ int fd = file_of(&c, size);
			struct fault why = {};

			int r = trace_dat_open_fd(fd, "f", &dat, &why);

			assert_true(r == -ENODATA || r == -EBADMSG);
			assert_int_equal(why.error, r);
			if (size == 0)
				assert_string_equal(why.text, "f: empty file");
			else
				assert_int_equal(strncmp(why.text, "f: offset 0x", 12), 0);
		}
	}
}

static void test_cut_data(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct craft_dat at;

		craft_dat(&c, NULL, NULL, &at);
		for (size_t size = at.table + 32; size < c.size; size += 37) {
			_cleanup_trace_dat_ struct trace_dat *dat = NULL;
			_cleanup_close_ int fd = file_of(&c, size);
			struct verify_report report;
			struct fault why = {};

			assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
			assert_int_equal(trace_dat_check_region(dat, &dat->buffers[0], 1, &why),
					 -EBADMSG);
			assert_int_equal(verify_report_init(&report, "f"), 0);
			assert_int_equal(verify_dat(dat, &report), 0);
			assert_false(verify_report_ok(&report));
			verify_report_done(&report);
		}
	}
}

struct refusal {
	size_t offset;
	unsigned size;
	uint64_t value;
	int error;
	const char *text; /* part of the message */
};

static void assert_refused(struct craft *c, const struct refusal *refusal)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct craft copy = *c;
	struct fault why = {};

	copy.bytes = NULL;
	copy.size = copy.room = 0;
	craft_bytes(&copy, c->bytes, c->size);
	craft_set(&copy, refusal->offset, refusal->size, refusal->value);
	fd = file_of(&copy, copy.size);
	assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), refusal->error);
	if (!strstr(why.text, refusal->text))
		fail_msg("\"%s\" is not in \"%s\"", refusal->text, why.text);
	craft_done(&copy);
}

static void test_refusals(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct craft_dat at;
		size_t magic_end = 10, cpustat, word;

		craft_dat(&c, "CPU: 0\n", "second", &at);
		cpustat = at.option_cpustat;
		word = at.table - 10;
		const struct refusal refusals[] = {
			{0, 1, 0, -EBADMSG, "f: offset 0x0: not a trace.dat"},
			{magic_end, 1, '7', -EOPNOTSUPP,
			 "offset 0x12: compressed with header_page, which is not supported"},
			{magic_end, 1, '5', -EOPNOTSUPP, "offset 0xa: "},
			{magic_end + 2, 1, 2, -EBADMSG, "offset 0xc: byte order"},
			{magic_end + 3, 1, 5, -EBADMSG, "offset 0xd: long size"},
			{at.page_size, 4, 4097, -EBADMSG, "offset 0xe: page size is 4097"},
			{at.page_size, 4, 1U << 31, -EBADMSG, "offset 0xe: page size"},
			{at.header_page - 8, 8, 0, -EOPNOTSUPP, "before 2.6.31"},
			{at.header_page - 8, 8, UINT64_MAX, -ENODATA,
			 "header_page has 18446744073709551615 bytes"},
			{at.header_page - 9, 1, 1, -EBADMSG, "\"header_page\" is expected"},
			{at.format - 8, 8, 1ULL << 40, -ENODATA,
			 "an event format has 1099511627776 bytes"},
			{at.cmdlines - 8, 8, 1ULL << 60, -ENODATA, "the task names"},
			{at.n_cpus, 4, 65537, -EBADMSG, "number of CPUs is 65537"},
			{at.n_cpus, 4, 60000, -ENODATA, "ends inside the CPU table"},
			{cpustat - 4, 4, UINT32_MAX, -ENODATA, "an option has 4294967295 bytes"},
			{cpustat + 8 + 6, 8, 1ULL << 50, -EBADMSG,
			 "option BUFFER of \"second\": it points to 0x4000000000000"},
			{cpustat + 8 + 6, 8, 10, -EBADMSG,
			 "option BUFFER of \"second\": at 0xa, where it points, is no "},
			{cpustat + 8 + 6 + 8 + 6, 1, 'x', -EBADMSG,
			 "option BUFFER: the name of the buffer does not end"},
			{word, 1, 'F', -EBADMSG, "\"flyrecord\" is expected"},
		};

		for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
			assert_refused(&c, &refusals[i]);
		memcpy(c.bytes + word, "latency  ", 10);
		assert_refused(&c, &(struct refusal){word, 1, 'l', -EOPNOTSUPP, "latency tracer"});
	}
}

static void test_cpu_count_option(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	struct craft c = craft_kinds[2];
	_cleanup_close_ int fd = -EBADF;
	struct fault why = {};
	struct craft_dat at;

	craft_dat(&c, "\1\1\1", NULL, &at); /* four bytes with the NUL, to become a number */
	craft_set(&c, at.option_cpustat - 6, 2, TRACE_DAT_OPTION_CPUCOUNT);
	craft_set(&c, at.option_cpustat, 4, 1);
	fd = file_of(&c, c.size);
	assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
	assert_int_equal(dat->n_cpus, 1);
	craft_done(&c);
}

static void test_version_alone(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_close_ int fd = -EBADF;
	struct craft_dat at;
	unsigned version = 0;

	craft_dat(&c, NULL, NULL, &at);
	c.bytes[10] = '7';
	fd = file_of(&c, c.size);
	assert_int_equal(trace_dat_version(fd, &version), 0);
	assert_int_equal(version, 7);
	c.bytes[0] = 0;
	assert_int_equal(io_pwrite_all(fd, c.bytes, 1, 0), 0);
	assert_int_equal(trace_dat_version(fd, &version), -EBADMSG);
	craft_done(&c);
}

static void *give_back(void *userdata)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	(void)nanosleep(&pause, NULL);
	assert_int_equal(fcntl(*(int *)userdata, F_SETLEASE, F_UNLCK), 0);
	return NULL;
}

/* While a live file is finished flyrecd has a lease on it for some milliseconds */
static void test_leased(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	struct craft c = craft_kinds[0];
	struct craft_dat at;
	struct fault why = {};
	pthread_t thread;
	struct tmp tmp;
	char path[100];
	int fd;

	craft_dat(&c, NULL, NULL, &at);
	tmp_init(&tmp);
	tmp_write_bytes(&tmp, "f.dat", c.bytes, c.size);
	(void)snprintf(path, sizeof(path), "%s/f.dat", tmp.path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	(void)signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	assert_int_equal(open(path, O_RDONLY | O_NONBLOCK), -1);
	assert_int_equal(pthread_create(&thread, NULL, give_back, &fd), 0);
	assert_int_equal(trace_dat_open(path, &dat, &why), 0);
	pthread_join(thread, NULL);
	close(fd);
	tmp_done(&tmp);
	craft_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_buffer_nowhere),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_cut_data),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_cpu_count_option),
		cmocka_unit_test(test_version_alone),
		cmocka_unit_test(test_leased),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
