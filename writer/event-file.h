/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace.dat (version 6) made of events that do not come from a kernel: what imports write. The
 * ring buffer is a 64-bit one of this machine's byte order, with sub-buffers of 4096 bytes.
 *
 * Memory is bounded by the number of CPUs, whatever the size: the CPU whose buffer is full first is
 * written straight to its place, the others go to an unlinked file in the same directory, from
 * where they are joined by copy_file_range(2). The number of CPUs is not known before the end.
 *
 * Owner: the caller; an object belongs to one thread at a time. One that is freed before it is
 * finished leaves nothing behind.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "basic/fault.h"
#include "basic/macro.h"
#include "formats/event-head.h"
#include "formats/subbuf-write.h"
#include "writer/sections.h"

#define EVENT_FILE_SUBBUF   4096U
#define EVENT_FILE_MAX_CPUS 4096U
/* bytes of one event, from its type on */
#define EVENT_FILE_MAX_EVENT (EVENT_FILE_SUBBUF - SUBBUF_WRITE_HEAD - 8)

struct event_file_params {
	const char *path; /* NULL: a nameless file in $TMPDIR or /var/tmp, see event_file_fd() */
	mode_t mode;	  /* less the umask */
	const struct sections_format *formats;
	size_t n_formats;
	const char *clock; /* text of trace_clock, "[local]\n" */
	const char *uname; /* where the events come from, for the UNAME option */
	bool has_date;
	int64_t date_usec; /* realtime minus the clock */
};

struct event_file_totals {
	unsigned cpus;
	uint64_t events;
	uint64_t bytes; /* of the file */
};

struct event_file;

/**
 * event_file_new() - begin a file
 * @params: formats and texts must outlive @ret
 */
int event_file_new(const struct event_file_params *params, struct event_file **ret,
		   struct fault *why);

/**
 * event_file_reserve() - room for an event, behind the others of its CPU
 * @cpu: any below EVENT_FILE_MAX_CPUS; those between that get no event will be empty
 * @ts: nanoseconds, above 0, not before this CPU's event before
 * @size: bytes from struct event_file_head on, at most EVENT_FILE_MAX_EVENT
 * @ret: where the caller puts all of the event, before the next call
 * Return: 0, or -EINVAL (time), -ERANGE (CPU), -EMSGSIZE (size): nothing has changed, go on as you
 * like; -ENOMEM, or the negative errno of writing: the file cannot be finished.
 */
int event_file_reserve(struct event_file *file, unsigned cpu, uint64_t ts, size_t size, void **ret);

/**
 * event_file_last_ts() - time of a CPU's newest event; 0: none
 */
uint64_t event_file_last_ts(const struct event_file *file, unsigned cpu);

/**
 * event_file_task() - name a pid, once each, up to the end; what readers show for common_pid
 */
int event_file_task(struct event_file *file, int pid, const char *comm);

/**
 * event_file_note() - a text of its own among the CPUs' statistics, up to the end; copied
 */
int event_file_note(struct event_file *file, const char *text);

/**
 * event_file_finish() - write what is left and all tables, give the file its name
 * @ret: may be NULL
 * Once, as the last call but event_file_fd() and event_file_free().
 */
int event_file_finish(struct event_file *file, struct event_file_totals *ret, struct fault *why);

/**
 * event_file_fd() - of a finished file without a path, to copy it from; stays the object's
 */
int event_file_fd(const struct event_file *file);

struct event_file *event_file_free(struct event_file *file);
DEFINE_CLEANUP(struct event_file *, event_file_free)
