/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several files side by side in one: what is in it, and what is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "ctl/verify.h"
#include "formats/trace-dat.h"
#include "tests/unit/craft.h"
#include "tests/unit/fake-file.h"
#include "writer/file-info.h"
#include "writer/together.h"

#define SUBBUF FAKE_SUBBUF
#define NAME   "20260101T000000.000000Z-together.dat"
#define N_CPUS 2U

static const char other[] =
	"name: other\nID: 43\n" CRAFT_COMMON_FIELDS
	"\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"a=%d\", REC->a\n";

static int copy_error; /* 0: io_copy_range() works */

int __real_io_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size);
int __wrap_io_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size);

int __wrap_io_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size)
{
	return copy_error < 0 ? copy_error : __real_io_copy_range(from, from_at, to, to_at, size);
}

static void set_stats(struct fake *f, struct trace_file *file, unsigned cpu, unsigned subbufs)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "CPU: %u\nentries: %u\nflyrec subbufs: %u\nflyrec bytes: %u\n"
		       "flyrec lost events: 0\nflyrec final: yes\n",
		       cpu, 2 * subbufs, subbufs, subbufs * f->params.subbuf_size);
	assert_int_equal(trace_file_write_cpustat(file, cpu, text), 0);
}

/* A session's file: each CPU has @subbufs sub-buffers from @timestamp on; the task 7 is called so
 */
static int make_part(struct fake *f, const char *name, unsigned subbufs, uint64_t timestamp)
{
	struct trace_file *file = fake_create(f, name);
	size_t room = trace_file_names_room(file);
	char *names = malloc(room + 1);
	int fd;

	assert_non_null(names);
	memset(names, '\n', room);
	memcpy(names, "7 ", 2);
	memcpy(names + 2, name, strlen(name));
	assert_int_equal(trace_file_write_names(file, names), 0);
	free(names);
	for (unsigned cpu = 0; cpu < f->params.n_cpus; cpu++) {
		for (unsigned i = 0; i < subbufs; i++)
			fake_put(file, cpu, i * f->params.subbuf_size / SUBBUF,
				 timestamp + 10 * i + cpu);
		fake_set_size(file, cpu, (uint64_t)subbufs * f->params.subbuf_size);
		set_stats(f, file, cpu, subbufs);
	}
	trace_file_free(file);
	fd = openat(f->dir_fd, name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(unlinkat(f->dir_fd, name, 0), 0);
	return fd;
}

static const struct cut_note note = {.text = "flyrec snapshot of sessions\n"};

static int join(struct fake *f, const struct together_part *parts, size_t n, struct fault *why)
{
	struct cut_report report;

	*why = (struct fault){0};
	return together_write(parts, n, f->dir_fd, NAME, &note, &report, why);
}

static struct trace_dat *open_result(struct fake *f)
{
	struct trace_dat *dat = NULL;
	struct fault why = {};
	int fd = openat(f->dir_fd, NAME, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	if (trace_dat_open_fd(fd, NAME, &dat, &why) < 0)
		fail_msg("%s", why.text);
	return dat;
}

static void close_result(struct trace_dat *dat)
{
	int fd = dat->fd;

	trace_dat_free(dat);
	close(fd);
}

/* All CPUSTAT texts in their order, each behind a "|", without what they are filled up with */
static char *all_stats(const struct trace_dat *dat)
{
	size_t from = 0, size;
	char *text = NULL, *all = NULL, *more;

	while (trace_dat_next_note(dat, "", &from, &text, NULL) > 0) {
		assert_true(asprintf(&more, "%s|%s", all ? all : "", text) >= 0);
		free(all);
		free(text);
		all = more;
		size = strlen(all);
		assert_true(size < 2 || strcmp(all + size - 2, " \n") != 0);
	}
	return all;
}

static const struct together_part none = {"none", -EBADF};

static void test_together(void **state)
{
	static char *const systems[] = {(char *)"demo", (char *)"more", NULL};
	struct together_part parts[3] = {{"a", -1}, none, {"b-2", -1}};
	struct trace_dat *dat;
	struct file_info info;
	struct fake f;
	struct fault why;
	char *text;

	fake_init(&f, N_CPUS);
	parts[0].fd = make_part(&f, "a", 3, 1000000);
	tmp_write(&f.tmp, "tracing/events/more/other/format", other);
	f.params.source.systems = systems;
	parts[2].fd = make_part(&f, "b", 2, 1000005);
	assert_int_equal(join(&f, parts, 3, &why), 0);
	fake_verify(&f, NAME, 2 * 3 + 2 * 2);
	assert_int_equal(tmp_count(&f.tmp), 2);

	dat = open_result(&f);
	assert_int_equal(dat->n_cpus, N_CPUS);
	assert_int_equal(dat->n_buffers, 4);
	assert_string_equal(dat->buffers[0].name, "");
	assert_string_equal(dat->buffers[1].name, "a");
	assert_string_equal(dat->buffers[2].name, "none");
	assert_string_equal(dat->buffers[3].name, "b-2");
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		assert_int_equal(dat->buffers[0].regions[cpu].size, 0);
		assert_int_equal(dat->buffers[1].regions[cpu].size, 3 * SUBBUF);
		assert_int_equal(dat->buffers[2].regions[cpu].size, 0);
		assert_int_equal(dat->buffers[3].regions[cpu].size, 2 * SUBBUF);
	}
	/* formats of both, the last one's names, one note */
	assert_int_equal(dat->n_systems, 3);
	assert_int_equal(dat->n_formats, 3);
	assert_int_equal(trace_dat_load(dat, &dat->cmdlines, MIB, &text, &why), 0);
	assert_ptr_equal(strstr(text, "7 b\n"), text);
	free(text);
	text = all_stats(dat);
	assert_ptr_equal(strstr(text, "|\nBuffer: a\n\n|CPU: 0\nentries: 6\n"), text);
	assert_non_null(strstr(text, "|\nBuffer: none\n\n|nothing was recorded in that time\n"));
	assert_non_null(strstr(text, "|\nBuffer: b-2\n\n|CPU: 0\nentries: 4\n"));
	assert_non_null(strstr(text, "yes\n|flyrec snapshot of sessions\n"));
	free(text);
	/* from the first of all, of whatever buffer, to the last */
	assert_int_equal(file_info_read(dat->fd, NAME, &info), 0);
	assert_int_equal(info.start_usec, FAKE_DATE + 1000);
	assert_int_equal(info.n_cpus, N_CPUS);
	close_result(dat);
	close(parts[0].fd);
	close(parts[2].fd);
	fake_done(&f);
}

/* The small ones have each the place of a large one, whichever comes first */
static void test_subbuf_sizes(void **state)
{
	static const char large_page[] =
		"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
		"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		"\tfield: char data;\toffset:16;\tsize:16368;\tsigned:0;\n";
	struct together_part parts[2] = {{"small", -1}, {"large", -1}};
	struct fault why;
	struct fake f;

	fake_init(&f, N_CPUS);
	parts[0].fd = make_part(&f, "small", 3, 1000000);
	tmp_write(&f.tmp, "tracing/instances/t/events/header_page", large_page);
	f.params.subbuf_size = 4 * SUBBUF;
	parts[1].fd = make_part(&f, "large", 2, 1000005);
	for (unsigned i = 0; i < 2; i++) {
		struct trace_dat *dat;
		char *text;

		assert_int_equal(join(&f, parts, 2, &why), 0);
		/* also compares what the statistics say of the data with it */
		fake_verify(&f, NAME, 3 * N_CPUS + 2 * N_CPUS);
		dat = open_result(&f);
		assert_int_equal(dat->page_size, 4 * SUBBUF);
		for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
			assert_int_equal(dat->buffers[1 + i].regions[cpu].size, 3 * 4 * SUBBUF);
			assert_int_equal(dat->buffers[2 - i].regions[cpu].size, 2 * 4 * SUBBUF);
		}
		text = all_stats(dat);
		assert_non_null(strstr(text, "flyrec subbufs: 3\nflyrec lost events: 0\n"));
		assert_non_null(strstr(text, "flyrec subbufs: 2\nflyrec bytes: 32768\n"));
		free(text);
		close_result(dat);
		assert_int_equal(unlinkat(f.dir_fd, NAME, 0), 0);
		SWAP(parts[0], parts[1]);
	}
	close(parts[0].fd);
	close(parts[1].fd);
	fake_done(&f);
}

static void assert_refused(struct fake *f, const struct together_part *parts, size_t n, int error,
			   const char *text)
{
	struct fault why;

	assert_int_equal(join(f, parts, n, &why), error);
	if (!strstr(why.text, text))
		fail_msg("\"%s\", expected \"…%s…\"", why.text, text);
	/* the tracefs and the directory, and in that nothing new */
	assert_int_equal(faccessat(f->dir_fd, NAME, F_OK, 0), -1);
	assert_int_equal(faccessat(f->dir_fd, "." NAME ".new", F_OK, 0), -1);
}

static void test_different(void **state)
{
	struct together_part parts[2] = {{"a", -1}, {"b", -1}};
	struct fake f, single;

	fake_init(&f, N_CPUS);
	parts[0].fd = make_part(&f, "a", 1, 1000000);
	f.params.clock = "[local] mono\n";
	parts[1].fd = make_part(&f, "b", 1, 1000000);
	assert_refused(&f, parts, 2, -EOPNOTSUPP, "a has Clock=mono, b has Clock=local");
	close(parts[1].fd);

	fake_init(&single, 1);
	parts[1].fd = make_part(&single, "b", 1, 1000000);
	assert_refused(&f, parts, 2, -EOPNOTSUPP, "numbers of CPUs");
	close(parts[1].fd);
	fake_done(&single);
	close(parts[0].fd);
	fake_done(&f);
}

static void test_nothing(void **state)
{
	const struct together_part parts[2] = {none, none};
	struct fake f;

	fake_init(&f, N_CPUS);
	assert_refused(&f, parts, 2, -ENODATA, "nothing was recorded in that time");
	fake_done(&f);
}

static void test_broken(void **state)
{
	struct together_part parts[2] = {{"a", -1}, {"b", -1}};
	struct fake f;

	fake_init(&f, N_CPUS);
	parts[0].fd = make_part(&f, "a", 1, 1000000);
	parts[1].fd = make_part(&f, "b", 1, 1000000);
	assert_int_equal(ftruncate(parts[1].fd, 64 * KIB), 0);
	assert_refused(&f, parts, 2, -EBADMSG, "b: offset ");
	assert_int_equal(ftruncate(parts[1].fd, 100), 0);
	assert_refused(&f, parts, 2, -ENODATA, "b: offset ");
	close(parts[0].fd);
	close(parts[1].fd);
	fake_done(&f);
}

static void test_errors(void **state)
{
	struct together_part parts[2] = {{"a", -1}, {"b", -1}};
	struct stat before, after;
	struct fault why;
	struct fake f;

	fake_init(&f, N_CPUS);
	parts[0].fd = make_part(&f, "a", 1, 1000000);
	parts[1].fd = make_part(&f, "b", 1, 1000000);
	copy_error = -ENOSPC;
	assert_refused(&f, parts, 2, -ENOSPC, "cannot copy what a recorded: No space left");
	copy_error = 0;
	/* one that is there is not replaced */
	assert_int_equal(join(&f, parts, 2, &why), 0);
	assert_int_equal(fstatat(f.dir_fd, NAME, &before, 0), 0);
	assert_int_equal(join(&f, parts, 2, &why), -EEXIST);
	assert_int_equal(fstatat(f.dir_fd, NAME, &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(faccessat(f.dir_fd, "." NAME ".new", F_OK, 0), -1);
	close(parts[0].fd);
	close(parts[1].fd);
	fake_done(&f);
}

/* A number in the statistics of the second buffer is wrong: found there, and not of the first */
static void test_verify(void **state)
{
	struct together_part parts[2] = {{"a", -1}, {"b", -1}};
	struct verify_report report;
	struct trace_dat *dat;
	unsigned found = 0;
	struct fault why;
	struct fake f;

	fake_init(&f, N_CPUS);
	parts[0].fd = make_part(&f, "a", 3, 1000000);
	parts[1].fd = make_part(&f, "b", 2, 1000000);
	assert_int_equal(join(&f, parts, 2, &why), 0);
	dat = open_result(&f);
	for (size_t i = 0; i < dat->n_options; i++) {
		char *text = NULL, *number;

		if (dat->options[i].id != TRACE_DAT_OPTION_CPUSTAT)
			continue;
		assert_int_equal(trace_dat_load(dat, &dat->options[i].data, MIB, &text, &why), 0);
		number = strstr(text, "subbufs: 2");
		if (number && found++ == 0)
			assert_int_equal(io_pwrite_all(dat->fd, "subbufs: 3", 10,
						       dat->options[i].data.offset +
							       (uint64_t)(number - text)),
					 0);
		free(text);
	}
	assert_int_equal(found, N_CPUS);
	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	assert_int_equal(report.n_errors, 1);
	assert_non_null(strstr(report.errors[0],
			       "buffer b cpu 0: CPUSTAT says \"flyrec subbufs: 3\""
			       ", the data has 2"));
	verify_report_done(&report);
	close_result(dat);
	close(parts[0].fd);
	close(parts[1].fd);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together),  cmocka_unit_test(test_subbuf_sizes),
		cmocka_unit_test(test_different), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_broken),	  cmocka_unit_test(test_errors),
		cmocka_unit_test(test_verify),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
