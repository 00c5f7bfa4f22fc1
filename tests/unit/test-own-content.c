/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec's own section in the files that are recorded, and in snapshots that are made of them.
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
#include "tests/unit/fake-file.h"
#include "writer/compact.h"
#include "writer/cut.h"
#include "writer/together.h"

#define OLDER  "20231114T221320.001000Z.dat" /* FAKE_DATE + 1000 */
#define LATER  "20231114T221320.002000Z.dat"
#define RESULT "result.dat"
#define BOOT   "fedcba9876543210" /* of fake_init()'s files */

static struct own_clock reading(enum own_clock_at at, uint64_t usec)
{
	return (struct own_clock){
		.realtime = (FAKE_DATE + usec) * NSEC_PER_USEC,
		.trace = usec * NSEC_PER_USEC,
		.boot = usec * NSEC_PER_USEC,
		.at = at,
	};
}

static void init_clocks(struct own_clocks *clocks, enum own_clock_at at, uint64_t usec)
{
	const struct own_clock one = reading(at, usec);

	own_clocks_init(clocks, "mono", (const uint8_t *)BOOT);
	(void)own_clocks_add(clocks, &one);
}

static void add(struct trace_file *file, enum own_clock_at at, uint64_t usec)
{
	const struct own_clock one = reading(at, usec);

	assert_int_equal(trace_file_add_clock(file, &one), 0);
}

static struct trace_dat *open_dat(struct fake *f, const char *name)
{
	struct trace_dat *dat = NULL;
	struct fault why = {};
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/dir/%s", f->tmp.path, name);
	if (trace_dat_open(path, &dat, &why) < 0)
		fail_msg("%s", why.text);
	return dat;
}

/* The readings of a file are these: "begin 5, end 7" */
static void assert_clocks(struct fake *f, const char *name, const char *want)
{
	_cleanup_trace_dat_ struct trace_dat *dat = open_dat(f, name);
	const struct own_clock *list[OWN_CLOCKS_MAX];
	struct own_clocks clocks;
	char text[200] = "";
	size_t n, at = 0;

	if (own_content_clocks(dat, &clocks, NULL, NULL) < 0) {
		assert_null(want);
		return;
	}
	assert_string_equal(clocks.clock, "mono");
	assert_memory_equal(clocks.boot_id, BOOT, 16);
	n = own_clocks_list(&clocks, list);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %u", i ? ", " : "",
				       own_clock_at_name(list[i]->at),
				       (unsigned)(list[i]->trace / NSEC_PER_USEC));
	assert_non_null(want);
	assert_string_equal(text, want);
}

/* A file of one sub-buffer, with a reading at its begin and one at its end */
static void make_segment(struct fake *f, const char *name, uint64_t from_usec, uint64_t to_usec)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_clocks clocks;

	init_clocks(&clocks, OWN_CLOCK_BEGIN, from_usec);
	f->params.own.clocks = &clocks;
	file = fake_create(f, name);
	fake_put(file, 0, 0, (from_usec + 1) * NSEC_PER_USEC);
	fake_set_size(file, 0, FAKE_SUBBUF);
	add(file, OWN_CLOCK_END, to_usec);
	assert_int_equal(trace_file_complete(file), 0);
	f->params.own.clocks = NULL;
}

static void test_live(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_clocks clocks;
	struct fake f;

	fake_init(&f, 3);
	init_clocks(&clocks, OWN_CLOCK_BEGIN, 5);
	f.params.own.clocks = &clocks;
	file = fake_create(&f, "current.dat");
	fake_verify(&f, "current.dat", 0);
	assert_clocks(&f, "current.dat", "begin 5");
	add(file, OWN_CLOCK_STEP, 7);
	assert_clocks(&f, "current.dat", "begin 5, step 7");
	/* another process goes on */
	trace_file_free(TAKE_PTR(file));
	file = fake_open(&f, "current.dat");
	add(file, OWN_CLOCK_BEGIN, 9);
	add(file, OWN_CLOCK_END, 11);
	assert_clocks(&f, "current.dat", "begin 5, step 7, begin 9, end 11");
	fake_verify(&f, "current.dat", 0);
	fake_done(&f);
}

/* Neither those of an earlier version nor what is damaged keeps a file from being taken up */
static void test_without(void **state)
{
	struct own_clocks clocks;
	struct fake f;

	fake_init(&f, 2);
	for (unsigned damaged = 0; damaged < 2; damaged++) {
		_cleanup_file_ struct trace_file *file = NULL;
		struct trace_file_region region;

		init_clocks(&clocks, OWN_CLOCK_BEGIN, 5);
		f.params.own.clocks = damaged ? &clocks : NULL;
		file = fake_create(&f, "a.dat");
		trace_file_region(file, 0, &region);
		for (uint64_t at = 0; damaged && at < region.offset; at += OWN_SECTION_ALIGN) {
			char magic[16];

			assert_int_equal(io_pread_all(region.buffered_fd, magic, 16, at), 0);
			if (strcmp(magic, OWN_SECTION_MAGIC) == 0)
				assert_int_equal(
					io_pwrite_all(region.buffered_fd, "xxxx", 4, at + 16), 0);
		}
		trace_file_free(TAKE_PTR(file));
		file = fake_open(&f, "a.dat");
		add(file, OWN_CLOCK_END, 6);
		assert_clocks(&f, "a.dat", NULL);
		assert_int_equal(unlinkat(f.dir_fd, "a.dat", 0), 0);
	}
	fake_done(&f);
}

/* What is only reserved is there as room, for who has something to say later */
static void test_rooms(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_own_section_ struct own_section own = {};
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_clocks clocks;
	struct fault why = {};
	struct fake f;
	int fd;

	fake_init(&f, 2);
	init_clocks(&clocks, OWN_CLOCK_BEGIN, 5);
	f.params.own =
		(struct own_content){.clocks = &clocks, .tasks_room = 200000, .findings_room = 100};
	file = fake_create(&f, "a.dat");
	fake_verify(&f, "a.dat", 0);
	fd = openat(f.dir_fd, "a.dat", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, "a.dat", &dat, &why), 0);
	assert_int_equal(own_section_load(dat, &own, &why), 0);
	assert_int_equal(own.n, 3);
	assert_true(own.entries[1].room >= 200000);
	assert_true(own.place + own.size <= dat->buffers[0].regions[0].offset);
	assert_int_equal(own_section_write(dat, OWN_FINDINGS, "a finding", 9, &why), 0);
	assert_int_equal(own_section_write(dat, OWN_JOURNAL, "a line", 6, &why), -ENOENT);
	assert_clocks(&f, "a.dat", "begin 5");
	fake_verify(&f, "a.dat", 0);
	close(fd);
	fake_done(&f);
}

/* Gaps are closed behind it */
static void test_compact(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_clocks clocks;
	struct fault why = {};
	struct fake f;

	fake_init(&f, 3);
	init_clocks(&clocks, OWN_CLOCK_BEGIN, 5);
	f.params.own.clocks = &clocks;
	file = fake_create(&f, "a.dat");
	for (unsigned cpu = 0; cpu < 3; cpu++) {
		fake_put(file, cpu, 0, 7);
		fake_set_size(file, cpu, FAKE_SUBBUF);
	}
	add(file, OWN_CLOCK_END, 9);
	assert_int_equal(trace_file_complete(file), 0);
	assert_true(compact_file(file, f.dir_fd, "a.dat", &why) >= 0);
	fake_verify(&f, "a.dat", 3);
	assert_clocks(&f, "a.dat", "begin 5, end 9");
	fake_done(&f);
}

static void cut_range(struct fake *f, uint64_t from, uint64_t to, const struct cut_note *note)
{
	_cleanup_(cut_freep) struct cut *cut = NULL;
	struct cut_report report;
	struct fault why = {};

	(void)unlinkat(f->dir_fd, RESULT, 0);
	if (cut_open(f->dir_fd, FAKE_DATE + from, FAKE_DATE + to, &cut, &why) < 0 ||
	    cut_write(cut, f->dir_fd, RESULT, note, &report, &why) < 0)
		fail_msg("%s", why.text);
}

static void test_cut(void **state)
{
	static const struct own_cause cause = {FAKE_DATE, "event", "for: x\n"};
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	struct cut_note note = {.text = "flyrec snapshot\n", .own.cause = &cause};
	_cleanup_free_ uint8_t *data = NULL;
	struct own_clocks now, other;
	struct own_cause read;
	struct fake f;
	size_t size, at = 0;

	fake_init(&f, 2);
	make_segment(&f, OLDER, 1000, 2000);
	make_segment(&f, LATER, 2000, 3000);
	init_clocks(&now, OWN_CLOCK_SNAPSHOT, 4000);
	note.own.clocks = &now;
	cut_range(&f, 0, 5000, &note);
	fake_verify(&f, RESULT, 2);
	assert_clocks(&f, RESULT, "begin 1000, end 2000, begin 2000, end 3000, snapshot 4000");
	dat = open_dat(&f, RESULT);
	assert_int_equal(own_section_read(dat, OWN_CAUSE, &data, &size, NULL), 0);
	assert_int_equal(own_cause_take(data, size, dat->big_endian, &at, &read), 1);
	assert_int_equal(read.usec, FAKE_DATE);
	assert_string_equal(read.reason, "event");
	assert_string_equal(read.text, "for: x\n");
	assert_int_equal(own_cause_take(data, size, dat->big_endian, &at, &read), 0);

	/* those of one of them; what is of now only if it is of that boot and clock */
	cut_range(&f, 2500, 2600, &note);
	assert_clocks(&f, RESULT, "begin 2000, end 3000, snapshot 4000");
	other = now;
	other.boot_id[3] ^= 1;
	note.own.clocks = &other;
	cut_range(&f, 2500, 2600, &note);
	assert_clocks(&f, RESULT, "begin 2000, end 3000");
	other = now;
	other.clock[3] = 'x';
	cut_range(&f, 2500, 2600, &note);
	assert_clocks(&f, RESULT, "begin 2000, end 3000");
	fake_done(&f);
}

/* Of many readings those in the range, and the ones next to it */
static void test_cut_near(void **state)
{
	static const struct cut_note note = {.text = "flyrec snapshot\n"};
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_clocks clocks;
	struct fake f;

	fake_init(&f, 1);
	init_clocks(&clocks, OWN_CLOCK_BEGIN, 100);
	f.params.own.clocks = &clocks;
	file = fake_create(&f, OLDER);
	fake_put(file, 0, 0, 2450 * NSEC_PER_USEC);
	fake_set_size(file, 0, FAKE_SUBBUF);
	for (unsigned usec = 200; usec < 3000; usec += 100)
		add(file, OWN_CLOCK_STEP, usec);
	cut_range(&f, 2250, 2450, &note);
	assert_clocks(&f, RESULT, "step 2200, step 2300, step 2400, step 2500");
	cut_range(&f, 2450, 9999, &note);
	assert_clocks(&f, RESULT,
		      "step 2400, step 2500, step 2600, step 2700, step 2800, step 2900");
	fake_done(&f);
}

/* Segments of before have none, nor has what is cut out of them but what is of now */
static void test_cut_of_older(void **state)
{
	static const struct cut_note note = {.text = "flyrec snapshot\n"};
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_section own = {};
	struct fake f;

	fake_init(&f, 1);
	file = fake_create(&f, OLDER);
	fake_put(file, 0, 0, 2450 * NSEC_PER_USEC);
	fake_set_size(file, 0, FAKE_SUBBUF);
	cut_range(&f, 0, 9999, &note);
	fake_verify(&f, RESULT, 1);
	dat = open_dat(&f, RESULT);
	assert_int_equal(own_section_load(dat, &own, NULL), -ENOENT);
	fake_done(&f);
}

static int open_part(struct fake *f, const char *name)
{
	int fd = openat(f->dir_fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void test_together(void **state)
{
	struct cut_note note = {.text = "flyrec snapshot of sessions\n"};
	struct together_part parts[2] = {{.name = "a"}, {.name = "b"}};
	struct cut_report report;
	struct fault why = {};
	struct own_clocks now;
	struct fake f;

	fake_init(&f, 2);
	make_segment(&f, OLDER, 1000, 2100);
	make_segment(&f, LATER, 2000, 3000);
	for (unsigned i = 0; i < 2; i++)
		parts[i].fd = open_part(&f, i == 0 ? LATER : OLDER);
	init_clocks(&now, OWN_CLOCK_SNAPSHOT, 4000);
	note.own.clocks = &now;
	if (together_write(parts, 2, f.dir_fd, RESULT, &note, &report, &why) < 0)
		fail_msg("%s", why.text);
	fake_verify(&f, RESULT, 2);
	assert_clocks(&f, RESULT, "begin 1000, begin 2000, end 2100, end 3000, snapshot 4000");
	for (unsigned i = 0; i < 2; i++)
		close(parts[i].fd);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live),	     cmocka_unit_test(test_without),
		cmocka_unit_test(test_rooms),	     cmocka_unit_test(test_compact),
		cmocka_unit_test(test_cut),	     cmocka_unit_test(test_cut_near),
		cmocka_unit_test(test_cut_of_older), cmocka_unit_test(test_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
