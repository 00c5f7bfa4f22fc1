/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of tasks by pid: those of a trace.dat's saved_cmdlines, and those that events told of. A
 * name that was handed out stays valid and the same until tasks_free(), so other threads may read
 * it while more are learned. tasks_…() themselves: one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/macro.h"

struct task_name {
	bool known;
	uint16_t padding; /* blanks that make it 16 wide */
	uint16_t size;
	char text[]; /* NUL-terminated; "<...>" if not known */
};

struct tasks;

/**
 * tasks_new() - read a saved_cmdlines text
 * @text: NUL-terminated; of several lines with one pid the one counts that libtraceevent finds
 */
int tasks_new(const char *text, struct tasks **ret);
struct tasks *tasks_free(struct tasks *tasks);
DEFINE_CLEANUP(struct tasks *, tasks_free)

/**
 * tasks_find() - the name of a task
 * Return: NULL only without memory.
 */
const struct task_name *tasks_find(struct tasks *tasks, int32_t pid);

/**
 * tasks_learn() - note a name for a pid that has none
 * @name: ends at a NUL byte or after @size bytes
 * @rename: or in the place of the one it has
 * Return: 0, also if the pid keeps its name, or -ENOMEM.
 */
int tasks_learn(struct tasks *tasks, int32_t pid, const char *name, size_t size, bool rename);
