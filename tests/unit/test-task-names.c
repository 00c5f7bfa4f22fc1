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

/* As /proc/PID/stat is */
static void put_stat(struct tmp *tmp, const char *path, int pid, const char *comm, unsigned start)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "%d (%s) S 0 1 1 0 -1 4194560 30 40 0 0 5 6 7 8 20 0 1 0 %u 170 13 18446744",
		       pid, comm, start);
	tmp_write(tmp, path, text);
}

static void test_scan(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);
	struct tmp tmp;

	tmp_init(&tmp);
	put_stat(&tmp, "1/task/1/stat", 1, "init", 0);
	put_stat(&tmp, "40/task/40/stat", 40, "many", 9);
	put_stat(&tmp, "40/task/41/stat", 41, "of\nthem", 9);
	put_stat(&tmp, "40/task/42/stat", 42, "", 9); /* has no name */
	tmp_write(&tmp, "40/task/43/stat", "");
	tmp_write(&tmp, "40/task/44/other", "ended meanwhile");
	put_stat(&tmp, "40/task/45/stat", 45, ") S 1 (x)", 9);
	tmp_write(&tmp, "40/task/46/stat", "46 (cut");
	tmp_write(&tmp, "50/stat", "no task directory");
	put_stat(&tmp, "60/task/60/stat", 60, "kworker/u16:3-events_unbound", 9);
	put_stat(&tmp, "61/task/61/stat", 61, "                                           ", 9);
	put_stat(&tmp, "self/task/70/stat", 70, "twice", 9);
	tmp_write(&tmp, "stat", "not a directory\n");
	assert_int_equal(task_names_merge(names, "1 before\n2 gone\n"), 0);
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0);
	assert_rendered(names, 200,
			"1 init\n2 gone\n40 many\n41 of?them\n45 ) S 1 (x)\n60 kworker/u16:3-e\n");
	put_stat(&tmp, "80/task/80/stat", 80, "new", 9);
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0); /* within a second: not again */
	assert_int_equal(count(names), 6);
	(void)usleep(1100 * 1000);
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0); /* the fd is where it was */
	assert_int_equal(count(names), 7);
	tmp_done(&tmp);
}

static void test_scan_that_fails(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);
	struct tmp tmp;

	assert_int_equal(task_names_scan_proc(names, -1), -EBADF);
	assert_int_equal(count(names), 0);
	tmp_init(&tmp);
	put_stat(&tmp, "1/task/1/stat", 1, "init", 0);
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

/* --- who they are */

static int on_task(void *userdata, const struct own_look *look, const struct own_task *task)
{
	char *text = userdata;
	size_t n = strlen(text);

	(void)snprintf(text + n, 2048 - n, "%s%d/%d %u %s %s %u", n ? ", " : "", task->pid,
		       task->tgid, (unsigned)task->start, task->name,
		       task->cgroup ? task->cgroup : "-", look->hierarchy);
	return 0;
}

/* What a file that was told of tasks up to @since is to be told now */
static void assert_tasks(struct task_names *names, uint32_t *since, const char *want)
{
	struct own_tasks_writer *writer = own_tasks_writer_new();
	_cleanup_free_ uint8_t *part = NULL;
	char text[2048] = "";
	const struct own_tasks_reader reader = {.on_task = on_task, .userdata = text};
	size_t size;

	assert_int_equal(task_names_put_tasks(names, since, writer, MIB, &part, &size), 0);
	if (part)
		assert_int_equal(own_tasks_read(part, size, __BYTE_ORDER == __BIG_ENDIAN, &reader),
				 0);
	assert_string_equal(text, want);
	own_tasks_writer_free(writer);
}

static void test_tasks(void **state)
{
	_cleanup_names_ struct task_names *names = task_names_new(100);
	uint32_t first = 0, second = 0;
	struct tmp tmp;

	tmp_init(&tmp);
	put_stat(&tmp, "1/task/1/stat", 1, "init", 0);
	tmp_write(&tmp, "1/cgroup", "0::/init.scope\n");
	put_stat(&tmp, "40/task/40/stat", 40, "many", 100);
	put_stat(&tmp, "40/task/41/stat", 41, "of them", 101);
	tmp_write(&tmp, "40/cgroup", "0::/system.slice/many.service\n");
	put_stat(&tmp, "60/task/60/stat", 60, "kworker/u16:3-events_unbound", 9);
	put_stat(&tmp, "62/task/62/stat", 62, "kworker/0:1H+kblockd", 9);
	put_stat(&tmp, "63/task/63/stat", 63, "kworker/R-rcu_gp", 9);
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0);
	assert_tasks(names, &first,
		     "1/1 0 init /init.scope 0, 40/40 100 many /system.slice/many.service 0, "
		     "41/40 101 of them /system.slice/many.service 0, 60/60 9 kworker/u16:3 - 0, "
		     "62/62 9 kworker/0:1H - 0, 63/63 9 kworker/R-rcu_g - 0");
	assert_tasks(names, &first, "");

	/* new ones are looked for by their names: one that is there, a thread, one that has ended
	 */
	put_stat(&tmp, "80/stat", 80, "new", 500);
	tmp_write(&tmp, "80/status", "Name:\tnew\nUmask:\t0022\nState:\tS\nTgid:\t80\nNgid:\t0\n");
	tmp_write(&tmp, "80/cgroup", "0::/system.slice/new.service\n");
	put_stat(&tmp, "81/stat", 81, "thread", 501);
	tmp_write(&tmp, "81/status", "Name:\tthread\nTgid:\t80\n");
	tmp_write(&tmp, "81/cgroup", "0::/system.slice/new.service/sub\n");
	assert_int_equal(task_names_merge(names, "40 many\n80 new\n81 thread\n82 ended\n"), 0);
	assert_int_equal(task_names_look(names, tmp.fd), 0);
	assert_tasks(names, &first,
		     "80/80 500 new /system.slice/new.service 0, "
		     "81/80 501 thread /system.slice/new.service/sub 0");
	/* who has ended is not looked for again, but under another name */
	put_stat(&tmp, "82/stat", 82, "ended", 600);
	tmp_write(&tmp, "82/status", "Name:\tended\nTgid:\t82\n");
	tmp_write(&tmp, "82/cgroup", "0::/a.service\n");
	assert_int_equal(task_names_merge(names, "82 ended\n"), 0);
	assert_int_equal(task_names_look(names, tmp.fd), 0);
	assert_tasks(names, &first, "");
	assert_int_equal(task_names_merge(names, "82 again\n"), 0);
	assert_int_equal(task_names_look(names, tmp.fd), 0);
	assert_tasks(names, &first, "82/82 600 ended /a.service 0");

	/* a walk finds who moved, who has another name, and who is another */
	(void)usleep(1100 * 1000);
	put_stat(&tmp, "1/task/1/stat", 1, "systemd", 0);
	tmp_write(&tmp, "40/cgroup", "0::/system.slice/other.service\n");
	put_stat(&tmp, "60/task/60/stat", 60, "kworker/u16:3-events_unbound", 10);
	put_stat(&tmp, "62/task/62/stat", 62, "kworker/0:1H", 9); /* no news */
	assert_int_equal(task_names_scan_proc(names, tmp.fd), 0);
	assert_tasks(names, &first,
		     "1/1 0 systemd /init.scope 0, 40/40 100 many /system.slice/other.service 0, "
		     "41/40 101 of them /system.slice/other.service 0, 60/60 10 kworker/u16:3 - 0");
	/* the next file is told of those who are alive: of 80 and 81 there is no directory "task"
	 */
	assert_tasks(names, &second,
		     "1/1 0 systemd /init.scope 0, 40/40 100 many /system.slice/other.service 0, "
		     "41/40 101 of them /system.slice/other.service 0, 60/60 10 kworker/u16:3 - 0, "
		     "62/62 9 kworker/0:1H - 0, 63/63 9 kworker/R-rcu_g - 0");
	tmp_done(&tmp);
}

/* Of the hierarchies that a machine may have */
static void test_hierarchies(void **state)
{
	static const struct {
		const char *cgroup, *want;
	} rows[] = {
		{"0::/new.scope\n", "/new.scope 0"},
		{"0::/\n", "/ 0"},
		/* hybrid: both have it, or systemd's own alone */
		{"12:pids:/p\n11:cpu,cpuacct:/c\n1:name=systemd:/old.scope\n0::/new.scope\n",
		 "/old.scope 1"},
		{"9:name=systemd:/old.scope\n8:pids:/\n0::/\n", "/old.scope 9"},
		/* nobody uses systemd's own */
		{"9:name=systemd:/\n8:memory:/m\n0::/new.scope\n", "/new.scope 9"},
		{"9:name=systemd:/\n8:memory:/m\n0::/\n", "/ 9"},
		{"4:name=other:/x\n1:name=systemd:/docker/1:2\n", "/docker/1:2 1"},
		{"8:memory:/m\n", "- 0"},
		{"", "- 0"},
		{"nonsense\n1\n:\n::\n", " 0"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_names_ struct task_names *names = task_names_new(100);
		uint32_t since = 0;
		char want[128];
		struct tmp tmp;

		tmp_init(&tmp);
		put_stat(&tmp, "7/task/7/stat", 7, "a", 1);
		tmp_write(&tmp, "7/cgroup", rows[i].cgroup);
		assert_int_equal(task_names_scan_proc(names, tmp.fd), 0);
		(void)snprintf(want, sizeof(want), "7/7 1 a %s", rows[i].want);
		assert_tasks(names, &since, want);
		tmp_done(&tmp);
	}
}

/* This very test, and no more tasks than there may be */
static void test_tasks_of_the_real_proc(void **state)
{
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t max = 1; max <= 100000; max *= 100000) {
		_cleanup_names_ struct task_names *names = task_names_new(max);
		struct own_tasks_writer *writer = own_tasks_writer_new();
		_cleanup_free_ uint8_t *part = NULL;
		_cleanup_free_ char *text = calloc(1, MIB);
		const struct own_tasks_reader reader = {.on_task = on_task, .userdata = text};
		uint32_t since = 0;
		size_t size;

		assert_int_equal(task_names_scan_proc(names, proc), 0);
		assert_int_equal(task_names_put_tasks(names, &since, writer, MIB, &part, &size), 0);
		assert_int_equal(own_tasks_read(part, size, __BYTE_ORDER == __BIG_ENDIAN, &reader),
				 0);
		assert_int_equal(strchr(text, ',') == NULL, max == 1);
		own_tasks_writer_free(writer);
	}
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
	put_stat(&tmp, "1/task/1/stat", 1, "init", 0);
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
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_hierarchies),
		cmocka_unit_test(test_tasks_of_the_real_proc),
		cmocka_unit_test(test_free_null),
		cmocka_unit_test(test_scan_that_fails),
		cmocka_unit_test(test_room_of_the_next),
		cmocka_unit_test(test_room_for_those_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
