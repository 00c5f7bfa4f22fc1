/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One tracefs instance: made, set up as the configuration says, watched, repaired, removed.
 * libtracefs finds, makes and removes the directory; its files are opened below a directory fd, so
 * that nothing is ever written to an instance that somebody made anew under our name. The top-level
 * buffer is never touched. Owner: the session. Main thread, but for what takes a const instance:
 * that reads only what stays as it is from instance_create() or instance_attach() on, so that any
 * thread may call it until the instance is freed. What the kernel refuses comes back as a fault
 * that names the file and quotes the kernel's error_log.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "recorder/last-boot.h"
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
	INSTANCE_EMPTIED,  /* the same, and the ring buffer was emptied over it: begin a new file */
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
 * @group: system name for this session's kprobes and uprobes, e.g. "flyrec_sched"; what exists in
 *         it already counts as left over and is removed
 * @config: stays the caller's and must live as long as the instance
 * With Persistent=, one that the kernel made at boot is taken: what is in it is discarded, its size
 * is what it is. Where there is none, an ordinary one is made.
 * Undone completely on error. -EEXIST: there is one of this name already; -ENOENT: the kernel lacks
 * an event; -ENOMEM also: the buffers would take more than half of the available memory.
 */
int instance_create(const char *name, const char *group, const struct trace_config *config,
		    struct instance **ret, struct fault *why);

/**
 * instance_attach() - adopt an instance that an earlier process made with the same configuration
 * Nothing in it is changed; call instance_check() to have it repaired, after instance_trace():
 * until then it is not known whether it shall trace. May also serve to drain and destroy an
 * instance of another configuration: every probe of the group goes with it. -ENOENT: there is none.
 */
int instance_attach(const char *name, const char *group, const struct trace_config *config,
		    struct instance **ret, struct fault *why);

/**
 * instance_marker() - the path of its trace_marker, where anybody may write who may write there
 * Return: malloc'ed, NULL: no memory.
 */
char *instance_marker(const struct instance *instance);

/**
 * instance_build_ids() - "HEX PATH" of each program that Uprobe= and Usdt= probe, NULL-terminated,
 * as it was when the probe was made; NULL: none instance_set_build_ids() - what that was before
 * instance_attach(). Return: 0 or -ENOMEM.
 */
char *const *instance_build_ids(const struct instance *instance);
int instance_set_build_ids(struct instance *instance, char *const *build_ids);

/**
 * instance_destroy() - tracing off, triggers, events, instance and dynamic events removed; frees it
 * What the kernel made at boot stays, emptied: it could not be made again.
 * All fds of the instance must be closed and all mappings undone before. -EBUSY: somebody still
 * holds a file of it open; @why says which. Goes on after an error; @why has the first. An instance
 * that somebody else made anew under our name is left alone. NULL is fine.
 */
int instance_destroy(struct instance *instance, struct fault *why);

/**
 * instance_remove() - destroy one that an earlier process made, whatever for; none is fine
 * It has no events of its own: @name is no group's.
 */
int instance_remove(const char *name, struct fault *why);

/* Forget it, leaving the kernel's side as it is (hand-over). NULL is fine. */
void instance_free(struct instance *instance);

/**
 * instance_check() - compare with the configuration and repair
 * Looks at: the directory's identity, tracing_on (against instance_trace()'s last word, unless the
 * session has traceon or traceoff triggers of its own), sub-buffer and buffer size, clock,
 * buffer_percent, tracing_cpumask, tracer and its filters, options, dynamic events, set_event_pid,
 * filters, triggers and enabled events. 0.25 ms of CPU time for a handful of events.
 * A changed clock or sub-buffer size has emptied the ring buffer and made timestamps that don't fit
 * the others: INSTANCE_EMPTIED.
 * Return: an enum instance_health (@why has the text unless it is INSTANCE_OK), or negative errno
 * when repair failed.
 */
int instance_check(struct instance *instance, struct fault *why);

/**
 * instance_trace() - tracing_on
 */
int instance_trace(struct instance *instance, bool on, struct fault *why);

/**
 * instance_has_events() - does the kernel have all events of @config that are not optional?
 * Return: 0, or -ENOENT with @why.
 */
int instance_has_events(const struct instance *instance, const struct trace_config *config,
			struct fault *why);

/**
 * instance_update_events() - the events (and filters) in the configuration have been replaced
 * Those that are no longer in it are disabled one by one, what stays is traced all the time.
 * The strings of the list before must live until this returns. What the kernel refuses (@why) is
 * undone: the caller puts the list back that was before.
 */
int instance_update_events(struct instance *instance, struct fault *why);

/**
 * instance_shed() - do not trace an event of the configuration for now, or trace it again
 * @event: "SYSTEM:NAME", which is enabled, also as one of a whole system
 * instance_check() leaves it as it is, instance_update_events() enables it.
 */
int instance_shed(struct instance *instance, const char *event, bool shed, struct fault *why);

/**
 * instance_mark() - a line of text into the trace, by its trace_marker
 * Return: 0 or negative errno.
 */
int instance_mark(const struct instance *instance, const char *text);

/**
 * instance_refresh_pids() - Unit=: add the threads that are now in the units' control groups to
 * set_event_pid, beside Pid=; children follow through the event-fork option
 * A unit that does not run is no error: it traces nothing yet (see recorder/pids.h).
 * Return: 0 (also when no units are configured), 1 with @why set: of units nothing is traced now;
 * or negative errno with @why.
 */
int instance_refresh_pids(struct instance *instance, struct fault *why);

/**
 * instance_count_tasks() - the threads in set_event_pid, and the processes among them, that are
 * alive
 */
int instance_count_tasks(const struct instance *instance, uint64_t *ret_tasks,
			 uint64_t *ret_processes);

/**
 * instance_open_cpu() - per_cpu/cpuN/trace_pipe_raw, non-blocking, close-on-exec
 */
int instance_open_cpu(const struct instance *instance, unsigned cpu, int *ret_fd,
		      struct fault *why);

/**
 * instance_read_stats() - per_cpu/cpuN/stats
 */
int instance_read_stats(const struct instance *instance, unsigned cpu, struct cpu_stats *ret);

/**
 * instance_buffer_size() - of each CPU, bytes; what the kernel made at boot has its own
 */
int instance_buffer_size(const struct instance *instance, uint64_t *ret);

/**
 * instance_make_spare() - the second ring buffer, for swaps (recorder/ring-memory.h)
 * What was in the ring buffer may be in the second one afterwards.
 * Return: 0; -ENOMEM or another negative errno with @why.
 */
int instance_make_spare(const struct instance *instance, struct fault *why);
int instance_drop_spare(const struct instance *instance, struct fault *why);

/* Made by the kernel at boot, in memory that outlives it (recorder/last-boot.h) */
bool instance_is_kept(const struct instance *instance);

/**
 * instance_read_last_boot() - what such an instance says of the boot before
 * To be asked before anything is changed or read in it. @ret: undo with last_boot_done()
 */
int instance_read_last_boot(const struct instance *instance, struct last_boot *ret,
			    struct fault *why);

/**
 * instance_open_stats() - the same file, for a worker to read again and again
 * Return: an fd, or negative errno.
 */
int instance_open_stats(const struct instance *instance, unsigned cpu);

/**
 * instance_systems() - systems whose formats a file of this instance needs
 * Those of all enabled events, of events that triggers are on or mention, "synthetic" if it has
 * any, and the dynamic group; not "ftrace", which every file has. Sorted, unique.
 * @ret: NULL-terminated, freed with tracefs_list_free(); NULL when there are none
 */
int instance_systems(struct instance *instance, char ***ret, struct fault *why);

int instance_dir_fd(const struct instance *instance); /* O_PATH-like, for openat() */
const char *instance_name(const struct instance *instance);
unsigned instance_n_cpus(const struct instance *instance); /* possible CPUs: per_cpu/cpu0 … n-1 */
unsigned instance_subbuf_size(const struct instance *instance); /* bytes, from events/header_page */

DEFINE_CLEANUP(struct instance *, instance_free)
