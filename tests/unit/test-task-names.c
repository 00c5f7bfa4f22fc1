/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "tests/unit/tmp.h"
#include "writer/task-names.h"

#define _cleanup_names_ _cleanup_(task_names_freep)

/* What is rendered into @room bytes is @text, then newlines */
static void assert_rendered(struct task_names *names, size_t room, const char *text)
{
	_cleanup_free_ char *is = NULL;
	size_t used = SIZE_MAX;

	assert_int_equal(task_names_render(names, room, &is, &used), 0);
	assert_int_equal(used, strlen(text));
	assert_memory_equal(is, text, used);
	for (size_t i = used; i < room; i++)
		assert_int_equal(is[i], '\n');
}

static size_t count(struct task_names *names)
{
	_cleanup_free_ char *is = NULL;
	size_t used = 0, n = 0;

	assert_int_equal(task_names_render(names, 4 * MIB, &is, &used), 0);
	for (size_t i = 0; i < used; i++)
		n += is[i] == '\n';
	return n;
}

static void test_merge(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);

	assert_non_null(names);
	assert_rendered(names, 10, "");
	assert_rendered(names, 0, "");
	assert_int_equal(task_names_merge(names, ""), 0);
	assert_int_equal(task_names_merge(names, "30 c\n1 init\n20 two words\n"), 0);
	assert_int_equal(count(names), 3);
	assert_rendered(names, 200, "1 init\n20 two words\n30 c\n");
	assert_int_equal(task_names_merge(names, "20 renamed\n7 new"),
			 0); /* no newline at the end */
	assert_rendered(names, 200, "1 init\n7 new\n20 renamed\n30 c\n");
	assert_int_equal(count(names), 4);
}

static void test_lines_that_are_none(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);

	assert_int_equal(
		task_names_merge(names,
				 "\n\n5 <...>\n0 swapper\n-3 minus\n99999999999 far\nword\n6\n7 \n"
				 "8    \n 9x y\n4294967295 last\n\n10  b\n"),
		0);
	/* Names that are empty or blank would be no names to those who read the section */
	assert_rendered(names, 200, "10  b\n4294967295 last\n");
	/* An unknown name does not replace a known one */
	assert_int_equal(task_names_merge(names, "10 <...>\n"), 0);
	assert_rendered(names, 200, "10  b\n4294967295 last\n");
}

static void test_odd_names(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);

	assert_int_equal(
		task_names_merge(names, "1 a\tb\033[31m\r\n2 0123456789abcdefgh\n3 \303\244\n"), 0);
	assert_rendered(names, 200, "1 a?b?[31m?\n2 0123456789abcde\n3 \303\244\n");
}

static void test_max_drops_the_oldest(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(4);

	assert_int_equal(task_names_merge(names, "1 a\n2 b\n3 c\n"), 0);
	assert_int_equal(task_names_merge(names, "2 b\n50 e\n"), 0);
	assert_int_equal(count(names), 4);
	/* One too many: one goes, of those seen longest ago, not all of them */
	assert_int_equal(task_names_merge(names, "60 f\n"), 0);
	assert_int_equal(count(names), 4);
	assert_rendered(names, 200, "1 a\n2 b\n50 e\n60 f\n");
	/* More at once than there is room for */
	assert_int_equal(task_names_merge(names, "61 g\n62 h\n63 i\n64 j\n65 k\n"), 0);
	assert_rendered(names, 200, "61 g\n62 h\n63 i\n64 j\n");
	assert_int_equal(task_names_merge(names, "1 z\n"), 0);
	assert_rendered(names, 200, "1 z\n61 g\n62 h\n63 i\n");
}

static void test_room(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);

	assert_int_equal(task_names_merge(names, "1 old\n200 older\n"), 0);
	assert_int_equal(task_names_merge(names, "3 new\n4 x\n"), 0);
	assert_rendered(names, 26, "1 old\n3 new\n4 x\n200 older\n"); /* to the last byte */
	assert_rendered(names, 25, "1 old\n3 new\n4 x\n");
	assert_rendered(names, 15, "3 new\n4 x\n");
	assert_rendered(names, 10, "3 new\n4 x\n");
	assert_rendered(names, 9, "3 new\n");
	assert_rendered(names, 5, "");
	assert_rendered(names, 0, "");
	assert_int_equal(count(names), 4);
}

static void test_many(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(10000);
	_cleanup_free_ char *text = NULL;
	size_t size, used;
	FILE *out;

	for (unsigned round = 0; round < 4; round++) {
		_cleanup_free_ char *lines = NULL;

		out = open_memstream(&lines, &size);
		assert_non_null(out);
		for (unsigned i = 8000; i-- > 0;)
			assert_true(fprintf(out, "%u r%u\n", 1 + round * 4000 + i, round) > 0);
		assert_int_equal(fclose(out), 0);
		assert_int_equal(task_names_merge(names, lines), 0);
	}
	assert_int_equal(count(names), 10000);
	assert_int_equal(task_names_render(names, 4 * MIB, &text, &used), 0);
	assert_non_null(strstr(text, "\n20000 r3\n"));
	assert_non_null(strstr(text, "\n12001 r3\n"));
	assert_non_null(strstr(text, "\n10000 r2\n"));
	assert_null(strstr(text, "\n10001 r2\n"));
	assert_int_equal(strncmp(text, "8001 r2\n", 8), 0);
}

static void test_scan(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);
	struct tmp tmp;

	tmp_init(&tmp);
	tmp_write(&tmp, "1/task/1/comm", "init\n");
	tmp_write(&tmp, "40/task/40/comm", "many\n");
	tmp_write(&tmp, "40/task/41/comm", "of\nthem\n");
	tmp_write(&tmp, "40/task/42/comm", "\n"); /* has no name */
	tmp_write(&tmp, "40/task/43/comm", "");
	tmp_write(&tmp, "40/task/44/other", "ended meanwhile");
	tmp_write(&tmp, "50/comm", "no task directory\n");
	tmp_write(&tmp, "60/task/60/comm", "kworker/u16:3-events_unbound\n");
	tmp_write(
		&tmp, "61/task/61/comm",
		"                                                                                ");
	tmp_write(&tmp, "self/task/70/comm", "twice\n");
	tmp_write(&tmp, "stat", "not a directory\n");
	assert_int_equal(task_names_merge(names, "1 before\n2 gone\n"), 0);
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0);
	assert_rendered(names, 200, "1 init\n2 gone\n40 many\n41 of?them\n60 kworker/u16:3-e\n");
	tmp_write(&tmp, "80/task/80/comm", "new\n");
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0); /* within a second: not again */
	assert_int_equal(count(names), 5);
	(void)usleep(1100 * 1000);
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0); /* the fd is where it was */
	assert_int_equal(count(names), 6);
	tmp_done(&tmp);
}

static void test_scan_that_fails(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);
	struct tmp tmp;

	assert_int_equal(task_names_scan_proc(names, -1), -EBADF);
	assert_int_equal(count(names), 0);
	tmp_init(&tmp);
	tmp_write(&tmp, "1/task/1/comm", "init\n");
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0); /* did not count */
	assert_int_equal(count(names), 1);
	tmp_done(&tmp);
}

static void test_scan_the_real_proc(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100000);
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	char line[64];

	assert_true(proc >= 0);
	assert_int_equal(task_names_scan_proc(names, proc), 0);
	assert_int_equal(task_names_render(names, MIB, &text, NULL), 0);
	(void)snprintf(line, sizeof(line), "\n%d test-task-names", getpid());
	assert_non_null(strstr(text, line));
}

/* Merges @n tasks from pid @from on; returns bytes of their lines */
static size_t merge_tasks(struct task_names *names, unsigned from, unsigned n, char name)
{
	_cleanup_free_ char *text = malloc(n * 16UL + 1);
	size_t size = 0;

	assert_non_null(text);
	text[0] = '\0';
	for (unsigned i = 0; i < n; i++)
		size += (size_t)sprintf(text + size, "%u %c%u\n", from + i, name, i);
	assert_int_equal(task_names_merge(names, text), 0);
	return size;
}

static size_t next_room(struct task_names *names)
{
	size_t room = 0;

	assert_int_equal(task_names_next_room(names, &room), 0);
	return room;
}

static void test_room_of_the_next(void **state)
{
	const size_t first = 32768 * 24, least = 256 * KIB, left = 128 * KIB;
	_cleanup_names_ struct task_names *names = task_names_new(200000);
	size_t old, came, few;

	assert_int_equal(next_room(names), first);
	old = merge_tasks(names, 100, 1000, 'a');
	assert_int_equal(next_room(names), old + first);
	task_names_file_begun(names);
	assert_false(task_names_fill(names, old + left));
	assert_true(task_names_fill(names, old + left - 1));

	/* What was not seen again is needed by this file, not by the next one */
	came = merge_tasks(names, 20000, 20000, 'b');
	assert_true(4 * came > least);
	assert_int_equal(next_room(names), came + 4 * came);
	assert_false(task_names_fill(names, old + came + left));
	assert_true(task_names_fill(names, old + came + left - 1));
	/* Pids that are used again need no more room */
	assert_int_equal(merge_tasks(names, 20000, 20000, 'c'), came);
	assert_int_equal(next_room(names), came + 4 * came);

	/* When it gets quiet again, files get smaller again, but not below the least */
	task_names_file_begun(names);
	few = merge_tasks(names, 100, 1000, 'd');
	assert_int_equal(next_room(names), few + least);
	assert_true(task_names_fill(names, few + came + left - 1));
	task_names_file_begun(names);
	assert_false(task_names_fill(names, few + left));
	assert_int_equal(next_room(names), least);
}

static void test_room_for_those_alive(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);
	struct tmp tmp;

	tmp_init(&tmp);
	tmp_write(&tmp, "1/task/1/comm", "init\n");
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0);
	task_names_file_begun(names);
	/* Looked at a moment ago, they are not looked at again for the next file */
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0);
	assert_int_equal(task_names_merge(names, "7 new\n"), 0);
	assert_int_equal(next_room(names), strlen("1 init\n7 new\n") + 256 * KIB);
	tmp_done(&tmp);
}

static void test_free_null(void **state)
{
	task_names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_lines_that_are_none),
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_max_drops_the_oldest),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_scan_the_real_proc),
		cmocka_unit_test(test_free_null),
		cmocka_unit_test(test_scan_that_fails),
		cmocka_unit_test(test_room_of_the_next),
		cmocka_unit_test(test_room_for_those_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
