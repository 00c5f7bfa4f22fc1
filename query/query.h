/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings as tables of SQLite, without loading them: "events", a table for each kind of event,
 * and what analysis knows: waits, handlers, requests, tasks. A scan of a table reads the files
 *anew, so that one that is being written is there as far as it is. One thread.
 *
 *	query_new → vtab_attach → any SQL
 */
#pragma once

#include "analysis/hosts.h"
#include "analysis/sources.h"
#include "decode/event-filter.h"

struct query;

struct query_config {
	const struct source *sources; /* copied; names and descriptors outlive the query */
	size_t n;
	/* Only these events, and what they tell of; outlives the query */
	const struct event_filter *filter;
	/* Put the times of @n_files of several hosts onto one axis; NULL: each has its own date.
	 * Return: 0 or negative errno with @why. */
	int (*place)(struct host_sources *hosts, size_t n_files, struct fault *why);
	const char *task; /* name of tasks whose rows are wanted, fnmatch(3); NULL: all */
	uint64_t last;	  /* nanoseconds: only so much before the end; 0: all */
	/* A scan goes on: so many bytes of files are done with. Return: false: stop it. NULL */
	bool (*on_progress)(void *userdata, uint64_t done, uint64_t bytes);
	void (*on_free)(void *userdata); /* nobody has the query any more; NULL */
	void *userdata;
	void (*on_fault)(const char *text); /* a part of a file is damaged and left out; NULL */
};

/**
 * query_new() - find out which tables there are
 * Return: 0 or negative errno with the story in @why.
 */
int query_new(const struct query_config *config, struct query **ret, struct fault *why);
struct query *query_unref(struct query *query);
DEFINE_CLEANUP(struct query *, query_unref)

/* Tables, those of analysis first */
size_t query_tables(const struct query *query);
const char *query_table_name(const struct query *query, size_t i);

/* What the files did not tell of what was asked */
struct query_notes {
	/* of events that were read: .from, .to, .events; of the scan that had most of these .gaps,
	 * .ended, .unknown, .left_out */
	struct spans_totals totals;
	struct sources_facts facts;
	struct own_sheds sheds; /* as of struct sources_config */
};

/**
 * query_take_notes() - of all scans since the last time
 * @ret: the caller's own_sheds_done() for its sheds
 * Return: 0 or -ENOMEM.
 */
int query_take_notes(struct query *query, struct query_notes *ret);

/**
 * query_faults() - how many parts of the files were damaged, in all scans until now
 */
size_t query_faults(const struct query *query);
