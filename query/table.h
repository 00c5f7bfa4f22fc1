/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table as those see it who have its rows: columns, and a scan that goes through the rows. What
 * SQLite wants beyond that is vtab.c's. One thread.
 */
#pragma once

#include "basic/fault.h"
#include "basic/parse.h"

struct query;
struct query_table;

enum value_kind {
	VALUE_NULL,
	VALUE_INTEGER,
	VALUE_TEXT,
};

struct value {
	enum value_kind kind;
	int64_t number;
	const char *text; /* @size bytes, good until the next row */
	size_t size;
};

enum query_column_flags {
	COLUMN_TEXT = 1,   /* else an integer */
	COLUMN_HIDDEN = 2, /* not in SELECT * */
	/* Of a number: it has many values, so that rows of the same one are few */
	COLUMN_WIDE = 4,
	COLUMN_SET = 16, /* it is never NULL */
	COLUMN_LONG = 8, /* of a text: it is another one in each row */
};

struct query_column {
	const char *name;
	unsigned flags;
};

/* The first columns of each table whose rows happened somewhere */
enum {
	COLUMN_TS,
	COLUMN_CPU,
	COLUMN_PID,
	COLUMN_COMM,
	COLUMN_UNIT,
	_COLUMN_COMMON,
};

/* and of the table "events" */
enum {
	COLUMN_SYSTEM = _COLUMN_COMMON,
	COLUMN_NAME,
};

/* Which rows are wanted; those of others may come as well, but for systems and names */
struct query_want {
	uint64_t columns;  /* bit N: column N is looked at; 63: that and all behind it */
	uint64_t from, to; /* ts, both included */
	bool has_cpus, has_pids;
	struct cpu_list cpus;
	int32_t *pids;
	size_t n_pids;
	char **systems, **names; /* NULL-terminated; NULL: all */
};

static inline bool query_wants(const struct query_want *want, unsigned column)
{
	return want->columns & UINT64_C(1) << (column < 63 ? column : 63);
}

enum {
	SCAN_E_STOPPED = 2, /* the query is to end */
};

struct query_scan;

struct query_table_type {
	bool ordered; /* rows come by ts */
	/* What of struct query_want the scan goes by: bit N: of column N */
	unsigned goes_by;
	/**
	 * open() - before the first row
	 * @want: outlives @ret
	 */
	int (*open)(struct query *query, struct query_table *table, const struct query_want *want,
		    struct query_scan **ret, struct fault *why);
	/* Return: 1, 0 there are no more, negative errno; SCAN_E_STOPPED */
	int (*next)(struct query_scan *scan, struct fault *why);
	/* Return: 0 or -ENOMEM */
	int (*column)(struct query_scan *scan, unsigned column, struct value *ret);
	/* The same row has the same number in each scan */
	int64_t (*row)(const struct query_scan *scan);
	void (*close)(struct query_scan *scan);
};

struct query_table {
	char *name;
	const struct query_table_type *type;
	const void *kind;	      /* the type's own: which of its tables */
	struct query_column *columns; /* NULL: not known yet: query_table_columns() */
	size_t n_columns;
	bool own_columns; /* to be freed, with their names */
};

static inline struct value value_number(int64_t number)
{
	return (struct value){.kind = VALUE_INTEGER, .number = number};
}
