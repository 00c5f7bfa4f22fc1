/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pid= and Unit=: which tasks are traced. The kernel filters by thread (set_event_pid holds thread
 * ids), so every thread of a process is entered; threads and children to come follow through the
 * option event-fork, and those that exit leave the list by themselves. Main thread.
 *
 * An empty set_event_pid traces everything. So that a unit that does not run, or whose last task
 * exits, traces nothing, the list always has PIDS_NOBODY in it, a number that no task can have.
 * That it is missing also tells that somebody cleared the list.
 */
#pragma once

#include "recorder/trace-config.h"
#include "recorder/tracedir.h"

/*
 * PID_MAX_LIMIT of 64-bit kernels: pid_max can be that at most, and pids are below pid_max.
 */
#define PIDS_NOBODY 4194304U

static inline bool pids_configured(const struct trace_config *config)
{
	return config->n_pids > 0 || (config->units && config->units[0]);
}

/**
 * pids_apply() - write the list anew; nothing if neither Pid= nor Unit= is set
 * A unit that does not run is no error. For a moment the list is empty: tracing should be off.
 */
int pids_apply(const struct tracedir *dir, const struct trace_config *config, struct fault *why);

/* Of a unit no thread is in the list: it does not run, or this process cannot see it */
#define PIDS_MISSING 1

/**
 * pids_refresh() - add the threads that are in the units' control groups now
 * Adds only: no moment without a list, and who exits leaves it anyway. A task that was moved to
 * another control group stays in.
 * Return: 0, PIDS_MISSING with the names and the reason in @why, or negative errno with @why.
 */
int pids_refresh(const struct tracedir *dir, const struct trace_config *config, struct fault *why);

/**
 * pids_check() - written anew if somebody cleared it, or made one that nobody asked for
 */
int pids_check(const struct tracedir *dir, const struct trace_config *config,
	       struct changes *changes, struct fault *why);

/**
 * pids_count() - the threads in the list that are alive, and the processes among them; 0 and 0
 * where neither Pid= nor Unit= is set
 */
int pids_count(const struct tracedir *dir, const struct trace_config *config, uint64_t *ret_tasks,
	       uint64_t *ret_processes);

/**
 * pids_count_text() - of the text of set_event_pid
 * @proc_fd: /proc: its numbers are the processes. Pure but for reading that.
 */
int pids_count_text(const char *text, int proc_fd, uint64_t *ret_tasks, uint64_t *ret_processes);

/**
 * pids_in_first_namespace() - are the numbers that this process knows of tasks the kernel's?
 * set_event_pid and events have those of the first PID namespace, whoever writes or reads them; in
 * another one we know none but our own, which are other tasks' there.
 */
bool pids_in_first_namespace(void);
