/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who a task is: by what files say, by events, and by both */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "decode/who.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"
#include "tests/unit/craft-formats.h"

#define PAGE	 4096
#define BIG	 (__BYTE_ORDER == __BIG_ENDIAN)
#define MSEC	 UINT64_C(1000000)
#define BOOT(s)	 ((uint64_t)(s)*NSEC_PER_SEC)
#define TRACE(s) (BOOT(s) - BOOT(100)) /* the trace's clock is that of boot less 100 s */

#define PRINT "\nprint fmt: \"%d\", REC->common_pid\n"

enum {
	ID_STACK = 5,
	ID_FORK = 10,
	ID_NEW_TASK,
	ID_WAKEUP_NEW,
	ID_EXEC,
	ID_ATTACH,
	ID_BAD_EXEC,
	ID_POPULATED,
};

static const struct craft_format formats[] = {
	{"ftrace", "name: kernel_stack\nID: 5\n" CRAFT_COMMON_FIELDS
		   "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n" PRINT},
	{"sched", "name: sched_process_fork\nID: 10\n" CRAFT_COMMON_FIELDS
		  "\tfield:pid_t parent_pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		  "\tfield:pid_t child_pid;\toffset:12;\tsize:4;\tsigned:1;\n" PRINT},
	{"sched", "name: sched_wakeup_new\nID: 12\n" CRAFT_COMMON_FIELDS
		  "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n" PRINT},
	{"sched", "name: sched_process_exec\nID: 13\n" CRAFT_COMMON_FIELDS
		  "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
		  "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n" PRINT},
	{"task", "name: task_newtask\nID: 11\n" CRAFT_COMMON_FIELDS
		 "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		 "\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
		 "\tfield:unsigned int clone_flags;\toffset:28;\tsize:4;\tsigned:0;\n" PRINT},
	{"cgroup", "name: cgroup_attach_task\nID: 14\n" CRAFT_COMMON_FIELDS
		   "\tfield:int dst_root;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:int pid;\toffset:12;\tsize:4;\tsigned:1;\n"
		   "\tfield:__data_loc char[] dst_path;\toffset:16;\tsize:4;\tsigned:0;\n" PRINT},
	{"cgroup", "name: cgroup_notify_populated\nID: 16\n" CRAFT_COMMON_FIELDS
		   "\tfield:int root;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:int val;\toffset:12;\tsize:4;\tsigned:1;\n"
		   "\tfield:__data_loc char[] path;\toffset:16;\tsize:4;\tsigned:0;\n" PRINT},
	{"other", "name: sched_process_exec\nID: 15\n" CRAFT_COMMON_FIELDS
		  "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n" PRINT},
};

struct fixture {
	struct own_tasks_writer *writer;
	uint8_t *tasks;
	size_t size;
	struct own_clock end; /* one more reading, if boot is not 0 */
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	struct who *who;
	struct who_file file;
	struct fault damage;
};

static void look(struct fixture *f, uint64_t boot, uint32_t hierarchy, const struct own_task *tasks)
{
	const struct own_look look = {boot, hierarchy};
	_cleanup_free_ uint8_t *part = NULL;
	size_t size;

	if (!f->writer)
		f->writer = own_tasks_writer_new();
	own_tasks_begin(f->writer, &look, MIB);
	for (; tasks->pid != 0; tasks++)
		assert_int_equal(own_tasks_add(f->writer, tasks), 0);
	assert_int_equal(own_tasks_end(f->writer, BIG, &part, &size), 0);
	f->tasks = realloc(f->tasks, f->size + size);
	assert_non_null(f->tasks);
	memcpy(f->tasks + f->size, part, size);
	f->size += size;
}

/* @time: the clock counts it */
static void make_section(const struct fixture *f, bool time, uint8_t **ret, size_t *ret_size)
{
	const struct own_clock reading = {
		.trace = TRACE(1000),
		.boot = BOOT(1000),
		.at = OWN_CLOCK_BEGIN,
		.flags = time ? 0 : OWN_CLOCK_NO_TRACE,
	};
	uint8_t clocks_bytes[OWN_CLOCKS_SIZE], boot_id[16] = {};
	struct own_entry entries[] = {
		{.kind = OWN_CLOCKS, .data = clocks_bytes, .size = sizeof(clocks_bytes)},
		{.kind = OWN_TASKS, .data = f->tasks, .size = (uint32_t)f->size},
	};
	struct own_clocks clocks;

	own_clocks_init(&clocks, "mono", boot_id);
	(void)own_clocks_add(&clocks, &reading);
	if (f->end.boot > 0)
		(void)own_clocks_add(&clocks, &f->end);
	own_clocks_put(&clocks, BIG, clocks_bytes);
	assert_int_equal(own_section_build(entries, ARRAY_SIZE(entries), BIG, ret, ret_size), 0);
}

/* A file that says all that was looked at, and that its clock is TRACE(); @clock: NULL: it counts
 */
static void open_file(struct fixture *f, const char *clock, char *const *units,
		      char *const *containers)
{
	const struct craft_file file = {
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.clock = clock ? clock : "local [counter]",
	};
	struct craft c = {.big_endian = BIG, .commit_size = 8};
	_cleanup_free_ uint8_t *own = NULL;
	struct fault why = {};
	size_t size, at;

	make_section(f, clock != NULL, &own, &size);
	craft_file(&c, &file);
	at = round_up(c.size, PAGE);
	f->fd = memfd_create("test-who", MFD_CLOEXEC);
	assert_int_equal(io_pwrite_all(f->fd, c.bytes, c.size, 0), 0);
	assert_int_equal(io_pwrite_all(f->fd, own, size, at), 0);
	craft_done(&c);
	if (trace_dat_open_fd(f->fd, "f", &f->dat, &why) < 0)
		fail_msg("%s", why.text);
	f->dat->buffers[0].regions[0].offset = at + size; /* behind it */
	if (decoder_new(f->dat, &f->decoder, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(who_new(units, containers, false, &f->who), 0);
	if (who_add_file(f->who, f->decoder, &f->file, &f->damage, &why) < 0)
		fail_msg("%s", why.text);
}

static void teardown(struct fixture *f)
{
	who_file_done(&f->file);
	who_free(f->who);
	decoder_free(f->decoder);
	trace_dat_free(f->dat);
	close(f->fd);
	own_tasks_writer_free(f->writer);
	free(f->tasks);
	*f = (struct fixture){};
}

/* "TGID PROCESS PATH" */
static void assert_who(const struct fixture *f, int32_t pid, uint64_t ts, const char *want)
{
	const struct task_who *who = who_find(f->who, pid, ts);
	_cleanup_free_ char *is = !who ? strdup("nobody")
				       : strf("%d %s %s", who->tgid, who->process,
					      who->place ? who->place->path : "-");

	assert_string_equal(is, want);
}

static void event(const struct fixture *f, struct craft *c, uint64_t ts)
{
	struct decode_event e = {.ts = ts, .data = c->bytes, .size = (uint32_t)c->size};

	decoder_identify(f->decoder, &e);
	assert_int_equal(who_event(f->who, &f->file, &e), 0);
	craft_done(c);
}

static struct craft head(unsigned id, int by)
{
	struct craft c = {.big_endian = BIG};

	craft_number(&c, 2, id);
	craft_number(&c, 2, 0);
	craft_number(&c, 4, (uint32_t)by);
	return c;
}

static void fork_at(const struct fixture *f, int parent, int child, uint64_t ts)
{
	struct craft c = head(ID_FORK, parent);

	craft_number(&c, 4, (uint32_t)parent);
	craft_number(&c, 4, (uint32_t)child);
	event(f, &c, ts);
}

static void wakeup_new(const struct fixture *f, int parent, int child, uint64_t ts)
{
	struct craft c = head(ID_WAKEUP_NEW, parent);

	craft_number(&c, 4, (uint32_t)child);
	event(f, &c, ts);
}

static void new_task(const struct fixture *f, int parent, int child, const char *name, bool thread,
		     uint64_t ts)
{
	struct craft c = head(ID_NEW_TASK, parent);
	char comm[16] = "";

	(void)strncat(comm, name, sizeof(comm) - 1);
	craft_number(&c, 4, (uint32_t)child);
	craft_bytes(&c, comm, sizeof(comm));
	craft_number(&c, 4, thread ? 0x10f00 : 0x11);
	event(f, &c, ts);
}

static void exec(const struct fixture *f, int pid, const char *file, uint64_t ts)
{
	struct craft c = head(ID_EXEC, pid);

	craft_number(&c, 4, (uint64_t)(strlen(file) + 1) << 16 | 16);
	craft_number(&c, 4, (uint32_t)pid);
	craft_text(&c, file);
	event(f, &c, ts);
}

static void attach(const struct fixture *f, int root, int pid, const char *path, uint64_t ts)
{
	struct craft c = head(ID_ATTACH, 1);

	craft_number(&c, 4, (uint32_t)root);
	craft_number(&c, 4, (uint32_t)pid);
	craft_number(&c, 4, (uint64_t)(strlen(path) + 1) << 16 | 20);
	craft_text(&c, path);
	event(f, &c, ts);
}

static void populated(const struct fixture *f, int root, int by, int value, const char *path,
		      uint64_t ts)
{
	struct craft c = head(ID_POPULATED, by);

	craft_number(&c, 4, (uint32_t)root);
	craft_number(&c, 4, (uint32_t)value);
	craft_number(&c, 4, (uint64_t)(strlen(path) + 1) << 16 | 20);
	craft_text(&c, path);
	event(f, &c, ts);
}

/* Hundredths of a second since boot */
#define STARTED(s) ((uint64_t)(s)*OWN_TASKS_HZ)

static void test_said(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 9,
	     (struct own_task[]){
		     {1, 1, 0, "systemd", "/init.scope"},
		     {50, 50, STARTED(200), "web", "/a"},
		     {51, 50, STARTED(201), "worker", "/a"},
		     {60, 60, STARTED(300), "db", NULL},
		     {},
	     });
	open_file(&f, "[mono]", NULL, NULL);
	assert_true(f.file.says);
	assert_int_equal(f.file.hierarchy, 9);
	assert_string_equal(f.damage.text, "");
	assert_who(&f, 1, 1, "1 systemd /init.scope"); /* it has been there before the clock was */
	assert_who(&f, 50, TRACE(500), "50 web /a");
	assert_who(&f, 51, TRACE(500), "50 web /a"); /* a thread is its process */
	assert_who(&f, 60, UINT64_MAX, "60 db -");
	assert_who(&f, 61, TRACE(500), "nobody");
	assert_who(&f, 0, TRACE(500), "nobody");
	/* whoever had the pid before it was started is not known */
	assert_who(&f, 50, TRACE(199), "nobody");
	assert_who(&f, 50, TRACE(200) - 5 * MSEC, "50 web /a");
	teardown(&f);
}

static void test_moves_and_twice(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 0,
	     (struct own_task[]){{50, 50, STARTED(200), "web", "/a"},
				 {70, 70, STARTED(300), "one", "/one"},
				 {71, 70, STARTED(300), "thread", "/one"},
				 {}});
	look(&f, BOOT(1100), 0,
	     (struct own_task[]){{50, 50, STARTED(200), "web", "/b"},
				 {70, 70, STARTED(1050), "two", "/two"},
				 {}});
	look(&f, BOOT(1200), 0, (struct own_task[]){{50, 50, STARTED(200), "renamed", "/b"}, {}});
	open_file(&f, "[mono]", NULL, NULL);
	/* moved between two looks: from the second on */
	assert_who(&f, 50, TRACE(1099), "50 web /a");
	assert_who(&f, 50, TRACE(1100), "50 web /b");
	assert_who(&f, 50, TRACE(1200), "50 renamed /b");
	/* another task of the same pid: from its start on */
	assert_who(&f, 70, TRACE(1049), "70 one /one");
	assert_who(&f, 70, TRACE(1050), "70 two /two");
	assert_who(&f, 71, TRACE(1000), "70 one /one");
	teardown(&f);
}

/* A clock that runs away by two seconds an hour, and one that stands still while suspended */
static void test_clocks(void **state)
{
	for (unsigned suspended = 0; suspended < 2; suspended++) {
		struct fixture f = {
			.end = {.boot = BOOT(4600), .trace = TRACE(suspended ? 1600 : 4602)},
		};

		look(&f, BOOT(1000), 0,
		     (struct own_task[]){{50, 50, STARTED(200), "web", "/a"},
					 {70, 70, STARTED(2800), "half", "/half"},
					 {80, 80, STARTED(4590), "late", "/late"},
					 {}});
		open_file(&f, "[local]", NULL, NULL);
		assert_who(&f, 50, TRACE(201), "50 web /a");
		assert_who(&f, 70, suspended ? TRACE(1000) : TRACE(2801) - 20 * MSEC, "nobody");
		if (!suspended)
			assert_who(&f, 70, TRACE(2801), "70 half /half");
		assert_who(&f, 80, suspended ? TRACE(1590) : TRACE(4592), "80 late /late");
		teardown(&f);
	}
}

static void test_fork(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 0,
	     (struct own_task[]){{50, 50, STARTED(200), "web", "/a"},
				 {51, 50, STARTED(200), "worker", "/a"},
				 {90, 90, STARTED(400), "old", "/old"},
				 {95, 95, STARTED(1002), "seen", "/seen"},
				 {}});
	open_file(&f, "[mono]", NULL, NULL);
	/* a child, of a thread, and its child, by each kind of event */
	fork_at(&f, 51, 80, TRACE(1001));
	assert_who(&f, 80, TRACE(1001) + 1, "0  /a");
	wakeup_new(&f, 80, 81, TRACE(1002));
	assert_who(&f, 81, TRACE(1002) + 1, "0  /a");
	new_task(&f, 50, 82, "web", false, TRACE(1003));
	fork_at(&f, 50, 82, TRACE(1003) + 1000);
	wakeup_new(&f, 50, 82, TRACE(1003) + 2000);
	assert_who(&f, 82, TRACE(1003) + 3000, "82 web /a");
	new_task(&f, 82, 83, "pool", true, TRACE(1004));
	assert_who(&f, 83, TRACE(1004) + 1, "82 web /a");
	/* the same pid again */
	fork_at(&f, 90, 80, TRACE(1010));
	assert_who(&f, 80, TRACE(1010), "0  /old");
	fork_at(&f, 50, 90, TRACE(1011));
	assert_who(&f, 90, TRACE(1011), "0  /a");
	/* nobody knows the parent: then nor the child, whatever the file says of an earlier one */
	fork_at(&f, 4000, 90, TRACE(1020));
	assert_who(&f, 90, TRACE(1020), "0  -");
	/* of two that have the pid within milliseconds the event knows when it changes hands, not
	 * the time of the start, which is cut to hundredths */
	fork_at(&f, 50, 95, TRACE(1001));
	assert_who(&f, 95, TRACE(1002) - MSEC, "0  /a");
	assert_who(&f, 95, TRACE(1002) + 6 * MSEC, "0  /a");
	/* of a child that was looked at the file knows more */
	fork_at(&f, 50, 95, TRACE(1002) + 7 * MSEC);
	assert_who(&f, 95, TRACE(1002) + 8 * MSEC, "95 seen /seen");
	teardown(&f);
}

static void test_exec(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 0, (struct own_task[]){{50, 50, STARTED(200), "sh", "/a"}, {}});
	open_file(&f, "[mono]", NULL, NULL);
	fork_at(&f, 50, 80, TRACE(1001));
	exec(&f, 80, "/usr/bin/a-very-long-name-of-a-program", TRACE(1001) + 1);
	assert_who(&f, 80, TRACE(1002), "80 a-very-long-nam /a");
	exec(&f, 50, "name", TRACE(1003));
	assert_who(&f, 50, TRACE(1004), "50 name /a");
	exec(&f, 99, "/bin/unknown", TRACE(1003));
	assert_who(&f, 99, TRACE(1004), "99 unknown -");
	/* of the same name, but another system's */
	assert_int_equal(f.file.learns[ID_BAD_EXEC], 0);
	teardown(&f);
}

static void test_attach(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 9,
	     (struct own_task[]){{50, 50, STARTED(200), "web", "/a"},
				 {51, 50, STARTED(200), "worker", "/a"},
				 {}});
	look(&f, BOOT(1100), 9, (struct own_task[]){{50, 50, STARTED(200), "web", "/c"}, {}});
	open_file(&f, "[mono]", NULL, NULL);
	attach(&f, 9, 50, "/b", TRACE(1001));
	assert_who(&f, 50, TRACE(1002), "50 web /b");
	assert_who(&f, 51, TRACE(1002), "50 web /b"); /* with all its threads */
	attach(&f, 3, 50, "/of/memory", TRACE(1003));
	assert_who(&f, 50, TRACE(1004), "50 web /b");
	attach(&f, 0, 50, "/", TRACE(1005));
	assert_who(&f, 50, TRACE(1006), "50 web /b");
	attach(&f, 0, 50, "/b2", TRACE(1007));
	assert_who(&f, 50, TRACE(1008), "50 web /b2");
	/* a later look knows better */
	assert_who(&f, 50, TRACE(1100), "50 web /c");
	attach(&f, 9, 77, "/new", TRACE(1007));
	assert_who(&f, 77, TRACE(1008), "0  /new");
	teardown(&f);

	/* where there is one hierarchy, its root is a place like others */
	look(&f, BOOT(1000), 0, (struct own_task[]){{50, 50, STARTED(200), "web", "/a"}, {}});
	open_file(&f, "[mono]", NULL, NULL);
	attach(&f, 0, 50, "/", TRACE(1001));
	assert_who(&f, 50, TRACE(1002), "50 web /");
	attach(&f, 9, 50, "/b", TRACE(1003));
	assert_who(&f, 50, TRACE(1004), "50 web /");
	teardown(&f);
}

/* What systemd starts is not in its own unit; where it is, clone3 does not tell but by its effects
 */
static void test_born_elsewhere(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 0,
	     (struct own_task[]){{1, 1, 0, "systemd", "/init.scope"},
				 {40, 40, 0, "systemd", "/user@1.service/init.scope"},
				 {50, 50, STARTED(200), "web", "/a"},
				 {}});
	open_file(&f, "[mono]", NULL, NULL);
	fork_at(&f, 1, 80, TRACE(1001));
	assert_who(&f, 80, TRACE(1001) + 1, "0  -");
	attach(&f, 0, 80, "/x.service", TRACE(1001) + 2);
	assert_who(&f, 80, TRACE(1002), "0  /x.service");
	new_task(&f, 40, 81, "systemd", false, TRACE(1003));
	assert_who(&f, 81, TRACE(1003), "81 systemd -");
	/* into a new group, whose parents get their first task with it */
	populated(&f, 0, 1, 1, "/s.slice/y.service", TRACE(1004));
	populated(&f, 0, 1, 1, "/s.slice", TRACE(1004) + 10);
	fork_at(&f, 1, 82, TRACE(1004) + 100);
	assert_who(&f, 82, TRACE(1004) + 101, "0  /s.slice/y.service");
	fork_at(&f, 1, 83, TRACE(1004) + 200); /* the next one is another */
	assert_who(&f, 83, TRACE(1004) + 201, "0  -");
	/* by somebody else, long ago, of another hierarchy, empty now, or one that was moved there
	 */
	populated(&f, 0, 50, 1, "/b", TRACE(1005));
	fork_at(&f, 51, 84, TRACE(1005) + 100);
	assert_who(&f, 84, TRACE(1005) + 101, "0  -");
	fork_at(&f, 50, 85, TRACE(1006));
	assert_who(&f, 85, TRACE(1006) + 1, "0  /a");
	populated(&f, 3, 50, 1, "/b", TRACE(1007));
	populated(&f, 0, 50, 0, "/b", TRACE(1007));
	fork_at(&f, 50, 86, TRACE(1007) + 1);
	assert_who(&f, 86, TRACE(1007) + 2, "0  /a");
	populated(&f, 0, 50, 1, "/b", TRACE(1008));
	attach(&f, 0, 86, "/b", TRACE(1008) + 1);
	fork_at(&f, 50, 87, TRACE(1008) + 2);
	assert_who(&f, 87, TRACE(1008) + 3, "0  /a");
	teardown(&f);
}

/* A clock that counts no time: what was said last holds for all */
static void test_no_time(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 0, (struct own_task[]){{50, 50, STARTED(200), "web", "/a"}, {}});
	look(&f, BOOT(1100), 0, (struct own_task[]){{50, 50, STARTED(200), "web", "/b"}, {}});
	open_file(&f, NULL, NULL, NULL);
	assert_who(&f, 50, 1, "50 web /b");
	fork_at(&f, 50, 80, 5);
	assert_who(&f, 80, 6, "0  /b");
	teardown(&f);
}

static void assert_wanted(const struct fixture *f, int32_t pid, bool wanted)
{
	const struct task_who *who = who_find(f->who, pid, UINT64_MAX);

	assert_non_null(who);
	assert_int_equal(who->place->wanted, wanted);
}

#define ID "3f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"

static void test_wanted(void **state)
{
	static const struct {
		const char *units[3], *containers[3];
		const char *wanted; /* pids */
	} rows[] = {
		{{"web.service"}, {}, "1"},
		{{"web"}, {}, "1"},
		{{"w*"}, {}, "1"},
		{{"w?b"}, {}, "1"},
		{{"app.service", "web"}, {}, "14"},
		{{"user@1000"}, {}, "4"},
		{{"*"}, {}, "1234"},
		{{"d-a\\x2db.service"}, {}, "3"},
		{{"web.servic"}, {}, ""},
		{{}, {"3f1a"}, "25"},
		{{}, {ID}, "25"},
		{{}, {"*e7f8"}, "25"},
		{{}, {"4"}, ""},
		{{"docker-*"}, {"3f1a"}, "2"},
		{{"web"}, {"3f1a"}, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fixture f = {};

		look(&f, BOOT(1000), 0,
		     (struct own_task[]){
			     {1, 1, 0, "a", "/system.slice/web.service"},
			     {2, 2, 0, "b", "/system.slice/docker-" ID ".scope"},
			     {3, 3, 0, "c", "/d-a\\x2db.service"},
			     {4, 4, 0, "d", "/user.slice/user@1000.service/app.slice/app.service"},
			     {5, 5, 0, "e", "/docker/" ID},
			     {6, 6, 0, "f", "/"},
			     {},
		     });
		open_file(&f, "[mono]", rows[i].units[0] ? (char **)(void *)rows[i].units : NULL,
			  rows[i].containers[0] ? (char **)(void *)rows[i].containers : NULL);
		for (int32_t pid = 1; pid <= 6; pid++)
			assert_wanted(&f, pid, strchr(rows[i].wanted, '0' + pid) != NULL);
		teardown(&f);
	}
}

/* Two files of one session, of which the second repeats what the first has said */
static void test_files(void **state)
{
	struct fixture f = {}, g = {};
	struct who_file file;
	struct fault why;

	look(&f, BOOT(1000), 0, (struct own_task[]){{50, 50, STARTED(200), "web", "/a"}, {}});
	look(&g, BOOT(1100), 0,
	     (struct own_task[]){{50, 50, STARTED(200), "web", "/a"},
				 {51, 51, STARTED(1050), "late", "/b"},
				 {}});
	open_file(&f, "[mono]", NULL, NULL);
	open_file(&g, "[mono]", NULL, NULL);
	assert_int_equal(who_add_file(f.who, g.decoder, &file, &f.damage, &why), 0);
	assert_who(&f, 50, TRACE(300), "50 web /a");
	assert_who(&f, 51, TRACE(1200), "51 late /b");
	who_file_done(&file);
	teardown(&f);
	teardown(&g);
}

static void test_tell(void **state)
{
	const struct own_task task = {80, 80, 5, "told", "/t"};
	struct fixture f = {};

	look(&f, BOOT(1000), 0, (struct own_task[]){{50, 50, STARTED(200), "web", "/a"}, {}});
	open_file(&f, "[mono]", NULL, NULL);
	fork_at(&f, 50, 80, TRACE(1001));
	assert_int_equal(who_tell(f.who, &task, TRACE(1002)), 0);
	assert_who(&f, 80, TRACE(1002), "80 told /t");
	teardown(&f);
}

static void test_damage(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 0, (struct own_task[]){{50, 50, STARTED(200), "web", "/a"}, {}});
	f.tasks[f.size - 1] ^= 1;
	open_file(&f, "[mono]", NULL, NULL);
	assert_false(f.file.says);
	assert_string_equal(f.damage.text, "f: what it says of its tasks is damaged in part");
	assert_who(&f, 50, TRACE(500), "nobody");
	fork_at(&f, 50, 51, TRACE(1001)); /* events are of no use then, and do no harm */
	assert_who(&f, 51, TRACE(1001), "0  -");
	teardown(&f);
}

/* A file that says more of one pid than there can be: no more is kept than is quickly gone through
 */
static void test_damage_many(void **state)
{
	const unsigned n = 5000;
	struct own_task *list = calloc(n + 1, sizeof(*list));
	struct fixture f = {};

	for (unsigned i = 0; i < n; i++)
		list[i] = (struct own_task){50, 50, STARTED(n - i), "web", i % 2 ? "/a" : "/b"};
	look(&f, BOOT(n + 1), 0, list);
	free(list);
	open_file(&f, "[mono]", NULL, NULL);
	assert_true(f.file.says);
	assert_string_equal(f.damage.text, "f: what it says of its tasks is damaged in part");
	assert_who(&f, 50, TRACE(n + 2), "50 web /b");
	teardown(&f);
}

/* Many tasks, each pid several times */
static void test_many(void **state)
{
	struct fixture f = {};

	look(&f, BOOT(1000), 0, (struct own_task[]){{50, 50, STARTED(200), "web", "/a"}, {}});
	open_file(&f, "[mono]", NULL, NULL);
	for (int i = 0; i < 200000; i++) {
		const uint64_t ts = TRACE(1001) + (uint64_t)i * MSEC;
		const int pid = 1000 + i % 30000;

		fork_at(&f, 50, pid, ts);
		exec(&f, pid, "x", ts + 1);
		assert_int_equal(who_find(f.who, pid, ts + 2)->tgid, pid);
	}
	teardown(&f);
}

/* --- for fuzzers: a file with tasks of which events tell, too */

static void put(struct craft *page, struct craft *c)
{
	c->size = (c->size + 3) & ~(size_t)3;
	craft_head(page, (unsigned)(c->size / 4), 1000);
	craft_bytes(page, c->bytes, c->size);
	craft_done(c);
}

static void craft_events(struct craft *page)
{
	size_t begin = craft_page_begin(page, TRACE(1001));
	struct craft c = head(ID_FORK, 50);

	craft_number(&c, 4, 50);
	craft_number(&c, 4, 80);
	put(page, &c);
	c = head(ID_EXEC, 80);
	craft_number(&c, 4, UINT64_C(9) << 16 | 16);
	craft_number(&c, 4, 80);
	craft_bytes(&c, "/bin/sh\0\0\0\0", 12);
	put(page, &c);
	c = head(ID_ATTACH, 1);
	craft_number(&c, 4, 9);
	craft_number(&c, 4, 80);
	craft_number(&c, 4, UINT64_C(12) << 16 | 20);
	craft_bytes(&c, "/b.service\0\0", 12);
	put(page, &c);
	c = head(ID_WAKEUP_NEW, 80);
	craft_number(&c, 4, 81);
	put(page, &c);
	craft_page_end(page, begin, PAGE, 0);
}

/* The section goes between the header and the data, so that these move */
static int write_seed(const char *path)
{
	struct craft page = {.big_endian = BIG, .commit_size = 8};
	const struct craft_file file = {
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.clock = "[mono]",
		.pages = &page,
	};
	_cleanup_close_ int out = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct craft c = {.big_endian = BIG, .commit_size = 8};
	_cleanup_free_ uint8_t *own = NULL;
	struct fixture f = {};
	const struct trace_dat_region *region;
	struct trace_dat *dat = NULL;
	size_t size, room;

	craft_events(&page);
	craft_file(&c, &file);
	look(&f, BOOT(1000), 9,
	     (struct own_task[]){{1, 1, 0, "systemd", "/init.scope"},
				 {50, 50, STARTED(200), "web", "/a.service"},
				 {51, 50, STARTED(201), "worker", "/a.service"},
				 {}});
	look(&f, BOOT(1100), 9, (struct own_task[]){{50, 50, STARTED(200), "web", "/c"}, {}});
	make_section(&f, true, &own, &size);
	room = round_up(size, PAGE);
	if (out < 0 || io_pwrite_all(out, c.bytes, c.size, 0) < 0 ||
	    trace_dat_open_fd(out, path, &dat, NULL) < 0)
		return 1;
	region = &dat->buffers[0].regions[0];
	craft_set(&c, region->entry, 8, region->offset + room);
	if (io_pwrite_all(out, c.bytes, region->offset, 0) < 0 ||
	    io_pwrite_all(out, own, size, region->offset) < 0 ||
	    io_pwrite_all(out, c.bytes + region->offset, c.size - region->offset,
			  region->offset + room) < 0)
		return 1;
	trace_dat_free(dat);
	own_tasks_writer_free(f.writer);
	free(f.tasks);
	craft_done(&c);
	craft_done(&page);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_said),	       cmocka_unit_test(test_moves_and_twice),
		cmocka_unit_test(test_clocks),	       cmocka_unit_test(test_fork),
		cmocka_unit_test(test_exec),	       cmocka_unit_test(test_attach),
		cmocka_unit_test(test_born_elsewhere), cmocka_unit_test(test_no_time),
		cmocka_unit_test(test_wanted),	       cmocka_unit_test(test_files),
		cmocka_unit_test(test_tell),	       cmocka_unit_test(test_damage),
		cmocka_unit_test(test_damage_many),    cmocka_unit_test(test_many),
	};

	if (argc == 2 && strncmp(argv[1], "--write-seed=", 13) == 0)
		return write_seed(argv[1] + 13);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
