/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the next trace.dat of an instance shall be like: its header, and the task names that are
 * known. Filled in on the main thread; a job that makes a file reads it.
 */
#pragma once

#include "recorder/instance.h"
#include "writer/task-names.h"
#include "writer/trace-file.h"

struct file_plan {
	struct trace_file_params params; /* what it points to is below, or lives longer */
	char **systems;
	char **build_ids; /* of programs that are probed */
	char *clock_text;
	struct own_clock dated;	  /* the reading that params.date_usec is by */
	struct task_names *names; /* locked by itself; NULL: none are written */
	bool goes_on; /* each file holds what is there already: it has the readings of all */
	struct own_clocks clocks; /* readings for the next file */
	struct own_sheds sheds;	  /* events that were not recorded for a while */
	uint64_t sheds_ended;	  /* trace_file_write_sheds(): 0: nothing was left */
};

/**
 * file_plan_init() - what stays the same of an instance: its shape, and an empty table of names
 * Return: 0 or -ENOMEM.
 */
int file_plan_init(struct file_plan *plan, const struct instance *instance);

/**
 * file_plan_describe() - the instance as it is now: events, clock and date
 * @tracing_fd: the top of tracefs; borrowed for as long as files are made
 * @more: systems whose formats are needed beside those of its events, NULL-terminated, or NULL
 * Thread: main, between steps. Return: 0 or negative errno with @why.
 */
int file_plan_describe(struct file_plan *plan, struct instance *instance, int tracing_fd,
		       char *const *more, struct fault *why);

/**
 * file_plan_add_clock() - one more reading for the next file, where plan->goes_on
 * Thread: main, between steps.
 */
void file_plan_add_clock(struct file_plan *plan, const struct own_clock *reading);

/* The newest reading: that of file_plan_describe(); NULL: there is none */
const struct own_clock *file_plan_reading(const struct file_plan *plan);

/**
 * file_plan_read_names() - take in the task names that the kernel knows now, and who these are
 * @scan: those of all tasks alive, too; else of those that are new
 * Thread: any. Return: 0 or negative errno.
 */
int file_plan_read_names(const struct file_plan *plan, bool scan);

/**
 * file_plan_names_room() - bytes for names that the next file of a recording should have, by what
 * was read: params.names_room at most Return: 0 or -ENOMEM.
 */
int file_plan_names_room(const struct file_plan *plan, size_t *ret);

/**
 * file_plan_tasks_room() - bytes for who the tasks are that the next file should have
 * @names_room: bytes that it has for names
 * @before: the file before it, or NULL
 */
uint32_t file_plan_tasks_room(const struct file_plan *plan, size_t names_room,
			      const struct trace_file *before);

/**
 * file_plan_put_names() - what was read into a file
 * Return: 0 or negative errno.
 */
int file_plan_put_names(const struct file_plan *plan, struct trace_file *file);

/**
 * file_plan_write_names() - read, then put
 */
int file_plan_write_names(const struct file_plan *plan, struct trace_file *file, bool scan);

/**
 * file_plan_names_fill() - is the file's room for names, or for tasks, nearly full, and could that
 * of the next one be larger?
 */
bool file_plan_names_fill(const struct file_plan *plan, const struct trace_file *file);

/* Frees what it owns */
void file_plan_done(struct file_plan *plan);
