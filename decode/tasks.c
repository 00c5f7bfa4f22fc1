/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "decode/tasks.h"

struct slot {
	struct task_name *name; /* NULL: free */
	int32_t pid;
};

/* An open-addressed hash; names that were replaced are kept for those who have them */
struct tasks {
	struct tep_handle *tep; /* has the saved names; asked once for each pid */
	struct slot *slots;
	size_t n, room; /* room: a power of two, at least twice n */
	struct task_name **old;
	size_t n_old;
};

static struct task_name *make_name(const char *text, size_t size, bool known)
{
	struct task_name *name;

	size = strnlen(text, MIN(size, (size_t)UINT16_MAX));
	name = malloc(sizeof(*name) + size + 1);
	if (!name)
		return NULL;
	name->known = known;
	name->padding = (uint16_t)(size < 16 ? 16 - size : 0);
	name->size = (uint16_t)size;
	memcpy(name->text, text, size);
	name->text[size] = '\0';
	return name;
}

int tasks_new(const char *text, struct tasks **ret)
{
	_cleanup_(tasks_freep) struct tasks *tasks = calloc(1, sizeof(*tasks));

	if (!tasks)
		return -ENOMEM;
	tasks->room = 1024;
	tasks->slots = calloc(tasks->room, sizeof(*tasks->slots));
	tasks->tep = tep_alloc();
	if (!tasks->slots || !tasks->tep)
		return -ENOMEM;
	tep_set_loglevel(TEP_LOG_NONE);
	(void)tep_parse_saved_cmdlines(tasks->tep, text); /* what is broken is left out */
	*ret = TAKE_PTR(tasks);
	return 0;
}

struct tasks *tasks_free(struct tasks *tasks)
{
	if (!tasks)
		return NULL;
	for (size_t i = 0; tasks->slots && i < tasks->room; i++)
		free(tasks->slots[i].name);
	for (size_t i = 0; i < tasks->n_old; i++)
		free(tasks->old[i]);
	free(tasks->slots);
	free(tasks->old);
	tep_free(tasks->tep);
	free(tasks);
	return NULL;
}

/* Where @pid is or belongs */
static struct slot *find_slot(const struct tasks *tasks, int32_t pid)
{
	size_t i = ((uint32_t)pid * UINT32_C(2654435761)) & (tasks->room - 1);

	while (tasks->slots[i].name && tasks->slots[i].pid != pid)
		i = (i + 1) & (tasks->room - 1);
	return &tasks->slots[i];
}

static int grow(struct tasks *tasks)
{
	struct slot *old = tasks->slots;
	size_t room = tasks->room;

	tasks->slots = calloc(2 * room, sizeof(*tasks->slots));
	if (!tasks->slots) {
		tasks->slots = old;
		return -ENOMEM;
	}
	tasks->room = 2 * room;
	for (size_t i = 0; i < room; i++)
		if (old[i].name)
			*find_slot(tasks, old[i].pid) = old[i];
	free(old);
	return 0;
}

static struct slot *get_slot(struct tasks *tasks, int32_t pid)
{
	struct slot *slot = find_slot(tasks, pid);
	const char *text;

	if (slot->name)
		return slot;
	if (2 * (tasks->n + 1) > tasks->room) {
		if (grow(tasks) < 0)
			return NULL;
		slot = find_slot(tasks, pid);
	}
	text = tep_data_comm_from_pid(tasks->tep, pid);
	slot->name = make_name(text, SIZE_MAX, pid == 0 || tep_is_pid_registered(tasks->tep, pid));
	if (!slot->name)
		return NULL;
	slot->pid = pid;
	tasks->n++;
	return slot;
}

const struct task_name *tasks_find(struct tasks *tasks, int32_t pid)
{
	struct slot *slot = get_slot(tasks, pid);

	return slot ? slot->name : NULL;
}

static int replace(struct tasks *tasks, struct slot *slot, const char *name, size_t size)
{
	struct task_name *fresh;

	if (array_grow(&tasks->old, tasks->n_old, sizeof(struct task_name *)) < 0)
		return -ENOMEM;
	fresh = make_name(name, size, true);
	if (!fresh)
		return -ENOMEM;
	tasks->old[tasks->n_old++] = slot->name;
	slot->name = fresh;
	return 0;
}

int tasks_learn(struct tasks *tasks, int32_t pid, const char *name, size_t size, bool rename)
{
	struct slot *slot = get_slot(tasks, pid);

	if (!slot)
		return -ENOMEM;
	if (slot->name->known &&
	    (!rename || (slot->name->size == size && memcmp(slot->name->text, name, size) == 0)))
		return 0;
	return replace(tasks, slot, name, size);
}
