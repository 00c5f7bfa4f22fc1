/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQL over a query's tables and nothing else: a connection of SQLite that reads and changes
 * nothing, opens no file and loads no code, whatever the SQL says, and that ends when it takes too
 * long or too much memory. The only place that calls SQLite itself. One thread.
 */
#pragma once

#include "query/query.h"

enum query_cell_kind {
	CELL_NULL,
	CELL_INTEGER,
	CELL_REAL,
	CELL_TEXT,
	CELL_BLOB,
};

struct query_cell {
	enum query_cell_kind kind;
	const char *bytes; /* as a text, of a blob as they are; @size of them and a NUL byte */
	size_t size;
};

struct query_output {
	/* Before the first row of each statement that has columns. Return: 0, or less to end it. */
	int (*on_columns)(void *userdata, const char *const *names, unsigned n);
	/* What @cells point to is good during the call */
	int (*on_row)(void *userdata, const struct query_cell *cells, unsigned n);
	void *userdata;
};

struct query_limits {
	uint64_t memory; /* bytes that SQLite may have, in this process; 0: no limit */
	/* Asked now and then: false ends what is running; NULL */
	bool (*goes_on)(void *userdata);
	void *userdata;
};

struct query_database;

/**
 * query_database_new() - a connection with the tables
 */
int query_database_new(struct query *query, const struct query_limits *limits,
		       struct query_database **ret, struct fault *why);
struct query_database *query_database_free(struct query_database *database);
DEFINE_CLEANUP(struct query_database *, query_database_free)

/**
 * query_database_run() - all statements of a text
 * @once: refuse more than one
 * Return: 0, or negative errno with a line in @why: -EINVAL SQL that cannot be understood or may
 * not run, -EINTR goes_on() or on_progress() did not want it to, -ENOMEM by the limit; what @output
 * returned, then without a line.
 */
int query_database_run(struct query_database *database, const char *sql, bool once,
		       const struct query_output *output, struct fault *why);

/**
 * query_database_complete() - does the text end a statement, with a semicolon?
 */
bool query_database_complete(const char *sql);
