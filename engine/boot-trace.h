/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The trace of a boot that died: what an instance in memory that outlives the kernel still holds of
 * it (recorder/last-boot.h), into a snapshot. Looked for on the main thread before anything in the
 * instance is touched; saved by a job. Owner: the session that starts.
 */
#pragma once

#include "engine/boot-note.h"
#include "engine/snapshot-order.h"
#include "recorder/instance.h"

struct boot_trace;

/* All borrowed; must live as long as the object */
struct boot_trace_params {
	const char *session;
	const char *instance; /* name below instances/ */
	const char *group;
	const struct trace_config *trace;
	const char *boot_id; /* of the boot we are in */
	int dir_fd;	     /* STATE/NAME */
	int tracing_fd;
	struct symbols *symbols; /* of the boot we are in */
	uint64_t memory;	 /* as for a snapshot */
	struct retention_limits limits;
	enum storage_direct direct;
};

enum boot_trace_found {
	BOOT_TRACE_NONE, /* no such instance, or what it holds is of this boot */
	BOOT_TRACE_LOST, /* a boot traced into it and was not ended in order, but nothing is left */
	BOOT_TRACE_HERE,
};

/**
 * boot_trace_find() - is there something to be saved?
 * @ret: unless it is BOOT_TRACE_NONE
 * Return: an enum boot_trace_found, or negative errno with @why.
 */
int boot_trace_find(const struct boot_trace_params *params, struct boot_trace **ret,
		    struct fault *why);

/* NULL is fine. */
void boot_trace_free(struct boot_trace *trace);

/* Of the boot that it is the trace of; "unknown" when that was not noted */
const char *boot_trace_boot_id(const struct boot_trace *trace);

/**
 * boot_trace_save() - job: into STATE/NAME/snapshot, and nothing left behind on error
 * Return: 0, or negative errno with @why; then see boot_trace_is_taken().
 */
int boot_trace_save(struct boot_trace *trace, struct fault *why);

/* The kernel does not have it any more, as this kernel's ring buffer could only be read out */
bool boot_trace_is_taken(const struct boot_trace *trace);

/* The file's name once it is saved; and of which CPUs there is nothing in it, "" if of all */
const char *boot_trace_name(const struct boot_trace *trace);
const char *boot_trace_missing(const struct boot_trace *trace);

DEFINE_CLEANUP(struct boot_trace *, boot_trace_free)
