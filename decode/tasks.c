/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "basic/array-room.h"
#include "basic/pid-map.h"
#include "decode/tasks.h"

/* Names that were replaced are kept for those who have them */
struct tasks {
	struct tep_handle *tep; /* has the saved names; asked once for each pid */
	struct pid_map pids;
	struct task_name **names; /* by their indexes; NULL: there was no memory for it */
	size_t room;
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
	tasks->tep = tep_alloc();
	if (!tasks->tep)
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
	for (size_t i = 0; i < tasks->room; i++)
		free(tasks->names[i]);
	for (size_t i = 0; i < tasks->n_old; i++)
		free(tasks->old[i]);
	free(tasks->names);
	free(tasks->old);
	pid_map_done(&tasks->pids);
	tep_free(tasks->tep);
	free(tasks);
	return NULL;
}

/* Where the name of @pid is; NULL without memory */
static struct task_name **get_name(struct tasks *tasks, int32_t pid)
{
	struct task_name **name;
	const char *text;
	size_t index;

	if (pid_map_add(&tasks->pids, pid, &index) < 0 ||
	    array_room(&tasks->names, &tasks->room, index, sizeof(*name)) < 0)
		return NULL;
	name = &tasks->names[index];
	if (*name)
		return name;
	text = tep_data_comm_from_pid(tasks->tep, pid);
	*name = make_name(text, SIZE_MAX, pid == 0 || tep_is_pid_registered(tasks->tep, pid));
	return *name ? name : NULL;
}

const struct task_name *tasks_find(struct tasks *tasks, int32_t pid)
{
	struct task_name **name = get_name(tasks, pid);

	return name ? *name : NULL;
}

static int replace(struct tasks *tasks, struct task_name **at, const char *name, size_t size)
{
	struct task_name *fresh;

	if (array_grow(&tasks->old, tasks->n_old, sizeof(struct task_name *)) < 0)
		return -ENOMEM;
	fresh = make_name(name, size, true);
	if (!fresh)
		return -ENOMEM;
	tasks->old[tasks->n_old++] = *at;
	*at = fresh;
	return 0;
}

int tasks_learn(struct tasks *tasks, int32_t pid, const char *name, size_t size, bool rename)
{
	struct task_name **at = get_name(tasks, pid);

	if (!at)
		return -ENOMEM;
	if ((*at)->known &&
	    (!rename || ((*at)->size == size && memcmp((*at)->text, name, size) == 0)))
		return 0;
	return replace(tasks, at, name, size);
}
