/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of the tasks that are alive, by pid: the newest of each. For formats/own-tasks.h.
 * No lock: whoever has it has one.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"
#include "formats/own-tasks.h"

struct task_table;

/**
 * task_table_new() - @max: tasks at most; no more are taken in then
 */
struct task_table *task_table_new(size_t max);
struct task_table *task_table_free(struct task_table *table);

/**
 * task_table_see() - it is alive
 * @generation: counts the looks, from 1 on
 * Return: 0, also if it is one too many, or -ENOMEM.
 */
int task_table_see(struct task_table *table, const struct own_task *task, uint32_t generation);

/**
 * task_table_miss() - a task of this name was looked for and had ended
 */
int task_table_miss(struct task_table *table, int32_t pid, const char *name);

/**
 * task_table_knows() - need nobody look for this one?
 */
bool task_table_knows(const struct task_table *table, int32_t pid, const char *name);

/**
 * task_table_scanned() - all that are alive have been seen, in this generation
 */
void task_table_scanned(struct task_table *table, uint32_t generation);

/**
 * task_table_put() - what has changed since a generation
 * @since: 0: all that are alive
 * Return: 0, OWN_TASKS_E_FULL or -ENOMEM.
 */
int task_table_put(const struct task_table *table, uint32_t since, struct own_tasks_writer *writer);
