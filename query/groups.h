/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows brought together by some of their columns, for GROUP BY and DISTINCT: SQLite would sort them
 * all. Of each combination of values there is one entry with the number of its rows; only columns
 * of many values (COLUMN_WIDE) are kept row by row, eight bytes each, until they have been given
 * out. All memory is SQLite's and counts by its limit. One thread.
 */
#pragma once

#include "query/table.h"

struct groups;

struct groups_config {
	const unsigned *keys; /* by these rows are to be brought together, */
	size_t n_keys;
	const bool *descending; /* [n_keys], and sorted so */
	const unsigned *others; /* columns of few values that are looked at, too */
	size_t n_others;
	const unsigned *wide; /* the rest of those that are looked at */
	size_t n_wide;
	bool nulls; /* these may be NULL */
};

#define GROUPS_COLUMNS_MAX 16U /* of each kind */

/**
 * groups_new() - no rows yet
 * @config: copied; Return: NULL without memory.
 */
struct groups *groups_new(const struct groups_config *config);
struct groups *groups_free(struct groups *groups);

/**
 * groups_add() - the row that @scan is at
 * Return: 0 or -ENOMEM.
 */
int groups_add(struct groups *groups, const struct query_table_type *type, struct query_scan *scan);

/**
 * groups_sort() - no more rows come: begin before the first one
 */
void groups_sort(struct groups *groups);

/**
 * groups_next() - go to the next row; Return: false if there is none.
 */
bool groups_next(struct groups *groups);

/**
 * groups_column() - of that row
 */
struct value groups_column(const struct groups *groups, unsigned column);
