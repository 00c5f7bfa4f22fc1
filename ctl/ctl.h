/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecctl's verbs share: the global options and the exit statuses scripts depend on.
 * Main thread only; plain values.
 */
#pragma once

#include <stdbool.h>

enum ctl_status {
	CTL_DONE = 0,
	CTL_FAILED = 1, /* refused or failed; one line on stderr says why */
	CTL_USAGE = 2,
};

struct ctl {
	bool json;
	bool no_pager;
	const char *runtime_dir;
	const char *host; /* NULL: here */
	/* of some verbs only */
	bool persist;
	const char *output; /* -o: a file; NULL: standard output */
	const char *last, *since, *until, *reason;
	bool pin;
	const char *format;	/* --format= */
	const char *cpus;	/* --cpu= */
	char **events, **pids;	/* each --event= and --pid= */
	const char *max_use;	/* --max-use=, NULL: not given */
	const char *older_than; /* --older-than= */
	bool follow;		/* -f */
	const char *lines;	/* -n */
};
