/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/array-room.h"
#include "basic/pid-map.h"
#include "basic/strv.h"
#include "writer/task-table.h"

#define NAME_SIZE 16

struct entry {
	int32_t pid;
	int32_t tgid;
	uint64_t start;
	uint32_t changed, seen; /* generations */
	bool ended;
	char name[NAME_SIZE];
	char *cgroup; /* NULL: not known */
};

struct task_table {
	struct pid_map pids;
	struct entry *entries; /* by their indexes */
	size_t room;
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
	for (size_t i = 0; i < t->pids.n; i++)
		free(t->entries[i].cgroup);
	free(t->entries);
	pid_map_done(&t->pids);
	free(t);
	return NULL;
}

/* Drops those that have ended */
static int drop_ended(struct task_table *t)
{
	struct pid_map alive = {};
	size_t index;

	for (size_t i = 0; i < t->pids.n; i++)
		if (!t->entries[i].ended && pid_map_add(&alive, t->entries[i].pid, &index) < 0) {
			pid_map_done(&alive);
			return -ENOMEM;
		}
	for (size_t i = 0; i < t->pids.n; i++) {
		struct entry entry = t->entries[i];

		t->entries[i] = (struct entry){};
		if (entry.ended)
			free(entry.cgroup);
		else
			t->entries[pid_map_find(&alive, entry.pid)] = entry;
	}
	pid_map_done(&t->pids);
	t->pids = alive;
	return 0;
}

/* Return: 1, 0 there is no room for it, or -ENOMEM */
static int get(struct task_table *t, int32_t pid, struct entry **ret)
{
	size_t index = pid_map_find(&t->pids, pid);
	int r = 0;

	if (index == PID_MAP_NONE) {
		if (t->pids.n == t->max)
			r = drop_ended(t);
		if (r >= 0 && t->pids.n == t->max)
			return 0;
		if (r >= 0)
			r = array_room(&t->entries, &t->room, t->pids.n, sizeof(*t->entries));
		if (r >= 0)
			r = pid_map_add(&t->pids, pid, &index);
		if (r < 0)
			return r;
		t->entries[index].pid = pid;
	}
	*ret = &t->entries[index];
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
	size_t index = pid_map_find(&t->pids, pid);

	return index != PID_MAP_NONE && strcmp(t->entries[index].name, name) == 0;
}

void task_table_scanned(struct task_table *t, uint32_t generation)
{
	for (size_t i = 0; i < t->pids.n; i++)
		t->entries[i].ended |= t->entries[i].seen < generation;
}

static int by_pid(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return ((*x)->pid > (*y)->pid) - ((*x)->pid < (*y)->pid);
}

int task_table_put(const struct task_table *t, uint32_t since, struct own_tasks_writer *writer)
{
	_cleanup_free_ const struct entry **list = calloc(t->pids.n + 1, sizeof(struct entry *));
	size_t n = 0;
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < t->pids.n; i++)
		if (!t->entries[i].ended && t->entries[i].changed > since)
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
