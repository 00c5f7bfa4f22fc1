/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec's own section in the files that are recorded, and in snapshots that are made of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
	static const char finding[] = "1\t2\t3\tirq\t0\t\t\ta finding\n";
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
	assert_int_equal(own_section_write(dat, OWN_FINDINGS, finding, strlen(finding), &why), 0);
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

/* What a file says that was not recorded: "FROM-TO EVENT, …" */
static void assert_sheds(struct fake *f, const char *name, const char *want)
{
	_cleanup_trace_dat_ struct trace_dat *dat = open_dat(f, name);
	_cleanup_own_sheds_ struct own_sheds sheds = {};
	char text[200] = "";
	struct fault why = {};
	size_t at = 0;

	assert_int_equal(own_content_sheds(&sheds, dat, &why), 0);
	for (size_t i = 0; i < sheds.n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d-%d %s", i ? ", " : "",
				       (int)sheds.list[i].from, (int)sheds.list[i].to,
				       sheds.list[i].event);
	assert_string_equal(text, want);
}

static void test_sheds(void **state)
{
	static const struct cut_note note = {.text = "flyrec snapshot\n"};
	_cleanup_own_sheds_ struct own_sheds sheds = {};
	_cleanup_file_ struct trace_file *file = NULL, *next = NULL;
	struct fake f;

	fake_init(&f, 1);
	f.params.own = (struct own_content){.sheds = &sheds, .shed_room = 100};
	file = fake_create(&f, OLDER);
	fake_put(file, 0, 0, 1450 * NSEC_PER_USEC);
	fake_set_size(file, 0, FAKE_SUBBUF);
	assert_sheds(&f, OLDER, "");
	assert_int_equal(own_sheds_add(&sheds, "a:b", 5, UINT64_MAX), 0);
	assert_int_equal(trace_file_write_sheds(file, &sheds, 0), 0);
	assert_sheds(&f, OLDER, "5--1 a:b");
	/* the next file begins with it, and knows its end; the older one is cut with it */
	next = fake_create(&f, LATER);
	fake_put(next, 0, 0, 2450 * NSEC_PER_USEC);
	fake_set_size(next, 0, FAKE_SUBBUF);
	assert_sheds(&f, LATER, "5--1 a:b");
	assert_int_equal(own_sheds_add(&sheds, "a:b", 5, 9), 0);
	assert_int_equal(own_sheds_add(&sheds, "c:d", 7, UINT64_MAX), 0);
	assert_int_equal(trace_file_write_sheds(next, &sheds, 0), 0);
	cut_range(&f, 0, 9999, &note);
	assert_sheds(&f, RESULT, "5-9 a:b, 7--1 c:d");
	/* another process goes on, which has switched it on, and something else off */
	trace_file_free(TAKE_PTR(next));
	next = fake_open(&f, LATER);
	own_sheds_done(&sheds);
	assert_int_equal(own_sheds_add(&sheds, "e:f", 13, UINT64_MAX), 0);
	assert_int_equal(trace_file_write_sheds(next, &sheds, 11), 0);
	assert_int_equal(trace_file_write_sheds(next, &sheds, 11), 0);
	assert_sheds(&f, LATER, "5-9 a:b, 7-11 c:d, 13--1 e:f");
	fake_verify(&f, LATER, 1);
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

/* --- tasks */

/* A session's, and the /proc that it looks at */
struct looker {
	struct task_names *names;
	int proc;
};

static void look_init(struct looker *l, struct fake *f)
{
	assert_int_equal(mkdirat(f->tmp.fd, "proc", 0755), 0);
	l->proc = openat(f->tmp.fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	l->names = task_names_new(1000);
	assert_true(l->proc >= 0 && l->names);
}

static void look_done(struct looker *l)
{
	task_names_free(l->names);
	close(l->proc);
}

/* A task is there, and has been traced */
static void see(struct looker *l, struct fake *f, int pid, const char *name, const char *cgroup)
{
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
	(void)snprintf(text, sizeof(text),
		       "%d (%s) S 0 1 1 0 -1 1 2 3 0 0 5 6 7 8 20 0 1 0 %d 170 13", pid, name,
		       10 * pid);
	tmp_write(&f->tmp, path, text);
	(void)snprintf(path, sizeof(path), "proc/%d/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\t%s\nTgid:\t%d\n", name, pid);
	tmp_write(&f->tmp, path, text);
	(void)snprintf(path, sizeof(path), "proc/%d/cgroup", pid);
	(void)snprintf(text, sizeof(text), "0::%s\n", cgroup);
	tmp_write(&f->tmp, path, text);
	(void)snprintf(text, sizeof(text), "%d %s\n", pid, name);
	assert_int_equal(task_names_merge(l->names, text), 0);
	assert_int_equal(task_names_look(l->names, l->proc), 0);
}

struct said {
	char text[1024];
	unsigned looks;
	uint64_t last;
};

static int on_task(void *userdata, const struct own_look *look, const struct own_task *task)
{
	struct said *said = userdata;
	size_t n = strlen(said->text);

	said->looks += look->boot != said->last;
	said->last = look->boot;
	(void)snprintf(said->text + n, sizeof(said->text) - n, "%s%d %s %s", n ? ", " : "",
		       task->pid, task->name, task->cgroup);
	return 0;
}

static void no_damage(void *userdata, size_t at)
{
	fail_msg("damaged at %zu", at);
}

/* A file says "PID NAME CGROUP, …", in so many parts; NULL: nothing */
static void assert_tasks(struct fake *f, const char *name, const char *want, unsigned looks)
{
	_cleanup_trace_dat_ struct trace_dat *dat = open_dat(f, name);
	_cleanup_free_ uint8_t *bytes = NULL;
	struct said said = {};
	const struct own_tasks_reader reader = {on_task, no_damage, &said};
	struct fault why = {};
	size_t size;
	int r = own_section_read(dat, OWN_TASKS, &bytes, &size, &why);

	if (!want) {
		assert_int_equal(r, -ENOENT);
		return;
	}
	if (r < 0)
		fail_msg("%s: %d %s", name, r, why.text);
	assert_int_equal(own_tasks_read(bytes, size, dat->big_endian, &reader), 0);
	assert_string_equal(said.text, want);
	assert_int_equal(said.looks, looks);
}

/* The disk fails meanwhile */
static void write_tasks_in_vain(struct trace_file *file, struct task_names *names)
{
	struct rlimit before, none;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(trace_file_write_tasks(file, names), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void test_tasks(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_clocks clocks;
	struct fault why = {};
	struct looker l;
	struct fake f;

	fake_init(&f, 2);
	look_init(&l, &f);
	init_clocks(&clocks, OWN_CLOCK_BEGIN, 5);
	f.params.own = (struct own_content){.clocks = &clocks, .tasks_room = 10000};
	file = fake_create(&f, "current.dat");
	assert_tasks(&f, "current.dat", NULL, 0);
	see(&l, &f, 7, "web", "/web.service");
	see(&l, &f, 8, "db", "/db.service");
	assert_int_equal(trace_file_write_tasks(file, l.names), 0);
	assert_tasks(&f, "current.dat", "7 web /web.service, 8 db /db.service", 1);
	/* nothing new, then one */
	assert_int_equal(trace_file_write_tasks(file, l.names), 0);
	see(&l, &f, 9, "late", "/web.service");
	write_tasks_in_vain(file, l.names);
	assert_tasks(&f, "current.dat", "7 web /web.service, 8 db /db.service", 1);
	assert_int_equal(trace_file_write_tasks(file, l.names), 0);
	assert_tasks(&f, "current.dat", "7 web /web.service, 8 db /db.service, 9 late /web.service",
		     2);
	fake_verify(&f, "current.dat", 0);

	/* another process goes on, which does not know what the file was told */
	trace_file_free(TAKE_PTR(file));
	task_names_free(l.names);
	l.names = task_names_new(1000);
	file = fake_open(&f, "current.dat");
	see(&l, &f, 9, "late", "/moved.service");
	assert_int_equal(trace_file_write_tasks(file, l.names), 0);
	assert_tasks(&f, "current.dat",
		     "7 web /web.service, 8 db /db.service, 9 late /web.service, "
		     "9 late /moved.service",
		     3);
	assert_clocks(&f, "current.dat", "begin 5");
	fake_put(file, 1, 0, 7);
	fake_set_size(file, 1, FAKE_SUBBUF);
	assert_int_equal(trace_file_complete(file), 0);
	assert_true(compact_file(file, f.dir_fd, "current.dat", &why) >= 0);
	assert_tasks(&f, "current.dat",
		     "7 web /web.service, 8 db /db.service, 9 late /web.service, "
		     "9 late /moved.service",
		     3);
	fake_verify(&f, "current.dat", 1);
	look_done(&l);
	fake_done(&f);
}

/* Where the room ends, what is there stays whole; a file of before has none */
static void test_tasks_without_room(void **state)
{
	struct own_clocks clocks;
	struct looker l;
	struct fake f;

	fake_init(&f, 1);
	look_init(&l, &f);
	init_clocks(&clocks, OWN_CLOCK_BEGIN, 5);
	for (uint32_t room = 0; room < 2000; room += 100) {
		_cleanup_file_ struct trace_file *file = NULL;
		uint32_t used, there;
		struct said said = {};

		f.params.own = (struct own_content){.clocks = &clocks, .tasks_room = room};
		file = fake_create(&f, "a.dat");
		for (int pid = 1; pid < 20; pid++) {
			see(&l, &f, pid, "name", "/somewhere/a-path-that-takes-room.service");
			assert_int_equal(trace_file_write_tasks(file, l.names), 0);
		}
		used = trace_file_tasks_used(file, &there);
		assert_true(used <= there);
		assert_true(there >= room && there < room + OWN_RECORD_ALIGN + OWN_ENTRY_HEAD);
		if (used > 0) {
			_cleanup_trace_dat_ struct trace_dat *dat = open_dat(&f, "a.dat");
			const struct own_tasks_reader reader = {on_task, no_damage, &said};
			_cleanup_free_ uint8_t *bytes = NULL;
			size_t size;

			assert_int_equal(own_section_read(dat, OWN_TASKS, &bytes, &size, NULL), 0);
			assert_int_equal(own_tasks_read(bytes, size, dat->big_endian, &reader), 0);
		}
		fake_verify(&f, "a.dat", 0);
		assert_int_equal(unlinkat(f.dir_fd, "a.dat", 0), 0);
	}
	look_done(&l);
	fake_done(&f);
}

/* A segment, as a session that has seen all these tasks makes it */
static void make_tasks_segment(struct fake *f, struct looker *l, const char *name, uint64_t from)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct own_clocks clocks;

	init_clocks(&clocks, OWN_CLOCK_BEGIN, from);
	f->params.own = (struct own_content){.clocks = &clocks, .tasks_room = 4000};
	file = fake_create(f, name);
	fake_put(file, 0, 0, (from + 1) * NSEC_PER_USEC);
	fake_set_size(file, 0, FAKE_SUBBUF);
	assert_int_equal(trace_file_write_tasks(file, l->names), 0);
	assert_int_equal(trace_file_complete(file), 0);
	f->params.own = (struct own_content){};
}

/* A snapshot has what its sources have, each thing once */
static void test_tasks_of_snapshots(void **state)
{
	struct cut_note note = {.text = "flyrec snapshot\n"};
	struct together_part parts[2] = {{.name = "a"}, {.name = "b"}};
	struct cut_report report;
	struct fault why = {};
	struct looker l;
	struct fake f;

	fake_init(&f, 2);
	look_init(&l, &f);
	see(&l, &f, 7, "web", "/web.service");
	see(&l, &f, 8, "db", "/db.service");
	make_tasks_segment(&f, &l, OLDER, 1000);
	see(&l, &f, 9, "late", "/web.service");
	task_names_free(l.names); /* so that 8 is looked for again */
	l.names = task_names_new(1000);
	see(&l, &f, 7, "web", "/web.service");
	see(&l, &f, 8, "db", "/other.service");
	see(&l, &f, 9, "late", "/web.service");
	make_tasks_segment(&f, &l, LATER, 2000);
	cut_range(&f, 0, 5000, &note);
	fake_verify(&f, RESULT, 2);
	assert_tasks(&f, RESULT,
		     "7 web /web.service, 8 db /db.service, 8 db /other.service, "
		     "9 late /web.service",
		     2);
	cut_range(&f, 2500, 5000, &note);
	assert_tasks(&f, RESULT, "7 web /web.service, 8 db /other.service, 9 late /web.service", 1);
	assert_int_equal(unlinkat(f.dir_fd, RESULT, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		parts[i].fd = open_part(&f, i == 0 ? OLDER : LATER);
	if (together_write(parts, 2, f.dir_fd, RESULT, &note, &report, &why) < 0)
		fail_msg("%s", why.text);
	assert_tasks(&f, RESULT,
		     "7 web /web.service, 8 db /db.service, 8 db /other.service, "
		     "9 late /web.service",
		     2);
	for (unsigned i = 0; i < 2; i++)
		close(parts[i].fd);
	look_done(&l);
	fake_done(&f);
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
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_rooms),
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_near),
		cmocka_unit_test(test_sheds),
		cmocka_unit_test(test_cut_of_older),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_tasks_without_room),
		cmocka_unit_test(test_tasks_of_snapshots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
