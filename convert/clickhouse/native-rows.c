/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/clickhouse/native-rows.h"

enum kind {
	KIND_NUMBER,
	KIND_WORD,
	KIND_NUMBERS,
	KIND_TEXTS,
};

static const struct type {
	const char *name;
	enum kind kind;
	uint8_t size; /* of a number */
} types[] = {
	{NATIVE_U8, KIND_NUMBER, 1},	{NATIVE_U16, KIND_NUMBER, 2},
	{NATIVE_U32, KIND_NUMBER, 4},	{NATIVE_U64, KIND_NUMBER, 8},
	{NATIVE_I32, KIND_NUMBER, 4},	{NATIVE_TIME, KIND_NUMBER, 8},
	{NATIVE_WORD, KIND_WORD, 0},	{NATIVE_NUMBERS, KIND_NUMBERS, 8},
	{NATIVE_PIDS, KIND_NUMBERS, 4}, {NATIVE_TEXTS, KIND_TEXTS, 0},
};

struct native_rows {
	const struct native_table *table;
	struct clickhouse_labels labels;
	struct column {
		const struct type *type;
		struct text bytes; /* numbers, texts */
		struct text ends;  /* of arrays */
		uint64_t total;	   /* of their numbers or texts */
		struct native_words words;
	} columns[NATIVE_ROWS_COLUMNS];
	size_t n_columns;
	size_t n;
};

static const struct type *find_type(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

static void begin(struct native_rows *rows)
{
	for (size_t i = 0; i < rows->n_columns; i++) {
		struct column *column = &rows->columns[i];

		column->bytes.size = column->ends.size = 0;
		column->total = 0;
		if (column->type->kind == KIND_WORD)
			native_words_begin(&column->words, NATIVE_ROWS);
	}
	rows->n = 0;
}

int native_rows_new(const struct native_table *table, const struct clickhouse_labels *labels,
		    struct native_rows **ret)
{
	_cleanup_(native_rows_freep) struct native_rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	rows->table = table;
	rows->labels = *labels;
	for (; rows->n_columns < NATIVE_ROWS_COLUMNS && table->columns[rows->n_columns].name;
	     rows->n_columns++) {
		const struct type *type = find_type(table->columns[rows->n_columns].type);

		if (!type)
			return -EINVAL;
		rows->columns[rows->n_columns].type = type;
	}
	begin(rows);
	*ret = TAKE_PTR(rows);
	return 0;
}

struct native_rows *native_rows_free(struct native_rows *rows)
{
	if (!rows)
		return NULL;
	for (size_t i = 0; i < rows->n_columns; i++) {
		text_done(&rows->columns[i].bytes);
		text_done(&rows->columns[i].ends);
		native_words_done(&rows->columns[i].words);
	}
	free(rows);
	return NULL;
}

static void add_value(struct column *column, const struct native_value *value)
{
	const char *text = value->text ? value->text : "";

	switch (column->type->kind) {
	case KIND_NUMBER:
		native_number(&column->bytes, value->number, column->type->size);
		return;
	case KIND_WORD:
		native_words_add(&column->words, text, strlen(text));
		return;
	case KIND_NUMBERS:
		for (size_t i = 0; i < value->n; i++)
			native_number(&column->bytes, value->numbers[i], column->type->size);
		break;
	case KIND_TEXTS:
		for (size_t i = 0; i < value->n; i++)
			native_string(&column->bytes, value->texts[i], strlen(value->texts[i]));
		break;
	}
	column->total += value->n;
	native_number(&column->ends, column->total, 8);
}

static void put_column(struct native_rows *rows, size_t i, struct native_block *block)
{
	const char *name = rows->table->columns[i].name;
	struct column *column = &rows->columns[i];

	if (column->type->kind == KIND_WORD) {
		native_words_put(&column->words, block, name);
		return;
	}
	native_column(block, name, column->type->name);
	text_bytes(block->out, column->ends.bytes, column->ends.size);
	text_bytes(block->out, column->bytes.bytes, column->bytes.size);
	block->out->no_memory |= column->ends.no_memory || column->bytes.no_memory;
}

static int put_block(struct native_rows *rows, struct text *out)
{
	struct native_block block;

	native_begin(&block, out, rows->n);
	native_word(&block, "host", rows->labels.host);
	native_word(&block, "boot_id", rows->labels.boot_id);
	native_word(&block, "session", rows->labels.session);
	native_word(&block, "file", rows->labels.file);
	for (size_t i = 0; i < rows->n_columns; i++)
		put_column(rows, i, &block);
	begin(rows);
	return out->no_memory ? -ENOMEM : 0;
}

int native_rows_add(struct native_rows *rows, const struct native_value *values, struct text *out)
{
	for (size_t i = 0; i < rows->n_columns; i++)
		add_value(&rows->columns[i], &values[i]);
	return ++rows->n == NATIVE_ROWS ? put_block(rows, out) : 0;
}

int native_rows_end(struct native_rows *rows, struct text *out)
{
	return rows->n > 0 ? put_block(rows, out) : 0;
}
