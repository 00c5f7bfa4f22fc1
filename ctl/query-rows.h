/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows of a query as they come: columns, CSV (RFC 4180) or one JSON document. On a terminal columns
 * are as wide as the first rows want. Main thread.
 */
#pragma once

#include "ctl/ctl.h"
#include "query/database.h"

enum rows_form {
	ROWS_COLUMNS,
	ROWS_CSV,
	ROWS_JSON,
};

struct rows;

/**
 * rows_new() - Return: NULL without memory.
 */
struct rows *rows_new(enum rows_form form);
struct rows *rows_free(struct rows *rows);
DEFINE_CLEANUP(struct rows *, rows_free)

void rows_set_form(struct rows *rows, enum rows_form form);

/**
 * rows_columns(), rows_row() - for struct query_output
 * Return: 0, or negative errno: no memory, or nothing can be written any more.
 */
int rows_columns(void *rows, const char *const *names, unsigned n);
int rows_row(void *rows, const struct query_cell *cells, unsigned n);

/**
 * rows_end() - a statement is done
 * @whole: all of its rows came; else a JSON document stays without its end
 */
int rows_end(struct rows *rows, bool whole);
