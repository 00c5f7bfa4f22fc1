/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the verbs that analyse recordings share: options, reading the sources without rights, how
 * times are shown. Main thread.
 */
#pragma once

#include "analysis/findings.h"
#include "analysis/journal-lines.h"
#include "analysis/sources.h"
#include "analysis/tables.h"
#include "analysis/words.h"
#include "ctl/output.h"
#include "ctl/source.h"
#include "decode/who.h"

struct json_object;

struct analysis {
	struct ctl *ctl;
	struct source_list sources;
	const char *host; /* whose sources are read; NULL: all are of one host */
	bool together;	  /* @run asks for hosts itself */
	struct event_filter filter;
	uint64_t last;		     /* nanoseconds; 0: all */
	unsigned top;		     /* 0: all */
	struct event_filter_time at; /* --at= */
	bool snapshots;		     /* of sessions, too */
	struct sources_facts facts;
	struct who *who;	/* NULL: nobody asks who tasks are */
	struct own_sheds sheds; /* as struct sources_config has them */
	struct journal_lines journal;
	bool quiet; /* what is damaged has been said */
};

/**
 * analysis_options() - take those that all of these verbs have
 * @top: without --top=
 * Return: false if one is not understood, which has been said; analysis_done() then.
 */
bool analysis_options(struct analysis *analysis, unsigned top);
void analysis_done(struct analysis *analysis);

/**
 * analysis_filter() - --task= and --cpu= as those of spans, as events of other CPUs tell of these,
 * too
 * @cpus: memory for them
 */
void analysis_filter(struct analysis *analysis, struct tables_filter *filter,
		     struct cpu_list *cpus);

/**
 * analysis_run() - open the sources and call @run in a process without rights, whose output goes
 * through a pager
 * @words: NULL-terminated
 * Of several hosts it is called once for each, below a line with its name; with --json an array of
 * what it prints.
 * Done with @analysis. Return: what @run returned, or CTL_FAILED after a line on stderr.
 */
enum ctl_status analysis_run(struct analysis *analysis, char *const *words,
			     int (*run)(void *userdata), void *userdata);

/**
 * analysis_ask_who() - for @run, which undoes it with who_free(): find out who tasks are
 * Return: 0 or -ENOMEM.
 */
int analysis_ask_who(struct analysis *analysis);

/* The unit that a task is in, or was in last; NULL: none, or not known */
const char *analysis_unit(const struct analysis *analysis, const struct span_task *task);

/**
 * analysis_read() - for @run: take all events
 * @config: who takes them; where they come from is filled in
 * Return: 0 or negative errno, after a line on stderr. Damages that were left out are said, and
 * make analysis_run() return CTL_FAILED.
 */
int analysis_read(struct analysis *analysis, struct sources_config *config);

/**
 * analysis_sheds_json() - member "not_recorded": those events, from when to when
 */
void analysis_sheds_json(const struct analysis *analysis, struct json_object *o);

/**
 * analysis_journal_near() - print the lines of the journal of a time of events
 * @indent: before each
 */
void analysis_journal_near(const struct analysis *analysis, uint64_t from, uint64_t to,
			   const char *indent);
void analysis_journal_line(const struct own_journal_line *line, const char *indent);

/* The same for JSON; all of them */
struct json_object;
struct json_object *analysis_journal_json(const struct own_journal_line *list, size_t n);

/**
 * analysis_cpus() - how busy each CPU was
 * @most: of more only those that were waited for most; 0: all
 * @whole: nanoseconds of the recording
 * Return: 0 or -ENOMEM.
 */
int analysis_cpus(const struct findings *findings, size_t most, uint64_t whole, struct table *ret);

/**
 * analysis_table() - what view shows, for who shows it otherwise
 * @analysis: its sources are read
 * @top: so many rows; 0: all
 * @ret_rows: how many there would be
 * Return: 0 or negative errno, after a line on stderr.
 */
int analysis_table(const struct analysis *analysis, enum table_view view, size_t top,
		   struct table *ret, size_t *ret_rows);

/* "how long tasks waited for a CPU" */
const char *analysis_table_title(enum table_view view);

/**
 * analysis_notes() - say what the recording does not tell
 */
void analysis_notes(const struct analysis *analysis, const struct spans_totals *totals);
