/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=gdb-tfile: events as frames of a gdb trace file. The events are read twice: the
 * head of the file tells how many frames there are and where their tracepoints were. Main thread.
 */
#pragma once

#include "convert/convert.h"
#include "decode/event-filter.h"
#include "decode/text.h"

#define EXPORT_GDB_MAX_FRAMES 20000U /* unless told otherwise: gdb goes through them one by one */

struct export_gdb_job {
	const struct trace_dat *dat;
	const struct decoder *decoder;
	const struct event_filter *filter;
	uint64_t max_frames;		     /* 0: all */
	int fd;				     /* stays the caller's */
	const char *tfile;		     /* name of the output, for the command file */
	FILE *command;			     /* the command file, or NULL */
	void (*on_fault)(const char *text);  /* a part of the file was left out */
	void (*on_notice)(const char *text); /* something to know */
	size_t n_faults;
};

/**
 * export_gdb_run() - write the trace file, then the command file
 * Return: 0, OUT_FILE_E_PIPE, or negative errno with the story in @why.
 */
int export_gdb_run(struct export_gdb_job *job, struct fault *why);

/**
 * export_gdb_again() - the same for a file that import --format=gdb-tfile made
 * @ret_done: false: it is none, nothing was done
 */
int export_gdb_again(struct export_gdb_job *job, bool *ret_done, struct fault *why);

/* --- what these two have in common */

enum {
	EXPORT_GDB_ENOUGH = 1, /* no more events in this pass */
};

/* Functions return 0 or negative errno; with @why untouched where that tells all */
struct export_gdb_maker {
	bool all; /* take() gets what the filter does not want, too, and no names of tasks */
	/* Once for each event in each pass. @out: frames; NULL in the first pass, which counts. */
	int (*take)(void *userdata, const struct decode_event *event, struct text *out,
		    struct fault *why);
	int (*end_pass)(void *userdata, struct text *out);
	void (*put_head)(void *userdata, FILE *out);
	void (*put_command)(void *userdata, FILE *out);
};

/**
 * export_gdb_write() - both files
 * Return: as export_gdb_run(), but with @why untouched after some errors: export_gdb_result()
 */
int export_gdb_write(struct export_gdb_job *job, const struct export_gdb_maker *maker,
		     void *userdata, struct fault *why);

/**
 * export_gdb_result() - @r, with a story in any case
 */
int export_gdb_result(const struct export_gdb_job *job, int r, struct fault *why);

void export_gdb_notice(const struct export_gdb_job *job, const char *text);
