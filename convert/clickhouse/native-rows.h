/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows of a table, one after the other, as blocks of so many: the values of a row go to the ends of
 * their columns, so that memory is that of a block. One thread.
 */
#pragma once

#include "convert/clickhouse/native.h"

#define NATIVE_ROWS	    8192U /* of a block, at most */
#define NATIVE_ROWS_COLUMNS 24U

/* The first columns of each table. Borrowed */
struct clickhouse_labels {
	const char *host, *boot_id, *session, *file; /* "": not known */
};

/* Columns behind these, up to one without a name */
struct native_table {
	const char *name;
	struct {
		const char *name, *type;
	} columns[NATIVE_ROWS_COLUMNS];
};

/* Of a column; which of these, its type says */
struct native_value {
	uint64_t number;
	const char *text; /* NULL: "" */
	/* of arrays */
	size_t n;
	const uint64_t *numbers;
	const char *const *texts;
};

struct native_rows;

int native_rows_new(const struct native_table *table, const struct clickhouse_labels *labels,
		    struct native_rows **ret);
struct native_rows *native_rows_free(struct native_rows *rows);
DEFINE_CLEANUP(struct native_rows *, native_rows_free)

/**
 * native_rows_add() - one more row; appends a block to @out when it is full
 * @values: as many as the table has columns
 * Return: 0 or -ENOMEM.
 */
int native_rows_add(struct native_rows *rows, const struct native_value *values, struct text *out);

/**
 * native_rows_end() - append what is left
 * Return: 0 or -ENOMEM.
 */
int native_rows_end(struct native_rows *rows, struct text *out);
