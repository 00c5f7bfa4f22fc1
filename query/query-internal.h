/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What scans of all tables need of a query: its files, and which rows are wanted. One thread.
 */
#pragma once

#include "analysis/hosts.h"
#include "analysis/sources.h"
#include "query/query.h"
#include "query/table.h"

#define HOST_ROWS 44 /* bits: numbers of rows of a host, where these do not tell the file */

/* A kind of event; files of other kernels may have other fields of it */
struct event_kind {
	char *system, *name;
	struct event_format {
		size_t source; /* the first that has it so */
		uint32_t checksum;
	} * formats;
	size_t n_formats;
};

struct query {
	struct query_config config;
	struct host_sources hosts;
	size_t host; /* whose sources a scan that begins now is of */
	struct source_set *set;
	struct event_kind **kinds;
	size_t n_kinds;
	void *by_kind; /* tree of them */
	struct query_table **tables;
	size_t n_tables;
	size_t n_faults;
	uint64_t bytes; /* of all files, for estimates */
	unsigned refs;
	bool made;		  /* query_new() is done with it */
	struct own_sheds sheds;	  /* of all files, when they were opened first */
	bool *asked;		  /* [sheds.n]: of an event and a time that was asked for */
	struct query_notes notes; /* without sheds */
};

/**
 * query_sources() - what a scan's struct sources_config begins with
 */
struct sources_config query_sources(struct query *query);

/**
 * query_note() - a scan is over
 * @read: as of struct query_notes
 * @wants: which kinds of events it was about; NULL: all
 */
void query_note(struct query *query, const struct spans_totals *read,
		const struct sources_facts *facts,
		bool (*wants)(const struct query_scan *scan, const char *system, const char *name),
		const struct query_scan *scan);

/**
 * query_goes_on() - to be asked now and then
 */
bool query_goes_on(const struct query *query, const struct sources *sources);

/**
 * query_table_columns() - find out what they are, if that is not known yet
 */
int query_table_columns(struct query *query, struct query_table *table, struct fault *why);
