/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "writer/task-table.h"

#define NAME_SIZE 16

struct entry {
	int32_t pid; /* 0: free */
	int32_t tgid;
	uint64_t start;
	uint32_t changed, seen; /* generations */
	bool ended;
	char name[NAME_SIZE];
	char *cgroup; /* NULL: not known */
};

/* An open-addressed hash */
struct task_table {
	struct entry *entries;
	size_t n, room; /* room: a power of two, at least twice n */
	size_t max;
};

struct task_table *task_table_new(size_t max)
{
	struct task_table *t = calloc(1, sizeof(*t));

	if (t)
		t->max = max;
	return t;
}

struct task_table *task_table_free(struct task_table *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->room; i++)
		free(t->entries[i].cgroup);
	free(t->entries);
	free(t);
	return NULL;
}

/* Where @pid is or belongs; there is room */
static struct entry *find(const struct task_table *t, int32_t pid)
{
	size_t i = ((uint32_t)pid * UINT32_C(2654435761)) & (t->room - 1);

	while (t->entries[i].pid != 0 && t->entries[i].pid != pid)
		i = (i + 1) & (t->room - 1);
	return &t->entries[i];
}

/* Into a table of another size, without those that have ended if @alive */
static int rebuild(struct task_table *t, size_t room, bool alive)
{
	struct entry *old = t->entries;
	const size_t old_room = t->room;

	t->entries = calloc(room, sizeof(*t->entries));
	if (!t->entries) {
		t->entries = old;
		return -ENOMEM;
	}
	t->room = room;
	t->n = 0;
	for (size_t i = 0; i < old_room; i++) {
		if (old[i].pid == 0)
			continue;
		if (alive && old[i].ended) {
			free(old[i].cgroup);
			continue;
		}
		*find(t, old[i].pid) = old[i];
		t->n++;
	}
	free(old);
	return 0;
}

/* Return: 1, 0 there is no room for it, or -ENOMEM */
static int get(struct task_table *t, int32_t pid, struct entry **ret)
{
	struct entry *entry = t->room > 0 ? find(t, pid) : NULL;
	int r = 0;

	if (entry && entry->pid == pid) {
		*ret = entry;
		return 1;
	}
	if (t->n == t->max)
		r = rebuild(t, t->room, true);
	if (r >= 0 && t->n == t->max)
		return 0;
	if (r >= 0 && 2 * (t->n + 1) > t->room)
		r = rebuild(t, MAX(2 * t->room, (size_t)256), false);
	if (r < 0)
		return r;
	*ret = find(t, pid);
	**ret = (struct entry){.pid = pid};
	t->n++;
	return 1;
}

static void set_name(struct entry *entry, const char *name)
{
	memset(entry->name, 0, sizeof(entry->name));
	(void)strncat(entry->name, name, sizeof(entry->name) - 1);
}

int task_table_see(struct task_table *t, const struct own_task *task, uint32_t generation)
{
	struct entry *entry;
	int r = task->pid > 0 ? get(t, task->pid, &entry) : 0;

	if (r <= 0)
		return r;
	entry->seen = generation;
	if (entry->changed > 0 && !entry->ended && entry->tgid == task->tgid &&
	    entry->start == task->start && strcmp(entry->name, task->name) == 0 &&
	    text_equal(entry->cgroup, task->cgroup))
		return 0;
	if (strv_set(&entry->cgroup, task->cgroup) < 0)
		return -ENOMEM;
	entry->tgid = task->tgid;
	entry->start = task->start;
	entry->changed = generation;
	entry->ended = false;
	set_name(entry, task->name);
	return 0;
}

int task_table_miss(struct task_table *t, int32_t pid, const char *name)
{
	struct entry *entry;
	int r = pid > 0 ? get(t, pid, &entry) : 0;

	if (r <= 0)
		return r;
	set_name(entry, name);
	entry->ended = true;
	return 0;
}

bool task_table_knows(const struct task_table *t, int32_t pid, const char *name)
{
	const struct entry *entry = t->room > 0 ? find(t, pid) : NULL;

	return entry && entry->pid == pid && strcmp(entry->name, name) == 0;
}

void task_table_scanned(struct task_table *t, uint32_t generation)
{
	for (size_t i = 0; i < t->room; i++)
		t->entries[i].ended |= t->entries[i].seen < generation;
}

static int by_pid(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return ((*x)->pid > (*y)->pid) - ((*x)->pid < (*y)->pid);
}

int task_table_put(const struct task_table *t, uint32_t since, struct own_tasks_writer *writer)
{
	_cleanup_free_ const struct entry **list = calloc(t->n + 1, sizeof(struct entry *));
	size_t n = 0;
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < t->room; i++)
		if (t->entries[i].pid != 0 && !t->entries[i].ended && t->entries[i].changed > since)
			list[n++] = &t->entries[i];
	qsort(list, n, sizeof(*list), by_pid);
	for (size_t i = 0; i < n && r == 0; i++)
		r = own_tasks_add(writer, &(struct own_task){
						  .pid = list[i]->pid,
						  .tgid = list[i]->tgid,
						  .start = list[i]->start,
						  .name = list[i]->name,
						  .cgroup = list[i]->cgroup,
					  });
	return r;
}
