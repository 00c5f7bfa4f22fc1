/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecctl's verbs share: the options, the exit statuses scripts depend on, and the verbs
 * themselves. Main thread only.
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

/* --raw: control characters in texts of events; cat: a file that is compressed */
enum ctl_raw {
	CTL_RAW_AUTO, /* escaped on terminals; newlines everywhere */
	CTL_RAW_YES,
	CTL_RAW_NO,
};

struct sd_bus;

struct ctl {
	const char *verb;
	const char *method; /* on D-Bus, of a verb that is no more than that */
	struct sd_bus *bus; /* bus.c's; NULL: not connected */
	uint64_t given;	    /* which options, by row in command.c */
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
	const char *id;
	bool limited;	    /* --limited: for another host */
	bool together;	    /* --together: one file of several sessions */
	const char *format; /* --format= */
	struct convert_options convert;
	const char *cpus;	    /* --cpu= */
	char **events, **pids;	    /* each --event= and --pid= */
	char **units, **containers; /* each --unit= and --container= */
	const char *max_use;	    /* --max-use=, NULL: not given */
	const char *older_than;	    /* --older-than= */
	bool coresight;		    /* --coresight */
	const char *coresight_dir;  /* --coresight=DIR, NULL: without one */
	bool follow;		    /* -f */
	const char *lines;	    /* -n */
	const char *time;	    /* --time=, NULL: as usual */
	enum ctl_raw raw;	    /* --raw[=yes|no] */
	const char *to_version;	    /* --version=, NULL: not given */
	const char *compress;	    /* --compress=, likewise */
	const char *task, *top;	    /* --task=, --top=, likewise */
	const char *at;		    /* --at=, likewise */
	const char *min;	    /* --min=, likewise */
	const char *by;		    /* --by=, NULL: not given */
	bool folded;		    /* --folded */
	bool csv, examples;	    /* --csv, --examples */
	bool graph;		    /* --graph */
	const char *timeout;	    /* --timeout=, NULL: not given */
	const char *max_memory;	    /* --max-memory=, likewise */
	char **tsc_offsets;	    /* each --tsc-offset= */
};

/**
 * ctl_complain() - a line on standard error, behind the name of the verb
 * Return: CTL_USAGE, for whose arguments make no sense.
 */
enum ctl_status ctl_complain(const struct ctl *ctl, const char *format, ...) _printf_(2, 3);

/*
 * The verbs, by the files that have them; flyrecctl(1) says what each does. argv[0] is the verb.
 * Return: CTL_DONE; CTL_FAILED or CTL_USAGE, after a line on standard error.
 */
typedef enum ctl_status verb_function(struct ctl *ctl, int argc, char **argv);

/* show.c */
verb_function verb_status, verb_list, verb_stats, verb_metrics, verb_boot_parameters, verb_complete;
/* change.c */
verb_function verb_rotate, verb_trigger, verb_start, verb_pause, verb_events, verb_filter,
	verb_vacuum, verb_reload, verb_pin;
/* a file each */
verb_function verb_analyze, verb_cat, verb_convert, verb_cost, verb_export, verb_import,
	verb_latency, verb_merge, verb_query, verb_snapshot, verb_tail, verb_verify, verb_view,
	verb_why;

/* All that --format= takes; NULL-terminated */
extern const char *const export_formats[], *const import_formats[];
