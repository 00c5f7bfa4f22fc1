/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events → event file → the reader of sub-buffers and verify: the same events, nothing else */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "ctl/verify.h"
#include "tests/unit/event-file-add.h"
#include "tests/unit/tmp.h"

#define ID 4711

static const char demo_format[] =
	"name: blob\nID: 4711\n" EVENT_FILE_HEAD_FORMAT
	"\tfield:u64 number;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"%llu\", REC->number\n";

static const struct sections_format formats[] = {{"demo", demo_format}};

struct blob {
	struct event_file_head head;
	uint64_t number;
	uint8_t rest[EVENT_FILE_MAX_EVENT - 16];
};

static struct event_file *begin(const char *path)
{
	const struct event_file_params params = {
		.path = path,
		.mode = 0644,
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.clock = "[local]\n",
		.uname = "demo",
	};
	struct event_file *file = NULL;
	struct fault why = {};

	if (event_file_new(&params, &file, &why) < 0)
		fail_msg("%s", why.text);
	return file;
}

/* Of any size and distance in time, the same for the same number */
static size_t size_of(uint64_t i)
{
	static const size_t sizes[] = {16,  17,	 28,  108,  112,
				       113, 116, 200, 1024, sizeof(struct blob)};

	return sizes[i * 2654435761 % 4294967296 % ARRAY_SIZE(sizes)];
}

static uint64_t step_of(uint64_t i)
{
	static const uint64_t steps[] = {
		0, 1, 1000, (1 << 27) - 1, 1 << 27, UINT64_C(1) << 40, 0, 7,
	};

	return steps[i % ARRAY_SIZE(steps)];
}

static void add(struct event_file *file, unsigned cpu, uint64_t i, uint64_t ts)
{
	struct blob blob = {.head = {.type = ID, .pid = (int)cpu}, .number = i};

	memset(blob.rest, (int)i, sizeof(blob.rest));
	assert_int_equal(event_file_add(file, cpu, ts, &blob, size_of(i)), 0);
	assert_int_equal(event_file_last_ts(file, cpu), ts);
}

/* CPU @cpu has @n events that add() made of numbers from @first in steps of @stride */
static void assert_cpu(const struct trace_dat *dat, unsigned cpu, uint64_t first, uint64_t n,
		       uint64_t stride)
{
	const struct trace_dat_region *region = &dat->buffers[0].regions[cpu];
	_cleanup_free_ uint8_t *page = malloc(dat->page_size);
	uint64_t i = first, ts = 1, seen = 0;

	for (uint64_t at = 0; at < region->size; at += dat->page_size) {
		struct subbuf_fault fault;
		struct subbuf_event event;
		struct subbuf_iter it;

		assert_int_equal(io_pread_all(dat->fd, page, dat->page_size, region->offset + at),
				 0);
		assert_int_equal(subbuf_iter_init(&dat->layout, page, &it, &fault), 0);
		while (subbuf_iter_next(&it, &event, &fault) > 0) {
			struct blob blob = {};

			ts += step_of(i);
			assert_int_equal(event.ts, ts);
			assert_int_equal(event.size, (size_of(i) + 3) & ~3U);
			memcpy(&blob, event.data, event.size);
			assert_int_equal(blob.head.type, ID);
			assert_int_equal(blob.number, i);
			for (size_t k = 16; k < event.size; k++)
				assert_int_equal(blob.rest[k - 16],
						 k < size_of(i) ? (uint8_t)i : 0);
			i += stride;
			seen++;
		}
	}
	assert_int_equal(seen, n);
}

static void assert_sound(const struct trace_dat *dat)
{
	struct verify_report report;

	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	if (!verify_report_ok(&report))
		fail_msg("%s", report.errors[0]);
	verify_report_done(&report);
}

static struct trace_dat *open_dat(const struct tmp *tmp, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct trace_dat *dat = NULL;
	struct fault why = {};

	assert_true(asprintf(&path, "%s/%s", tmp->path, name) > 0);
	if (trace_dat_open(path, &dat, &why) < 0)
		fail_msg("%s", why.text);
	return dat;
}

/* @n events go round @cpus CPUs */
static void round_trip(unsigned cpus, uint64_t n)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_free_ uint64_t *ts = calloc(cpus, sizeof(*ts));
	_cleanup_(event_file_freep) struct event_file *file = NULL;
	_cleanup_free_ char *path = NULL, *names = NULL;
	struct event_file_totals totals;
	struct fault why = {};
	struct stat st;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_true(asprintf(&path, "%s/f.dat", tmp.path) > 0);
	file = begin(path);
	assert_int_equal(event_file_task(file, 3, "three of them"), 0);
	for (uint64_t i = 0; i < n; i++) {
		unsigned cpu = (unsigned)(i % cpus);

		ts[cpu] = (ts[cpu] ? ts[cpu] : 1) + step_of(i);
		add(file, cpu, i, ts[cpu]);
	}
	assert_int_equal(event_file_note(file, "a note\n"), 0);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(event_file_finish(file, &totals, &why), 0);
	assert_int_equal(totals.events, n);
	assert_int_equal(totals.cpus, cpus);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(totals.bytes, st.st_size);
	assert_int_equal(tmp_count(&tmp), 1);
	dat = open_dat(&tmp, "f.dat");
	assert_int_equal(dat->n_cpus, cpus);
	assert_int_equal(trace_dat_load(dat, &dat->cmdlines, MIB, &names, &why), 0);
	assert_non_null(strstr(names, "3 three of them\n"));
	assert_sound(dat);
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		assert_cpu(dat, cpu, cpu, n / cpus + (cpu < n % cpus), cpus);
	tmp_done(&tmp);
}

static void test_one_cpu(void **state)
{
	round_trip(1, 1);
	round_trip(1, 1000);
	round_trip(1, 20000);
}

static void test_many_cpus(void **state)
{
	round_trip(3, 20);
	round_trip(3, 3001);
	round_trip(64, 20000);
}

/* CPUs that come when the first one's data is in its place already: the header has no room */
static void test_late_cpus(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_(event_file_freep) struct event_file *file = NULL;
	_cleanup_free_ char *path = NULL;
	uint64_t ts = 1, i = 5;
	struct fault why = {};
	struct tmp tmp;

	tmp_init(&tmp);
	assert_true(asprintf(&path, "%s/f.dat", tmp.path) > 0);
	file = begin(path);
	for (unsigned n = 0; n < 2000; n++, i++) {
		ts += step_of(i);
		add(file, 7, i, ts);
	}
	add(file, EVENT_FILE_MAX_CPUS - 1, 9, 1 + step_of(9));
	assert_int_equal(event_file_finish(file, NULL, &why), 0);
	dat = open_dat(&tmp, "f.dat");
	assert_int_equal(dat->n_cpus, EVENT_FILE_MAX_CPUS);
	assert_sound(dat);
	assert_cpu(dat, 7, 5, 2000, 1);
	assert_cpu(dat, EVENT_FILE_MAX_CPUS - 1, 9, 1, 1);
	assert_int_equal(tmp_count(&tmp), 1);
	tmp_done(&tmp);
}

static void test_no_events(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_(event_file_freep) struct event_file *file = NULL;
	_cleanup_free_ char *path = NULL;
	struct fault why = {};
	struct tmp tmp;

	tmp_init(&tmp);
	assert_true(asprintf(&path, "%s/f.dat", tmp.path) > 0);
	file = begin(path);
	assert_int_equal(event_file_finish(file, NULL, &why), 0);
	dat = open_dat(&tmp, "f.dat");
	assert_int_equal(dat->n_cpus, 1);
	assert_sound(dat);
	tmp_done(&tmp);
}

static void test_refused(void **state)
{
	const struct event_file_params nowhere = {.path = "/nowhere/f.dat", .clock = ""};
	_cleanup_(event_file_freep) struct event_file *file = NULL, *none = NULL;
	_cleanup_free_ char *path = NULL;
	struct blob blob = {.head = {.type = ID}};
	struct fault why = {};
	struct tmp tmp;

	assert_int_equal(event_file_new(&nowhere, &none, &why), -ENOENT);
	assert_non_null(strstr(why.text, "/nowhere/f.dat"));
	assert_null(none);
	tmp_init(&tmp);
	assert_true(asprintf(&path, "%s/f.dat", tmp.path) > 0);
	file = begin(path);
	assert_int_equal(event_file_add(file, 0, 0, &blob, 16), -EINVAL);
	assert_int_equal(event_file_add(file, 0, 10, &blob, 16), 0);
	assert_int_equal(event_file_add(file, 0, 9, &blob, 16), -EINVAL);
	assert_int_equal(event_file_add(file, 1, 9, &blob, 16), 0);
	assert_int_equal(event_file_add(file, 0, 10, &blob, 4), -EMSGSIZE);
	assert_int_equal(event_file_add(file, 0, 10, &blob, EVENT_FILE_MAX_EVENT + 1), -EMSGSIZE);
	assert_int_equal(event_file_add(file, EVENT_FILE_MAX_CPUS, 10, &blob, 16), -ERANGE);
	file = event_file_free(file); /* not finished: nothing is left */
	assert_int_equal(tmp_count(&tmp), 0);
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_cpu),	  cmocka_unit_test(test_many_cpus),
		cmocka_unit_test(test_late_cpus), cmocka_unit_test(test_no_events),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
