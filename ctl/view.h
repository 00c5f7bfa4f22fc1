/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecd says of itself, as plain values: sessions, statistics, files. Main thread.
 */
#pragma once

#include "ctl/bus.h"

/* What causes snapshots by itself */
struct view_trigger {
	char *kind, *text, *state, *unavailable, *way;
	uint64_t fired, suppressed;
};

/* How far back a CPU's ring buffer reaches */
struct view_history {
	uint64_t cpu, usec;
};

/* What is in a CPU's ring buffer now */
struct view_buffered {
	uint64_t cpu, events, bytes;
};

struct view_session {
	char *name, *description, *mode, *method, *state, *failure, *instance;
	bool enabled;
	uint64_t segments, bytes_on_disk, bytes_recorded;
	uint64_t snapshots, snapshot_bytes; /* of a flight session part of bytes_on_disk */
	uint64_t segment_usec;		    /* realtime, microseconds; 0: none */
	uint64_t started_usec;		    /* likewise: recording since */
	uint64_t history_usec; /* how far back it reaches, all CPUs; 0: nothing yet, or unknown */
	struct view_history *history; /* of each CPU that has something; flight sessions only */
	size_t n_history;
	struct view_buffered *buffered; /* likewise */
	size_t n_buffered;
	uint64_t events_traced;	       /* of a flight session: since started_usec */
	uint64_t cpu_usec;	       /* CPU time of its draining threads, since flyrecd's start */
	uint64_t max_use, budget_usec; /* bytes of segments, and how long they last; 0: none */
	char **units, **event_triggers; /* NULL-terminated */
	uint64_t tasks, processes;	/* that Pid= and Unit= found */
	char *clock;
	uint64_t buffer_size; /* of a CPU */
	uint64_t subbuf_size; /* 0: it does not run */
	char *compress;
	uint64_t packed_segments;	  /* that are compressed */
	uint64_t packed_bytes, raw_bytes; /* what these take on the disk, and took before */
	uint64_t packing_waits;		  /* segments that are to be compressed */
	char *packing_failure;
	char *drain;
	char *trace_marker;
	char **shed; /* events that are not recorded for now; NULL-terminated */
	uint64_t lost_events, not_written, first_loss_usec, last_loss_usec;
	char **events, **changes; /* NULL-terminated */
	struct view_trigger *triggers;
	size_t n_triggers;
};

struct view_status {
	char *version, *state, *state_dir;
	uint64_t pid, uptime_usec;
	uint64_t cpu_usec;	       /* CPU time, but for starting sessions */
	struct view_session *sessions; /* sorted by name */
	size_t n_sessions;
};

#define VIEW_COUNTERS 9

/* Of a CPU, in the order of GetStatistics; engine/account.h says what each counts */
struct view_cpu {
	uint64_t cpu;
	uint64_t values[VIEW_COUNTERS];
};

enum {
	VIEW_OVERRUN = 2, /* what a flight session overwrites is no loss */
};

/* One row for a value that flyrecd tells: how it comes, and how it is shown */
struct view_field {
	const char *types; /* D-Bus signature; NULL: the end of the table */
	size_t offset;	   /* of char *, char **, bool, uint64_t; of structures: *rows and size_t */
	const char *key;   /* in JSON; NULL: not there */
	const char *property; /* NULL: values come without names, in the order of the table */
	const struct view_field *rows; /* of an array of structures */
	size_t row_size;

	const char *heading; /* of the column; NULL: none, or not this one alone */
	const char *metric;  /* without _total; NULL: none */
	const char *unit;    /* or NULL; the metric's name ends in it. seconds: of a time in usec */
	const char *help;
	enum {
		VIEW_OF_ALL,
		VIEW_OF_RECORD,
		VIEW_OF_FLIGHT,
	} mode; /* sessions that have the metric */
};

/* In the order of --json */
extern const struct view_field view_status_fields[], view_session_fields[], view_trigger_fields[],
	view_stats_fields[], view_cpu_fields[], view_files_fields[], view_hours_fields[],
	view_hour_fields[];

struct view_stats {
	char *name;
	struct view_cpu *cpus;
	size_t n_cpus;
};

struct view_stats_list {
	struct view_stats *sessions;
	size_t n;
};

struct view_minute {
	uint64_t end_usec, usec, events, lost; /* until when, for how long; realtime */
};

struct view_hour {
	char *name;
	struct view_minute *minutes; /* oldest first */
	size_t n_minutes;
};

struct view_hours {
	struct view_hour *sessions;
	size_t n;
};

struct view_file {
	char *session, *kind, *path;
	uint64_t bytes, start_usec, end_usec, cpus;
	bool pinned;
	uint64_t raw_bytes; /* of a compressed one: before; else as bytes */
	char *finding;	    /* of a snapshot: the worst that analysis found; "": none */
	char **ids; /* of a snapshot: what its moment is known by to other hosts; NULL-terminated */
};

struct view_files {
	struct view_file *files;
	size_t n;
};

/**
 * view_read_status() - all sessions
 * @only: or this one alone, NULL: all; that there is none is an error
 * Return: 0, or negative errno after a line on stderr; so do the others. What they have made is
 * for view_done().
 */
int view_read_status(struct ctl *ctl, const char *only, struct view_status *ret);
int view_read_stats(struct ctl *ctl, const char *only, struct view_stats_list *ret);
int view_read_hours(struct ctl *ctl, const char *only, struct view_hours *ret);
int view_read_files(struct ctl *ctl, const char *only, struct view_files *ret);

/**
 * view_recording() - names of the sessions that record, or are paused
 * @flight: flight sessions, too
 * @trigger: only those with a trigger of this kind; NULL: all
 * @ret: NULL-terminated; NULL: there is none
 * Return: as view_read_status().
 */
int view_recording(struct ctl *ctl, bool flight, const char *trigger, char ***ret);

/**
 * view_done() - free all that the table says
 */
void view_done(const struct view_field *fields, void *object);

/**
 * view_escape() - escape control characters in all texts, for a terminal
 * Return: 0 or -ENOMEM.
 */
int view_escape(const struct view_field *fields, void *object);

/**
 * view_json() - an object with all keys of the table
 */
struct json_object *view_json(const struct view_field *fields, const void *object);

/**
 * metrics_write() - the numbers of status and stats as OpenMetrics text 1.0
 * (https://prometheus.io/docs/specs/om/open_metrics_spec/), up to "# EOF"
 * @f: errors show in ferror(). Pure function.
 */
void metrics_write(FILE *f, const struct view_status *status, const struct view_stats_list *stats);
