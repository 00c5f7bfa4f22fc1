/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks of ClickHouse's Native format: rows, column by column. As `INSERT INTO t FORMAT Native`
 * takes them: columns are found by name, those that a block lacks get their defaults.
 *
 *   columns:varint rows:varint { name:string type:string data }*
 *
 * string: its size as a varint, its bytes. data: numbers are little-endian; LowCardinality(String),
 * here a "word", has each of its texts once:
 *
 *   version:u64 (1)  width:u64 (of an index: 0, 1, 2 for 1, 2, 4 bytes; and 0x600: texts follow)
 *   texts:u64 string*  rows:u64 index*
 *
 * Arrays: where each row's numbers or strings end, a u64 a row; then all of them. The source of
 * this is ClickHouse's src/Formats/NativeWriter.cpp and SerializationLowCardinality.cpp. One
 * thread.
 */
#pragma once

#include <endian.h>

#include "decode/text.h"

#define NATIVE_COLUMNS_MAX 127U /* their number is written last, into one byte */

/* Types as they are in blocks and in schema.sql */
#define NATIVE_U8      "UInt8"
#define NATIVE_U16     "UInt16"
#define NATIVE_U32     "UInt32"
#define NATIVE_U64     "UInt64"
#define NATIVE_I32     "Int32"
#define NATIVE_I64     "Int64"
#define NATIVE_TIME    "DateTime64(9, 'UTC')"
#define NATIVE_STRING  "String"
#define NATIVE_WORD    "LowCardinality(String)"
#define NATIVE_NUMBERS "Array(UInt64)"
#define NATIVE_PIDS    "Array(Int32)"
#define NATIVE_TEXTS   "Array(String)"

struct native_block {
	struct text *out;
	size_t at; /* of the number of columns */
	size_t rows;
	unsigned columns;
};

/**
 * native_begin() - a block
 * @rows: not 0: columns that a block without rows lacks are an error
 */
void native_begin(struct native_block *block, struct text *out, size_t rows);

/**
 * native_column() - one more column; its data is to follow
 */
void native_column(struct native_block *block, const char *name, const char *type);

static inline void native_number(struct text *out, uint64_t value, size_t size)
{
	value = htole64(value);
	text_bytes(out, &value, size);
}

/* The numbers of a column, one after the other */
struct native_numbers {
	char *to; /* NULL: no memory */
	size_t size;
};

/**
 * native_numbers_begin() - room for @n numbers of @size bytes, all of which have to follow
 */
static inline struct native_numbers native_numbers_begin(struct text *out, size_t n, size_t size)
{
	/* whole words are written, each over what the one before has too much */
	char *to = text_reserve(out, n * size + sizeof(uint64_t));

	if (to)
		out->size += n * size;
	return (struct native_numbers){to, size};
}

static inline void native_numbers_next(struct native_numbers *numbers, uint64_t value)
{
	value = htole64(value);
	if (!numbers->to)
		return;
	memcpy(numbers->to, &value, sizeof(value));
	numbers->to += numbers->size;
}

void native_varint(struct text *out, uint64_t value);
void native_string(struct text *out, const void *bytes, size_t size);

/* The words of a column, to be used again for the next one */
struct native_words {
	struct text keys; /* as in the block */
	uint32_t n_keys;
	uint32_t *indexes; /* of each row, */
	size_t n;
	size_t room; /* of so many */
	struct slot {
		uint32_t key; /* its index and 1; 0: free */
		uint32_t size;
		size_t at; /* in keys */
	} * slots;
	size_t mask;
	bool no_memory;
};

void native_words_done(struct native_words *words);

/**
 * native_words_begin() - for a column of so many rows
 */
void native_words_begin(struct native_words *words, size_t rows);

/**
 * native_words_add() - the next row's
 * native_words_again() - that of the row before, or "" if it is the first
 */
void native_words_add(struct native_words *words, const void *bytes, size_t size);
void native_words_again(struct native_words *words);

/**
 * native_words_put() - write the column, unless all words are empty
 */
void native_words_put(struct native_words *words, struct native_block *block, const char *name);

/**
 * native_word() - the same word in all rows of a column, which is not there if that is empty
 */
void native_word(struct native_block *block, const char *name, const char *word);
