/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing out all events of a file, with all cores: the main thread merges the CPUs into batches of
 * events, worker threads turn these into text, the main thread writes them in order. Memory is
 * bounded by the number of batches, whatever the file's size. Main thread; workers live as long as
 * export_run().
 */
#pragma once

#include "decode/filter.h"

enum export_format {
	EXPORT_TEXT,
	EXPORT_JSON,
};

struct export_job {
	const struct trace_dat *dat;
	struct decoder *decoder;
	const struct export_filter *filter;
	enum export_format format;
	unsigned workers;	 /* 0: as many as there are CPUs */
	int fd;			 /* stays the caller's */
	enum text_escape escape; /* of control characters, in text */
	struct event_time time;	 /* in text */
	/* a part of the file is broken and was left out; @text names the file */
	void (*on_fault)(const char *text);
	size_t n_faults;
};

enum {
	EXPORT_E_PIPE = 1, /* whoever read the output has gone */
};

/**
 * export_run() - write to job->fd
 * Return: 0, EXPORT_E_PIPE, or negative errno with the story in @why.
 */
int export_run(struct export_job *job, struct fault *why);
