/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What several files say of tasks (formats/own-tasks.h) into one, in the order of the files; what
 * one has said before is left out. Plain memory, any thread.
 */
#pragma once

#include "formats/own-section.h"
#include "formats/own-tasks.h"

struct task_merge;

struct task_merge *task_merge_new(void);
struct task_merge *task_merge_free(struct task_merge *merge);
DEFINE_CLEANUP(struct task_merge *, task_merge_free)

/**
 * task_merge_add() - of one more file
 * What is damaged there, or is not there, is no error. Return: 0, -ENOMEM or another negative errno
 * with @why.
 */
int task_merge_add(struct task_merge *merge, const struct trace_dat *dat, struct fault *why);

/**
 * task_merge_take() - all of it, in this machine's byte order
 * @ret: malloc'ed; NULL: there is nothing
 * Return: 0, or -ENOMEM with @why.
 */
int task_merge_take(struct task_merge *merge, uint8_t **ret, size_t *ret_size, struct fault *why);
