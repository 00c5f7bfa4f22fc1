/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecctl's verbs share: the global options and the exit statuses scripts depend on.
 * Main thread only; plain values.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "convert/convert.h"

enum ctl_status {
	CTL_DONE = 0,
	CTL_FAILED = 1, /* refused or failed; one line on stderr says why */
	CTL_USAGE = 2,
};

/* --raw: control characters in texts of events */
enum ctl_raw {
	CTL_RAW_AUTO, /* escaped on terminals; newlines everywhere */
	CTL_RAW_YES,
	CTL_RAW_NO,
};

struct ctl {
	uint64_t given; /* which options, by row in command.c */
	bool help, version;
	bool json;
	bool no_pager;
	const char *runtime_dir;
	const char *host; /* NULL: here */
	/* of some verbs only */
	bool persist;
	const char *output; /* -o: a file; NULL: standard output */
	const char *last, *since, *until, *reason;
	bool pin;
	bool together;	    /* --together: one file of several sessions */
	const char *format; /* --format= */
	struct convert_options convert;
	const char *cpus;	   /* --cpu= */
	char **events, **pids;	   /* each --event= and --pid= */
	const char *max_use;	   /* --max-use=, NULL: not given */
	const char *older_than;	   /* --older-than= */
	bool coresight;		   /* --coresight */
	const char *coresight_dir; /* --coresight=DIR, NULL: without one */
	bool follow;		   /* -f */
	const char *lines;	   /* -n */
	const char *time;	   /* --time=, NULL: as usual */
	enum ctl_raw raw;	   /* --raw[=yes|no] */
};
