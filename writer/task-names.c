/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "basic/io.h"
#include "basic/now.h"
#include "writer/proc-task.h"
#include "writer/task-names.h"
#include "writer/task-table.h"

#define COMM_SIZE	   16 /* TASK_COMM_LEN of the kernel */
#define SCAN_INTERVAL_USEC USEC_PER_SEC
#define LOOK_MAX	   1000U /* tasks that are looked for at a time: some milliseconds */
#define KWORKER		   "kworker/"

/* Bytes in a file for names that may come: of the first, all the names that the kernel's table
 * holds; of the next ones, four times what came in the one before, and at least those of 16,000
 * tasks */
#define ROOM_FIRST  (32768 * 24UL)
#define ROOM_MIN    (256 * KIB)
#define ROOM_FACTOR 4
/* What is to be free, as another 8,000 tasks may come before anybody looks again */
#define ROOM_LEFT (128 * KIB)

struct name {
	uint32_t pid;
	uint32_t seen; /* generation of the last merge that had it */
	char comm[COMM_SIZE];
};

/* The first n_settled are sorted by pid, each pid once; what comes behind them is brought into
 * order later */
struct task_names {
	atomic_uint refs;
	pthread_mutex_t lock; /* for all below; what is added in one go stays together */
	struct name *names;
	size_t n, n_settled, room;
	size_t max;
	uint32_t generation;
	uint32_t begun, before; /* when this file was begun, and the one before; 0: none was */
	size_t begun_size;	/* bytes of names that this file needed from its beginning */
	uint32_t scanned;	/* before the last look at /proc; UINT32_MAX: there was none */
	uint64_t scanned_usec;	/* CLOCK_BOOTTIME; 0: not yet */

	struct task_table *tasks;
	uint32_t look;	    /* counts the looks at tasks, for the table */
	uint32_t looked;    /* names seen up to this generation have been looked for */
	uint32_t hierarchy; /* as in struct own_look */
};

struct task_names *task_names_new(size_t max)
{
	struct task_names *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	atomic_init(&t->refs, 1);
	t->tasks = task_table_new(max);
	if (!t->tasks) {
		free(t);
		return NULL;
	}
	(void)pthread_mutex_init(&t->lock, NULL);
	t->max = max;
	t->scanned = UINT32_MAX;
	return t;
}

struct task_names *task_names_ref(struct task_names *t)
{
	atomic_fetch_add(&t->refs, 1);
	return t;
}

void task_names_free(struct task_names *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
		return;
	(void)pthread_mutex_destroy(&t->lock);
	task_table_free(t->tasks);
	free(t->names);
	free(t);
}

/* A comm may hold anything (prctl); a line break in it would begin a line of its own */
static void copy_comm(char *to, const char *from, size_t size)
{
	size = MIN(size, (size_t)COMM_SIZE - 1);
	for (size_t i = 0; i < size; i++)
		to[i] = iscntrl((unsigned char)from[i]) ? '?' : from[i];
	memset(to + size, 0, COMM_SIZE - size);
}

/* Also where there is no name to speak of: readers of the section do not expect that */
static bool is_blank(const char *comm, size_t size)
{
	for (size_t i = 0; i < MIN(size, (size_t)COMM_SIZE - 1); i++)
		if (comm[i] != ' ')
			return false;
	return true;
}

static int add(struct task_names *t, uint32_t pid, const char *comm, size_t size)
{
	if (is_blank(comm, size))
		return 0;
	if (t->n == t->room) {
		size_t room = MAX(t->room * 2, 512UL);
		struct name *p = realloc(t->names, room * sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->names = p;
		t->room = room;
	}
	t->names[t->n].pid = pid;
	t->names[t->n].seen = t->generation;
	copy_comm(t->names[t->n].comm, comm, size);
	t->n++;
	return 0;
}

#define DIGIT_BITS 11 /* sorted by three such digits: the kernel has at most 2^22 pids */
#define DIGITS	   ((32 + DIGIT_BITS - 1) / DIGIT_BITS)

/* Stable, by one digit of the pid: false if all have the same, and nothing was moved */
static bool sort_digit(const struct name *from, struct name *to, size_t n, unsigned shift)
{
	const uint32_t mask = (1U << DIGIT_BITS) - 1;
	size_t at[1U << DIGIT_BITS] = {}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].pid >> shift & mask]++;
	if (at[from[0].pid >> shift & mask] == n)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].pid >> shift & mask]++] = from[i];
	return true;
}

/* By pid, stable; every finish of a segment does it, so a radix sort: qsort() takes 20 times as
 * long */
static int sort_names(struct task_names *t)
{
	struct name *other = malloc(t->room * sizeof(*other));

	if (!other)
		return -ENOMEM;
	for (unsigned digit = 0; digit < DIGITS; digit++)
		if (sort_digit(t->names, other, t->n, digit * DIGIT_BITS))
			SWAP(t->names, other);
	free(other);
	return 0;
}

static size_t line_size(const struct name *name)
{
	size_t digits = 1;

	for (uint32_t pid = name->pid; pid >= 10; pid /= 10)
		digits++;
	return digits + 1 + strlen(name->comm) + 1;
}

/* "PID COMM\n"; printf() would be most of what a finish costs */
static size_t print_line(const struct name *name, char *to)
{
	size_t size = line_size(name), comm = strlen(name->comm), at = size - comm - 2;
	uint32_t pid = name->pid;

	to[at] = ' ';
	memcpy(to + at + 1, name->comm, comm);
	to[size - 1] = '\n';
	do
		to[--at] = (char)('0' + pid % 10);
	while ((pid /= 10) > 0);
	return size;
}

/* How many merges ago a name was seen; what is older than all this counts as one */
#define AGES 1024

static uint32_t age(const struct task_names *t, const struct name *name)
{
	return MIN(t->generation - name->seen, AGES - 1U);
}

/* Which names stay when not all can: those younger than @age, and the first @ties of that age */
struct cut {
	uint32_t age;
	size_t ties;
};

/* As many of the youngest as @max names and @room bytes of lines allow */
static struct cut find_cut(const struct task_names *t, size_t max, size_t room)
{
	struct {
		size_t n, size;
	} ages[AGES] = {};
	struct cut cut = {};

	for (size_t i = 0; i < t->n; i++) {
		ages[age(t, &t->names[i])].n++;
		ages[age(t, &t->names[i])].size += line_size(&t->names[i]);
	}
	for (; cut.age < AGES && ages[cut.age].n <= max && ages[cut.age].size <= room; cut.age++) {
		max -= ages[cut.age].n;
		room -= ages[cut.age].size;
	}
	for (size_t i = 0; i < t->n && cut.ties < max; i++) {
		size_t size = line_size(&t->names[i]);

		if (age(t, &t->names[i]) != cut.age)
			continue;
		if (size > room)
			break;
		room -= size;
		cut.ties++;
	}
	return cut;
}

static bool stays(const struct task_names *t, const struct name *name, struct cut *cut)
{
	if (age(t, name) != cut->age)
		return age(t, name) < cut->age;
	return cut->ties > 0 && cut->ties-- > 0;
}

/* Sort, newest name of each pid, at most max of them */
static int settle(struct task_names *t)
{
	struct cut cut;
	size_t n = 0;
	int r;

	if (t->n == t->n_settled)
		return 0;
	r = sort_names(t);
	if (r < 0)
		return r;
	for (size_t i = 0; i < t->n; i++)
		if (n == 0 || t->names[n - 1].pid != t->names[i].pid)
			t->names[n++] = t->names[i];
		else if (t->names[n - 1].seen < t->names[i].seen)
			t->names[n - 1] = t->names[i];
	t->n = n;
	if (t->n > t->max) {
		cut = find_cut(t, t->max, SIZE_MAX);
		n = 0;
		for (size_t i = 0; i < t->n; i++)
			if (stays(t, &t->names[i], &cut))
				t->names[n++] = t->names[i];
		t->n = n;
	}
	t->n_settled = t->n;
	return 0;
}

/* A line "PID COMM" of a name that is known; anything else is passed over */
static int take_line(struct task_names *t, const char *line, const char *end)
{
	const char *comm = line;
	uint64_t pid = 0;

	for (; isdigit((unsigned char)*comm) && pid <= UINT32_MAX; comm++)
		pid = pid * 10 + (uint64_t)(*comm - '0');
	if (*comm != ' ' || pid == 0 || pid > UINT32_MAX || strncmp(comm + 1, "<...>", 5) == 0)
		return 0;
	return add(t, (uint32_t)pid, comm + 1, (size_t)(end - comm - 1));
}

static int merge(struct task_names *t, const char *text)
{
	t->generation++;
	for (const char *line = text; *line;) {
		const char *end = strchrnul(line, '\n');

		if (take_line(t, line, end) < 0)
			return -ENOMEM;
		line = *end ? end + 1 : end;
	}
	return settle(t);
}

int task_names_merge(struct task_names *t, const char *text)
{
	int r;

	pthread_mutex_lock(&t->lock);
	r = merge(t, text);
	pthread_mutex_unlock(&t->lock);
	return r;
}

/* What a kernel worker is busy with is no part of its name */
static void cut_worker(char *comm)
{
	size_t n = strlen(KWORKER);

	if (strncmp(comm, KWORKER, n) == 0 && (isdigit((unsigned char)comm[n]) || comm[n] == 'u'))
		comm[n + strcspn(comm + n, "+-")] = '\0';
}

static int see_task(struct task_names *t, const struct proc_task *task, const char *cgroup)
{
	char comm[COMM_SIZE];
	const struct own_task own = {task->pid, task->tgid, task->start, comm, cgroup};

	copy_comm(comm, task->comm, task->comm_size);
	cut_worker(comm);
	return task_table_see(t->tasks, &own, t->look);
}

/* Threads are in their process's control group, or in one below it */
static int scan_threads(struct task_names *t, int proc_fd, const char *process)
{
	char path[300], cgroup[PROC_TASK_CGROUP_MAX];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	bool known;
	int r;

	(void)snprintf(path, sizeof(path), "%s/cgroup", process);
	known = proc_task_cgroup(proc_fd, path, cgroup, &t->hierarchy) >= 0;
	(void)snprintf(path, sizeof(path), "%s/task", process);
	r = io_opendir_at(proc_fd, path, &dir);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* ended meanwhile */
	while (r >= 0 && (entry = readdir(dir))) {
		struct proc_task task = {.tgid = (int32_t)strtol(process, NULL, 10)};

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		(void)snprintf(path, sizeof(path), "%s/stat", entry->d_name);
		if (proc_task_stat(dirfd(dir), path, &task) < 0)
			continue;
		r = add(t, (uint32_t)task.pid, task.comm, task.comm_size);
		if (r >= 0)
			r = see_task(t, &task, known ? cgroup : NULL);
	}
	return r;
}

static int scan_proc(struct task_names *t, int proc_fd)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int r = io_opendir_at(proc_fd, ".", &dir);

	t->scanned = t->generation++;
	t->looked = t->generation;
	t->look++;
	while (r >= 0 && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			r = scan_threads(t, proc_fd, entry->d_name);
	if (r >= 0)
		task_table_scanned(t->tasks, t->look);
	/* They are few; the next merge or render brings them into order with others */
	return r < 0 || t->n <= t->max ? r : settle(t);
}

int task_names_scan_proc(struct task_names *t, int proc_fd)
{
	uint64_t now = now_usec(CLOCK_BOOTTIME);
	int r = 0;

	pthread_mutex_lock(&t->lock);
	if (t->scanned_usec == 0 || now >= t->scanned_usec + SCAN_INTERVAL_USEC) {
		r = scan_proc(t, proc_fd);
		t->scanned_usec = r < 0 ? 0 : now;
	}
	pthread_mutex_unlock(&t->lock);
	return r;
}

/* As it is now; one that has ended is not looked for again */
static int look_for(struct task_names *t, int proc_fd, const struct name *name)
{
	char path[32], cgroup[PROC_TASK_CGROUP_MAX];
	struct proc_task task;
	int r;

	(void)snprintf(path, sizeof(path), "%u/stat", name->pid);
	r = proc_task_stat(proc_fd, path, &task);
	(void)snprintf(path, sizeof(path), "%u/status", name->pid);
	if (r >= 0)
		r = proc_task_tgid(proc_fd, path, &task.tgid);
	(void)snprintf(path, sizeof(path), "%u/cgroup", name->pid);
	if (r >= 0)
		r = proc_task_cgroup(proc_fd, path, cgroup, &t->hierarchy);
	return r < 0 ? task_table_miss(t->tasks, (int32_t)name->pid, name->comm)
		     : see_task(t, &task, cgroup);
}

static int look_for_new(struct task_names *t, int proc_fd)
{
	int r = settle(t);

	t->look++;
	for (size_t i = 0, n = 0; i < t->n && n < LOOK_MAX && r >= 0; i++) {
		const struct name *name = &t->names[i];

		if (name->seen <= t->looked ||
		    task_table_knows(t->tasks, (int32_t)name->pid, name->comm))
			continue;
		r = look_for(t, proc_fd, name);
		n++;
	}
	t->looked = t->generation - 1; /* what else comes in this generation, and what was left */
	return r;
}

int task_names_look(struct task_names *t, int proc_fd)
{
	int r;

	pthread_mutex_lock(&t->lock);
	r = look_for_new(t, proc_fd);
	pthread_mutex_unlock(&t->lock);
	return r;
}

int task_names_put_tasks(struct task_names *t, uint32_t *since, struct own_tasks_writer *writer,
			 size_t room, uint8_t **ret, size_t *ret_size)
{
	struct own_look look = {.boot = now_usec(CLOCK_BOOTTIME) * NSEC_PER_USEC};
	int r, full;

	pthread_mutex_lock(&t->lock);
	look.hierarchy = t->hierarchy;
	own_tasks_begin(writer, &look, room);
	full = task_table_put(t->tasks, *since, writer);
	*since = t->look;
	pthread_mutex_unlock(&t->lock);
	r = full < 0 ? full : own_tasks_end(writer, __BYTE_ORDER == __BIG_ENDIAN, ret, ret_size);
	if (r < 0)
		own_tasks_forget(writer);
	return r < 0 ? r : full;
}

static int render(struct task_names *t, size_t room, char **ret_text, size_t *ret_used)
{
	_cleanup_free_ char *text = malloc(room + 1);
	struct cut cut = {.age = AGES};
	size_t at = 0, wanted = 0;

	if (!text || settle(t) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		wanted += line_size(&t->names[i]);
	if (wanted > room)
		cut = find_cut(t, SIZE_MAX, room);
	for (size_t i = 0; i < t->n; i++)
		if (stays(t, &t->names[i], &cut))
			at += print_line(&t->names[i], text + at);
	memset(text + at, '\n', room - at);
	*ret_text = TAKE_PTR(text);
	if (ret_used)
		*ret_used = at;
	return 0;
}

/* Bytes of the names seen later than in that generation, and of all tasks that were alive */
static size_t size_since(const struct task_names *t, uint32_t generation)
{
	size_t size = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->names[i].seen > MIN(generation, t->scanned))
			size += line_size(&t->names[i]);
	return size;
}

/* What was traced at the end of a file may come out in the next one, with its names */
static size_t next_room(const struct task_names *t)
{
	size_t needed = size_since(t, t->begun), came = size_since(t, t->before);

	if (t->begun == 0)
		return needed + ROOM_FIRST;
	came -= MIN(t->begun_size, came);
	return needed + MAX(ROOM_FACTOR * came, ROOM_MIN);
}

int task_names_next_room(struct task_names *t, size_t *ret)
{
	int r;

	pthread_mutex_lock(&t->lock);
	r = settle(t);
	if (r >= 0)
		*ret = next_room(t);
	pthread_mutex_unlock(&t->lock);
	return r;
}

void task_names_file_begun(struct task_names *t)
{
	pthread_mutex_lock(&t->lock);
	t->before = t->begun;
	t->begun = t->generation;
	t->begun_size = size_since(t, t->before);
	pthread_mutex_unlock(&t->lock);
}

bool task_names_fill(struct task_names *t, size_t room)
{
	bool full;

	pthread_mutex_lock(&t->lock);
	full = size_since(t, t->before) + ROOM_LEFT > room;
	pthread_mutex_unlock(&t->lock);
	return full;
}

int task_names_render(struct task_names *t, size_t room, char **ret_text, size_t *ret_used)
{
	int r;

	pthread_mutex_lock(&t->lock);
	r = render(t, room, ret_text, ret_used);
	pthread_mutex_unlock(&t->lock);
	return r;
}
