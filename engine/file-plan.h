/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the next trace.dat of an instance shall be like: its header, and the task names that are
 * known. Filled in on the main thread; a job that makes a file reads it.
 */
#pragma once

#include "writer/task-names.h"
#include "writer/trace-file.h"

struct file_plan {
	struct trace_file_params params; /* what it points to is below, or lives longer */
	char **systems;
	char *clock_text;
	struct task_names *names; /* locked by itself; NULL: none are written */
};

/**
 * file_plan_write_names() - the task names that are known now into a file
 * @scan: those of all tasks alive, too
 * Thread: any. Return: 0 or negative errno.
 */
int file_plan_write_names(const struct file_plan *plan, struct trace_file *file, bool scan);

/* Frees what it owns */
void file_plan_done(struct file_plan *plan);
