/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a session traces: the [Trace] section as plain values. Filled in by daemon/config, read by
 * recorder/instance. Owner: the session's config; main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

#define SUBBUF_SIZE_AUTO 0

struct trace_event {
	char *system;
	char *name;    /* NULL: every event of the system */
	char *filter;  /* kernel filter, or NULL */
	bool optional; /* "-": fine if this kernel lacks it */
};

struct trace_trigger {
	char *system;
	char *name;
	char *trigger; /* as written to the event's trigger file */
	bool optional;
};

struct trace_config {
	struct trace_event *events;
	size_t n_events;
	struct trace_trigger *triggers;
	size_t n_triggers;
	char **function_filter; /* NULL-terminated arrays; NULL: none */
	char **function_notrace;
	char **kprobes; /* kernel syntax, without our group */
	char **uprobes; /* the same, or PATH:SYMBOL for the offset */
	char **usdts;	/* "p:NAME PATH:PROVIDER:PROBE ARGUMENTS" */
	char **synthetic_events;
	char **units;
	char **options; /* trace_options words, e.g. "nooverwrite" */
	char *tracer;	/* NULL: nop */
	char *clock;	/* never NULL; default "mono", "local" if persistent */
	char *cpus;	/* cpu list "0-3,8", or NULL: all */
	uint32_t *pids;
	size_t n_pids;
	uint64_t buffer_size;	   /* bytes per CPU; default 4 MiB */
	uint64_t subbuf_size;	   /* bytes, or SUBBUF_SIZE_AUTO */
	uint64_t auto_subbuf_size; /* bytes to try then; 0: as the kernel has it. No key. */
	unsigned buffer_percent;   /* default 25 */
	bool persistent;
};
