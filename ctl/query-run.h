/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `query` and its shell do in the process without rights: SQL over the sources, within limits,
 * and how far it has got on a terminal. Main thread.
 */
#pragma once

#include "ctl/analysis.h"
#include "ctl/query-rows.h"

struct query_run {
	struct analysis a;
	enum rows_form form;
	uint64_t memory;  /* bytes that SQLite may have */
	uint64_t timeout; /* of each text of SQL, microseconds; 0: none */
	bool progress;	  /* tell how far it has got, if that takes long */

	/* made by query_run_begin() */
	struct query *query;
	struct query_database *database;
	struct rows *rows;

	uint64_t begun, told; /* by CLOCK_MONOTONIC, microseconds; told: 0: nothing yet */
	uint64_t n_rows;
	bool timed_out;
};

/**
 * query_run_begin() - Return: 0 or negative errno after a line on stderr; query_run_end() in any
 * case.
 */
int query_run_begin(struct query_run *run);

/**
 * query_run_sql() - print what comes out
 * Return: CTL_DONE, or CTL_FAILED after a line on stderr.
 */
enum ctl_status query_run_sql(struct query_run *run, const char *sql);

void query_run_end(struct query_run *run);

/**
 * query_run_interrupt() - SQL that is running ends soon; for signal handlers
 */
void query_run_interrupt(void);
