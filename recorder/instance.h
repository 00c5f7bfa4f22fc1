/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One tracefs instance: made, set up as the configuration says, watched, repaired, removed.
 * Everything goes through libtracefs or plain files below the instance; the top-level buffer is
 * never touched. Owner: the session. Main thread. What the kernel refuses comes back as a fault
 * that names the file and quotes the kernel's error_log.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "recorder/trace-config.h"

struct instance;

/* What per_cpu/cpuN/stats says; events unless said otherwise */
struct cpu_stats {
	uint64_t entries; /* in the ring buffer now */
	uint64_t overrun; /* overwritten before anyone read them */
	uint64_t commit_overrun;
	uint64_t bytes;		 /* in the ring buffer now */
	uint64_t dropped_events; /* with overwrite off */
	uint64_t read_events;	 /* taken out by readers */
	uint64_t oldest_usec;	 /* in the instance's clock; 0 where the clock counts no time */
	uint64_t now_usec;
};

enum instance_health {
	INSTANCE_OK,	   /* as configured */
	INSTANCE_REPAIRED, /* someone had changed it; the fault's text says what; it is right again
			    */
	INSTANCE_GONE,	   /* removed (or removed and made anew by someone else) */
};

/**
 * tracefs_usable() - can this process trace at all?
 * Recognises and names: no tracefs mounted (mounting it at /sys/kernel/tracing is tried first), no
 * permission, kernel lockdown.
 * Return: 0 or negative errno with @why set.
 */
int tracefs_usable(struct fault *why);

/**
 * instance_create() - a new instance, fully set up, tracing still off
 * @name: directory below instances/
 * @group: system name for this session's kprobes and uprobes, e.g. "flyrec_sched"
 * Undone completely on error. -EEXIST: there is one of this name already.
 */
int instance_create(const char *name, const char *group, const struct trace_config *config,
		    struct instance **ret, struct fault *why);

/**
 * instance_attach() - adopt an instance that an earlier process made with the same configuration
 * Nothing in it is changed; call instance_check() to have it repaired. -ENOENT: there is none.
 */
int instance_attach(const char *name, const char *group, const struct trace_config *config,
		    struct instance **ret, struct fault *why);

/**
 * instance_destroy() - tracing off, triggers, events, instance and dynamic events removed; frees it
 * All fds of the instance must be closed before. Goes on after an error; @why has the first.
 */
int instance_destroy(struct instance *instance, struct fault *why);

/* Forget it, leaving the kernel's side as it is (hand-over). NULL is fine. */
void instance_free(struct instance *instance);

/**
 * instance_check() - compare with the configuration and repair
 * Looks at: the directory's identity, tracing_on (against instance_trace()'s last word), clock,
 * buffer size, tracer, enabled events, tracing_cpumask. Cheap enough for once every few seconds.
 * Return: an enum instance_health, or negative errno when repair failed.
 */
int instance_check(struct instance *instance, struct fault *why);

/**
 * instance_trace() - tracing_on
 */
int instance_trace(struct instance *instance, bool on, struct fault *why);

/**
 * instance_refresh_pids() - Unit=: put the processes that are now in the units' control groups into
 * set_event_pid, beside Pid=; children follow through the event-fork option
 * Return: 0 (also when no units are configured), or negative errno.
 */
int instance_refresh_pids(struct instance *instance, struct fault *why);

/**
 * instance_open_cpu() - per_cpu/cpuN/trace_pipe_raw, non-blocking, close-on-exec
 */
int instance_open_cpu(struct instance *instance, unsigned cpu, int *ret_fd, struct fault *why);

/**
 * instance_read_stats() - per_cpu/cpuN/stats
 */
int instance_read_stats(struct instance *instance, unsigned cpu, struct cpu_stats *ret);

/**
 * instance_systems() - systems whose formats a file of this instance needs
 * Those of all enabled events, of events that triggers are on, "synthetic" if it has any, and the
 * dynamic group. Sorted, unique. @ret: NULL-terminated, freed with tracefs_list_free().
 */
int instance_systems(struct instance *instance, char ***ret, struct fault *why);

int instance_dir_fd(const struct instance *instance); /* O_PATH-like, for openat() */
const char *instance_name(const struct instance *instance);
unsigned instance_n_cpus(const struct instance *instance); /* possible CPUs: per_cpu/cpu0 … n-1 */
unsigned instance_subbuf_size(const struct instance *instance); /* bytes, from events/header_page */

DEFINE_CLEANUP(struct instance *, instance_free)
