/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A snapshot cut out of segments: of all sizes of sub-buffers, and of clocks that count no time.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "formats/trace-dat-read.h"
#include "tests/unit/craft-v7.h"
#include "tests/unit/fake-file.h"
#include "writer/cut.h"
#include "writer/store.h"

#define OLDER  "20231114T221320.001000Z.dat" /* FAKE_DATE + 1000 */
#define LATER  "20231114T221320.002000Z.dat"
#define RESULT "result.dat" /* not taken for a segment */
#define N_CPUS 2U
#define EACH   3U /* sub-buffers of a CPU */

int __wrap_io_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size);

/* As on file systems that have to copy */
int __wrap_io_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size)
{
	return -EOPNOTSUPP;
}

static void use_subbufs(struct fake *f, uint32_t size)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		       "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
		       "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		       "\tfield: char data;\toffset:16;\tsize:%u;\tsigned:0;\n",
		       size - 16);
	tmp_write(&f->tmp, "tracing/instances/t/events/header_page", text);
	f->params.subbuf_size = size;
	f->params.max_file_size = 8 * (uint64_t)EACH * size;
}

/* Of two events */
static void put(struct trace_file *file, unsigned cpu, unsigned n, uint32_t size,
		uint64_t timestamp)
{
	struct craft c = {.big_endian = __BYTE_ORDER == __BIG_ENDIAN, .commit_size = sizeof(long)};
	struct trace_file_region region;

	trace_file_region(file, cpu, &region);
	(void)craft_page_begin(&c, timestamp);
	craft_event(&c, 4, 0, FAKE_EVENT_ID);
	craft_event(&c, 4, 1, FAKE_EVENT_ID);
	craft_page_end(&c, 0, size, 0);
	assert_int_equal(io_pwrite_all(region.buffered_fd, c.bytes, size,
				       region.offset + (uint64_t)n * size),
			 0);
	craft_done(&c);
}

/* The sub-buffers of a CPU begin 10 apart */
static void make_segment(struct fake *f, const char *name, uint64_t timestamp)
{
	struct trace_file *file = fake_create(f, name);
	uint32_t size = f->params.subbuf_size;

	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		for (unsigned i = 0; i < EACH; i++)
			put(file, cpu, i, size, timestamp + 10 * i);
		fake_set_size(file, cpu, (uint64_t)EACH * size);
	}
	trace_file_free(file);
}

static const struct cut_note note = {.text = "flyrec snapshot\n"};

static int cut_range(struct fake *f, uint64_t from_usec, uint64_t to_usec, struct cut_report *ret,
		     struct fault *why)
{
	_cleanup_(cut_freep) struct cut *cut = NULL;
	int r;

	*why = (struct fault){0};
	r = cut_open(f->dir_fd, from_usec, to_usec, &cut, why);
	return r < 0 ? r : cut_write(cut, f->dir_fd, RESULT, &note, ret, why);
}

static void cut_all(struct fake *f, struct cut_report *ret)
{
	struct fault why;

	if (cut_range(f, 0, UINT64_MAX, ret, &why) < 0)
		fail_msg("%s", why.text);
}

static bool result_has_date(struct fake *f)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = openat(f->dir_fd, RESULT, O_RDONLY | O_CLOEXEC);
	int64_t date;

	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, RESULT, &dat, NULL), 0);
	return trace_dat_date(dat, &date, NULL) > 0;
}

/* Sub-buffer @n of @cpu again, after a loss of @missed events */
static void lose(struct fake *f, const char *name, unsigned cpu, unsigned n, uint64_t missed)
{
	struct craft c = {.big_endian = __BYTE_ORDER == __BIG_ENDIAN, .commit_size = sizeof(long)};
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = openat(f->dir_fd, name, O_RDWR | O_CLOEXEC);
	uint64_t at, timestamp;

	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, name, &dat, NULL), 0);
	at = dat->buffers[0].regions[cpu].offset + (uint64_t)n * dat->page_size;
	assert_int_equal(io_pread_all(fd, &timestamp, sizeof(timestamp), at), 0);
	(void)craft_page_begin(&c, timestamp);
	craft_event(&c, 4, 0, FAKE_EVENT_ID);
	craft_event(&c, 4, 1, FAKE_EVENT_ID);
	craft_page_end_missed(&c, 0, dat->page_size, missed);
	assert_int_equal(io_pwrite_all(fd, c.bytes, dat->page_size, at), 0);
	craft_done(&c);
}

/* The statistics that begin with @cpu have @line */
static void assert_cpustat(struct fake *f, const char *cpu, const char *line)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = openat(f->dir_fd, RESULT, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	size_t from = 0;

	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, RESULT, &dat, NULL), 0);
	assert_int_equal(trace_dat_next_note(dat, cpu, &from, &text, NULL), 1);
	if (!strstr(text, line))
		fail_msg("\"%s\" is not in:\n%s", line, text);
}

/* Kernels with large pages have them up to 8M, which is more than is copied at a time */
static void test_subbuf_sizes(void **state)
{
	static const uint32_t sizes[] = {4 * KIB, 64 * KIB, MIB, 2 * MIB, 8 * MIB};

	(void)alarm(120); /* once this went on for ever */
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct cut_report report;
		struct fake f;

		fake_init(&f, N_CPUS);
		use_subbufs(&f, sizes[i]);
		make_segment(&f, STORE_CURRENT, 1000000);
		cut_all(&f, &report);
		assert_int_equal(report.bytes, (uint64_t)N_CPUS * EACH * sizes[i]);
		assert_int_equal(report.events, N_CPUS * EACH * 2);
		fake_verify(&f, RESULT, N_CPUS * EACH);
		fake_done(&f);
	}
	(void)alarm(0);
}

/* Whole sub-buffers, and the one that begins before the time */
static void test_range(void **state)
{
	struct cut_report report;
	struct fault why;
	struct fake f;

	fake_init(&f, N_CPUS);
	make_segment(&f, OLDER, 1000 * NSEC_PER_USEC);
	make_segment(&f, STORE_CURRENT, 2000 * NSEC_PER_USEC);
	assert_int_equal(cut_range(&f, FAKE_DATE + 1500, FAKE_DATE + 2000, &report, &why), 0);
	assert_int_equal(report.bytes, N_CPUS * 2 * FAKE_SUBBUF); /* the last one, the first one */
	assert_int_equal(report.files, 2);
	assert_int_equal(report.begin_usec, FAKE_DATE + 1000);
	assert_true(result_has_date(&f));
	assert_int_equal(cut_range(&f, FAKE_DATE, FAKE_DATE + 999, &report, &why), -ENODATA);
	fake_done(&f);
}

/* The older segment of a boot that is not the newer one's; timestamps in microseconds */
static void make_boots(struct fake *f, uint64_t older, uint64_t newer)
{
	fake_init(f, N_CPUS);
	make_segment(f, OLDER, older * NSEC_PER_USEC);
	memcpy(f->params.boot_id, "0123456789abcdef", sizeof(f->params.boot_id));
	make_segment(f, STORE_CURRENT, newer * NSEC_PER_USEC);
}

/* Clocks that begin anew, other numbers of events: what is asked for is of the boot that is last */
static void test_boots(void **state)
{
	struct cut_report report;
	struct fake f;

	make_boots(&f, 5000, 2000);
	cut_all(&f, &report);
	assert_int_equal(report.files, 1);
	assert_int_equal(report.left_out_files, 1);
	assert_int_equal(report.begin_usec, FAKE_DATE + 2000);
	fake_verify(&f, RESULT, N_CPUS * EACH);
	fake_done(&f);
}

/* The sub-buffer that begins before the time is all that an earlier boot has to say: not worth a
 * word */
static void test_boots_long_ago(void **state)
{
	struct cut_report report;
	struct fault why;
	struct fake f;

	make_boots(&f, 1000, 9000);
	assert_int_equal(cut_range(&f, FAKE_DATE + 8000, UINT64_MAX, &report, &why), 0);
	assert_int_equal(report.files, 1);
	assert_int_equal(report.left_out_files, 0);
	fake_done(&f);
}

/* Of three files the name says that the first one, of this boot, is the oldest: its clock was wrong
 */
static void test_boots_by_name(void **state)
{
	_cleanup_(cut_freep) struct cut *cut = NULL;
	struct cut_report report;
	struct fault why;
	struct fake f;

	fake_init(&f, N_CPUS);
	memcpy(f.params.boot_id, "0123456789abcdef", sizeof(f.params.boot_id));
	make_segment(&f, OLDER, 1000 * NSEC_PER_USEC);
	make_segment(&f, STORE_CURRENT, 2000 * NSEC_PER_USEC);
	memcpy(f.params.boot_id, "fedcba9876543210", sizeof(f.params.boot_id));
	make_segment(&f, LATER, 5000 * NSEC_PER_USEC);
	cut_all(&f, &report);
	assert_int_equal(report.files, 2);
	assert_int_equal(report.left_out_files, 1);
	fake_verify(&f, RESULT, 2 * N_CPUS * EACH);
	assert_int_equal(cut_open(f.dir_fd, 0, UINT64_MAX, &cut, &why), 0);
	assert_memory_equal(cut_boot_id(cut), "0123456789abcdef", 16);
	fake_done(&f);
}

/* Before the last segment @change was otherwise: that is left out, and does not keep from taking
 * the rest */
static void assert_newest_only(void (*change)(struct fake *f))
{
	struct cut_report report;
	struct fault why;
	struct fake f;

	fake_init(&f, N_CPUS);
	make_segment(&f, OLDER, 1000 * NSEC_PER_USEC);
	change(&f);
	make_segment(&f, STORE_CURRENT, 2000 * NSEC_PER_USEC);
	cut_all(&f, &report);
	assert_int_equal(report.files, 1);
	assert_int_equal(report.left_out_files, 1);
	assert_int_equal(report.bytes, (uint64_t)N_CPUS * EACH * f.params.subbuf_size);
	fake_verify(&f, RESULT, N_CPUS * EACH);
	if (f.params.has_date) {
		assert_int_equal(unlinkat(f.dir_fd, RESULT, 0), 0);
		assert_int_equal(cut_range(&f, FAKE_DATE + 1900, FAKE_DATE + 3000, &report, &why),
				 0);
		assert_int_equal(report.files, 1);
		assert_int_equal(report.left_out_files, 0);
	}
	fake_done(&f);
}

static void change_subbufs(struct fake *f)
{
	use_subbufs(f, 16 * KIB);
}

static void change_clock(struct fake *f)
{
	f->params.clock = "local mono [boot]\n";
}

static void lose_date(struct fake *f)
{
	f->params.has_date = false;
	f->params.clock = "local mono [counter]\n";
}

static void test_changes(void **state)
{
	assert_newest_only(change_subbufs);
	assert_newest_only(change_clock);
	assert_newest_only(lose_date);
}

/* From a clock that counts no time to one that does: the time is only looked for in the latter */
static void test_date_since(void **state)
{
	struct cut_report report;
	const char *clock;
	struct fault why;
	struct fake f;

	fake_init(&f, N_CPUS);
	clock = f.params.clock;
	lose_date(&f);
	make_segment(&f, OLDER, 1);
	f.params.has_date = true;
	f.params.clock = clock;
	make_segment(&f, STORE_CURRENT, 2000 * NSEC_PER_USEC);
	assert_int_equal(cut_range(&f, FAKE_DATE + 1000, UINT64_MAX, &report, &why), 0);
	assert_int_equal(report.files, 1);
	fake_done(&f);
}

/* As verify counts them, which looks at the result */
static void test_losses(void **state)
{
	struct cut_report report;
	struct fake f;

	fake_init(&f, N_CPUS);
	make_segment(&f, OLDER, 1000 * NSEC_PER_USEC);
	lose(&f, OLDER, 1, 0, 7);
	lose(&f, OLDER, 1, 2, 40);
	make_segment(&f, STORE_CURRENT, 2000 * NSEC_PER_USEC);
	lose(&f, STORE_CURRENT, 1, 0, 2);
	cut_all(&f, &report);
	assert_int_equal(report.lost_events, 49);
	fake_verify(&f, RESULT, 2 * N_CPUS * EACH);
	assert_cpustat(&f, "CPU: 1\n", "\nflyrec lost events: 49\n");
	assert_cpustat(&f, "CPU: 0\n", "\nflyrec lost events: 0\n");
	fake_done(&f);
}

static void assert_refused(struct fake *f, uint64_t from_usec, uint64_t to_usec, const char *text)
{
	struct cut_report report;
	struct fault why;

	assert_int_equal(cut_range(f, from_usec, to_usec, &report, &why), -EOPNOTSUPP);
	if (!strstr(why.text, text))
		fail_msg("\"%s\", expected \"…%s…\"", why.text, text);
	assert_int_equal(faccessat(f->dir_fd, RESULT, F_OK, 0), -1);
}

/* No range can be found in it, but all there is can be had */
static void test_no_date(void **state)
{
	struct cut_report report;
	struct fake f;

	fake_init(&f, N_CPUS);
	f.params.has_date = false;
	f.params.clock = "local mono [counter]\n";
	make_segment(&f, OLDER, 1);
	make_segment(&f, STORE_CURRENT, 100);
	assert_refused(&f, FAKE_DATE, UINT64_MAX, "counts no time");
	assert_refused(&f, 0, FAKE_DATE, "counts no time");
	cut_all(&f, &report);
	assert_int_equal(report.files, 2);
	fake_verify(&f, RESULT, 2 * N_CPUS * EACH);
	assert_false(result_has_date(&f));
	fake_done(&f);
}

/* A segment of version 7, with one byte changed unless @change is 0 */
static void put_version_7(struct fake *f, bool zstd, bool change)
{
	struct craft c = {.big_endian = __BYTE_ORDER == __BIG_ENDIAN, .commit_size = sizeof(long)};
	struct craft_v7 at;

	craft_v7(&c, zstd, NULL, &at);
	if (change)
		c.bytes[at.area[0] + 12] ^= 1; /* of the first chunk */
	assert_int_equal(io_replace_file_at(f->dir_fd, OLDER, c.bytes, c.size, 0644), 0);
	craft_done(&c);
}

/* Losses before the first sub-buffer of cpu 0 */
static bool result_says_lost(struct fake *f)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = openat(f->dir_fd, RESULT, O_RDONLY | O_CLOEXEC);
	struct subbuf_header header;
	uint8_t page[4096];

	assert_int_equal(trace_dat_open_fd(fd, RESULT, &dat, NULL), 0);
	assert_int_equal(dat->version, 6);
	assert_int_equal(
		trace_dat_read(dat, page, sizeof(page), dat->buffers[0].regions[0].offset, NULL),
		0);
	assert_int_equal(subbuf_header(&dat->layout, page, &header, NULL), 0);
	return header.missed;
}

static void test_version_7(void **state)
{
	for (unsigned zstd = 0; zstd <= HAVE_ZSTD; zstd++) {
		struct cut_report report;
		struct fake f;

		fake_init(&f, N_CPUS);
		put_version_7(&f, zstd, false);
		cut_all(&f, &report);
		assert_int_equal(report.events, 6);
		assert_int_equal(report.bytes, 3 * 4096);
		assert_int_equal(report.lost_events, 5);
		assert_false(result_says_lost(&f));
		if (zstd) {
			assert_int_equal(unlinkat(f.dir_fd, RESULT, 0), 0);
			put_version_7(&f, zstd, true);
			cut_all(&f, &report);
			assert_int_equal(report.events, 3);
			assert_true(result_says_lost(&f));
		}
		fake_done(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subbuf_sizes),  cmocka_unit_test(test_range),
		cmocka_unit_test(test_boots),	      cmocka_unit_test(test_losses),
		cmocka_unit_test(test_no_date),	      cmocka_unit_test(test_boots_long_ago),
		cmocka_unit_test(test_boots_by_name), cmocka_unit_test(test_changes),
		cmocka_unit_test(test_date_since),    cmocka_unit_test(test_version_7),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
