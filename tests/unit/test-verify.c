/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "ctl/verify.h"
#include "tests/unit/craft.h"

static struct verify_report verify(const struct craft *c)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = memfd_create("test-verify", MFD_CLOEXEC);
	struct verify_report report;
	struct fault why = {};

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite_all(fd, c->bytes, c->size, 0), 0);
	assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	return report;
}

/* Change @n bytes at @where, expect one fault with @offset and @text in it, change back */
static void assert_fault(struct craft *c, size_t where, unsigned n, uint64_t value, uint64_t offset,
			 const char *text)
{
	struct verify_report report;
	uint8_t saved[8];
	char at[64];

	memcpy(saved, c->bytes + where, n);
	craft_set(c, where, n, value);
	report = verify(c);
	(void)snprintf(at, sizeof(at), "f: offset 0x%" PRIx64 ": ", offset);
	if (report.n_errors != 1 || strncmp(report.errors[0], at, strlen(at)) != 0 ||
	    !strstr(report.errors[0], text))
		fail_msg("%zu faults, \"%s\", expected \"%s…%s\"", report.n_errors,
			 report.n_errors ? report.errors[0] : "", at, text);
	verify_report_done(&report);
	memcpy(c->bytes + where, saved, n);
}

static void test_sound(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct verify_report report;
		struct craft_dat at;

		craft_dat(&c, "CPU: 0\nentries: 3\n", "second", &at);
		report = verify(&c);
		assert_true(verify_report_ok(&report));
		assert_int_equal(report.version, 6);
		assert_int_equal(report.n_cpus, 4);
		assert_int_equal(report.cpus[0].subbufs, 2);
		assert_int_equal(report.cpus[0].events, 4);
		assert_int_equal(report.cpus[1].events, 2);
		assert_int_equal(report.cpus[1].lost_events, 5);
		assert_int_equal(report.cpus[2].subbufs, 0);
		assert_string_equal(report.cpus[3].buffer, "second");
		assert_int_equal(report.cpus[3].cpu, 1);
		assert_int_equal(report.cpus[3].events, 1);
		verify_report_done(&report);
	}
}

static void test_json(void **state)
{
	struct craft c = craft_kinds[0];
	struct verify_report report;
	struct json_object *o;
	struct craft_dat at;

	craft_dat(&c, NULL, NULL, &at);
	report = verify(&c);
	o = verify_report_json(&report);
	assert_non_null(o);
	assert_string_equal(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
			    "{\"path\":\"f\",\"ok\":true,\"version\":6,\"errors\":[],\"cpus\":["
			    "{\"cpu\":0,\"subbufs\":2,\"events\":4,\"lost_events\":0},"
			    "{\"cpu\":1,\"subbufs\":1,\"events\":2,\"lost_events\":5}]}");
	json_object_put(o);
	verify_report_done(&report);
	craft_done(&c);
}

/* What follows the data and was not written: said by the statistics of a file that ends so */
static void test_lost_at_end(void **state)
{
	static const struct {
		const char *text;
		uint64_t lost;
	} cases[] = {
		{"CPU: 1\nentries: 3\noverrun: 12\nread events: 2\n"
		 "flyrec left in the ring buffer events: 3\nflyrec final: yes\n",
		 3 + 12 - 5},
		{"CPU: 1\noverrun: 5\nread events: 9\n"
		 "flyrec left in the ring buffer events: 0\nflyrec final: yes\n",
		 9 - 2},
		{"CPU: 1\nentries: 3\noverrun: 12\nread events: 9\nflyrec final: yes\n", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct craft c = craft_kinds[0];
		struct verify_report report;
		struct craft_dat at;

		craft_dat(&c, cases[i].text, NULL, &at);
		report = verify(&c);
		assert_true(verify_report_ok(&report));
		assert_int_equal(report.cpus[1].lost_events, 5);
		assert_int_equal(report.cpus[1].lost_at_end, cases[i].lost);
		verify_report_done(&report);
		craft_done(&c);
	}
}

static void test_faults(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct craft_dat at;
		size_t r0, r1, event;
		unsigned head = 8 + c.commit_size;

		craft_dat(&c, NULL, NULL, &at);
		r0 = at.region[0];
		r1 = at.region[1];
		event = r0 + head;
		/* regions */
		assert_fault(&c, at.table, 8, 1ULL << 40, at.table,
			     "cpu 0: the region at 0x10000000000");
		assert_fault(&c, at.table + 8, 8, 1ULL << 63, at.table, "runs past the end");
		assert_fault(&c, at.table + 16, 8, r1 + 8, at.table + 16, "runs past the end");
		assert_fault(&c, at.table, 8, r0 - 8, at.table, "not aligned");
		assert_fault(&c, at.table + 8, 8, 4097, at.table, "whole number");
		assert_fault(&c, at.table, 8, 0, at.table, "overlaps the file's header");
		assert_fault(&c, at.table + 16, 8, r0 + 4096, at.table + 16,
			     "overlaps that of cpu 0");
		/* sub-buffer headers */
		assert_fault(&c, r0, 8, 0, r0, "cpu 0: the sub-buffer has no timestamp");
		assert_fault(&c, r0 + 8, c.commit_size, 5000, r0 + 8,
			     "cpu 0: a commit of 5000 bytes");
		assert_fault(&c, r0 + 4096, 8, 1029, r0 + 4096, "cpu 0: time runs backwards");
		/* events */
		assert_fault(&c, event + 20, 4, c.big_endian ? 28U << 27 : 28, event + 20,
			     "cpu 0: an event of 112 bytes runs past");
		assert_fault(&c, event + 4, 2, 43, event,
			     "cpu 0: the file has no format for event id 43");
		craft_set(&c, r0 + 8, c.commit_size, 56);
		assert_fault(&c, event + 40, 4, c.big_endian ? 3U << 27 : 3, event + 40,
			     "cpu 0: an event of id 42 is shorter than its format");
		craft_set(&c, r0 + 8, c.commit_size, 60);
		assert_fault(&c, at.page_size, 4, 2048, at.page_size,
			     "header_page describes sub-buffers of 4096");
	}
}

/* Without its format each event is unknown: said once, and all is counted */
static void test_bad_format(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct verify_report report;
		struct craft_dat at;

		craft_dat(&c, NULL, NULL, &at);
		c.bytes[at.format] = 'x';
		report = verify(&c);
		assert_int_equal(report.n_errors, 2);
		assert_non_null(strstr(report.errors[0], "system demo does not parse"));
		assert_non_null(strstr(report.errors[1], "no format for event id 42 (the first"));
		assert_int_equal(report.cpus[0].events, 4);
		assert_int_equal(report.cpus[1].events, 2);
		verify_report_done(&report);
	}
}

static void test_unwritten(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct verify_report report;
		struct craft_dat at;

		craft_dat(&c, NULL, NULL, &at);
		/* at the end: readers see nothing there */
		memset(c.bytes + at.region[0] + 4096, 0, 4096);
		report = verify(&c);
		assert_true(verify_report_ok(&report));
		assert_int_equal(report.cpus[0].subbufs, 1);
		assert_int_equal(report.cpus[0].unwritten, 1);
		verify_report_done(&report);
		/* header gone, data not */
		assert_fault(&c, at.region[0] + 4096 + 100, 1, 1, at.region[0] + 4096,
			     "its data is not");
		craft_done(&c);
		/* before others: a hole in the record */
		craft_dat(&c, NULL, NULL, &at);
		memset(c.bytes + at.region[0], 0, 4095);
		assert_fault(&c, at.region[0], 1, 0, at.region[0],
			     "1 sub-buffers before others were never");
	}
}

static void test_lost_without_number(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct verify_report report;
		struct craft_dat at;

		craft_dat(&c, NULL, NULL, &at);
		craft_set(&c, at.region[1] + 8, c.commit_size, 40 | 1ULL << 31);
		report = verify(&c);
		assert_true(verify_report_ok(&report));
		assert_int_equal(report.cpus[1].lost_events, 0);
		assert_int_equal(report.cpus[1].lost_unknown, 1);
		verify_report_done(&report);
	}
}

static void assert_cpustat(const char *text, const char *fault)
{
	struct craft c = craft_kinds[0];
	struct verify_report report;
	struct craft_dat at;

	craft_dat(&c, text, NULL, &at);
	report = verify(&c);
	if (!fault) {
		assert_true(verify_report_ok(&report));
	} else {
		assert_int_equal(report.n_errors, 1);
		assert_non_null(strstr(report.errors[0], fault));
	}
	verify_report_done(&report);
	craft_done(&c);
}

static void test_cpustat(void **state)
{
	assert_cpustat("CPU: 0\nentries: 9\nflyrec subbufs: 2\nflyrec bytes: 8192\n"
		       "flyrec lost events: 0\nflyrec final: yes\n\n\n",
		       NULL);
	assert_cpustat("CPU: 0\nflyrec subbufs: 3\nflyrec bytes: 8192\n", NULL);
	assert_cpustat("CPU: 0\nflyrec subbufs: 3\nflyrec final: yes\n",
		       "cpu 0: CPUSTAT says \"flyrec subbufs: 3\", the data has 2");
	assert_cpustat("CPU: 1\nflyrec bytes: 8192\nflyrec final: yes\n",
		       "cpu 1: CPUSTAT says \"flyrec bytes: 8192\", the data has 4096");
	assert_cpustat("CPU: 1\nflyrec lost events: 4\nflyrec final: yes\n",
		       "cpu 1: CPUSTAT says \"flyrec lost events: 4\", the data has 5");
	assert_cpustat("CPU: 7\nflyrec final: yes\n", "cpu 7, which the file lacks");
}

/* The file is finished after it was opened: what the texts say by then is of more than was read */
static void test_finished_meanwhile(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;
		_cleanup_close_ int fd = memfd_create("test-verify", MFD_CLOEXEC);
		struct verify_report report;
		struct fault why = {};
		struct craft_dat at;

		craft_dat(&c, "CPU: 0\nflyrec subbufs: 2\nflyrec final: yes\n", NULL, &at);
		craft_set(&c, at.table + 8, 8, 4096);
		assert_true(fd >= 0);
		assert_int_equal(io_pwrite_all(fd, c.bytes, c.size, 0), 0);
		assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
		craft_set(&c, at.table + 8, 8, 8192);
		assert_int_equal(io_pwrite_all(fd, c.bytes, c.size, 0), 0);
		assert_int_equal(verify_report_init(&report, "f"), 0);
		assert_int_equal(verify_dat(dat, &report), 0);
		assert_true(verify_report_ok(&report));
		assert_int_equal(report.cpus[0].subbufs, 1);
		verify_report_done(&report);
	}
}

/* A region of terabytes that is a hole: seen, counted, not read */
static void test_huge_hole(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = memfd_create("test-verify", MFD_CLOEXEC);
	struct craft c = craft_kinds[0];
	struct verify_report report;
	struct fault why = {};
	struct craft_dat at;

	craft_dat(&c, NULL, NULL, &at);
	craft_set(&c, at.table + 24, 8, 1ULL << 42);
	assert_int_equal(io_pwrite_all(fd, c.bytes, c.size, 0), 0);
	assert_int_equal(ftruncate(fd, (off_t)(at.region[1] + (1ULL << 42))), 0);
	assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	assert_true(verify_report_ok(&report));
	assert_int_equal(report.cpus[1].subbufs, 1);
	assert_int_equal(report.cpus[1].unwritten, (1ULL << 42) / 4096 - 1);
	verify_report_done(&report);
	craft_done(&c);
}

/* The file is cut after its tables were read: a fault, no crash */
static void test_cut_while_reading(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = memfd_create("test-verify", MFD_CLOEXEC);
	struct craft c = craft_kinds[0];
	struct verify_report report;
	struct fault why = {};
	struct craft_dat at;

	craft_dat(&c, "CPU: 0\n", NULL, &at);
	assert_int_equal(io_pwrite_all(fd, c.bytes, c.size, 0), 0);
	assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &why), 0);
	assert_int_equal(ftruncate(fd, (off_t)at.region[0] + 100), 0);
	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	assert_true(report.n_errors >= 1);
	assert_non_null(strstr(report.errors[0], "cpu 0: the file became shorter"));
	verify_report_done(&report);
	assert_int_equal(ftruncate(fd, (off_t)at.format), 0);
	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	assert_non_null(strstr(report.errors[0], "became shorter"));
	verify_report_done(&report);
	craft_done(&c);
}

static void test_many_faults_are_counted(void **state)
{
	struct verify_report report;

	assert_int_equal(verify_report_init(&report, "f"), 0);
	for (unsigned i = 0; i < VERIFY_MAX_ERRORS + 7; i++)
		verify_report_fault(&report, i, "bad\x1b[31m");
	assert_int_equal(report.n_errors, VERIFY_MAX_ERRORS);
	assert_int_equal(report.more_errors, 7);
	assert_string_equal(report.errors[1], "f: offset 0x1: bad\\x1b[31m");
	verify_report_done(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_lost_at_end),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_bad_format),
		cmocka_unit_test(test_unwritten),
		cmocka_unit_test(test_lost_without_number),
		cmocka_unit_test(test_cpustat),
		cmocka_unit_test(test_finished_meanwhile),
		cmocka_unit_test(test_huge_hole),
		cmocka_unit_test(test_cut_while_reading),
		cmocka_unit_test(test_many_faults_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
