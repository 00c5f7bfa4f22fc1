/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A growing piece of text, for output where printf would be what takes the time. Without memory it
 * stays as it is and says so in no_memory, so that callers check once, at the end. Owner: the
 * caller; one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "basic/macro.h"

/* What becomes of control characters in texts that others made */
enum text_escape {
	TEXT_LINES, /* an event's newlines are escaped: each line is one that we made */
	TEXT_ALL,   /* and all else that a terminal obeys */
	TEXT_RAW,
};

struct text {
	char *bytes;
	size_t size, room;
	bool no_memory;
	enum text_escape escape;
	size_t newline; /* the size behind the last newline that was escaped, or 0 */
};

/* A conversion of printf's for a whole number */
struct text_spec {
	char conversion; /* d i u x X o */
	bool left, zero, alternate;
	unsigned width, digits; /* at least */
};

void text_done(struct text *text);

/**
 * text_grow() - make room for @more bytes beyond the size
 * Return: where they go, NULL without memory.
 */
char *text_grow(struct text *text, size_t more);

void text_data_lines(struct text *text, const char *bytes, size_t size);

static inline char *text_reserve(struct text *text, size_t more)
{
	if (text->bytes && text->room - text->size >= more)
		return text->bytes + text->size;
	return text_grow(text, more);
}

static inline void text_bytes(struct text *text, const void *bytes, size_t size)
{
	char *p = text_reserve(text, size);

	if (p && size) {
		memcpy(p, bytes, size);
		text->size += size;
	}
}

static inline void text_char(struct text *text, char c)
{
	char *p = text_reserve(text, 1);

	if (p) {
		*p = c;
		text->size++;
	}
}

static inline void text_string(struct text *text, const char *string)
{
	text_bytes(text, string, strlen(string));
}

/**
 * text_data() - append what comes out of an event or a file, newlines escaped unless TEXT_RAW
 */
static inline void text_data(struct text *text, const void *bytes, size_t size)
{
	if (text->escape == TEXT_RAW || !memchr(bytes, '\n', size))
		text_bytes(text, bytes, size);
	else
		text_data_lines(text, bytes, size);
}

/**
 * text_end() - an event's text is complete from @begin on: take off a newline at its end, and
 * escape what is not for terminals if TEXT_ALL
 */
void text_end(struct text *text, size_t begin);

void text_fill(struct text *text, char c, size_t n);
void text_printf(struct text *text, const char *format, ...) _printf_(2, 3);

/**
 * text_u64() - decimal; _i64 with a sign, _hex without "0x"
 */
void text_u64(struct text *text, uint64_t value);
void text_i64(struct text *text, int64_t value);
void text_hex(struct text *text, uint64_t value);

/**
 * text_u64_wide() - decimal, at least @width wide, filled up with @fill on the left
 */
void text_u64_wide(struct text *text, uint64_t value, unsigned width, char fill);

/**
 * text_number() - as printf prints it
 * @value: for 'd' and 'i' a sign-extended number
 */
void text_number(struct text *text, const struct text_spec *spec, uint64_t value);

/**
 * text_cpus() - a mask of CPUs as "0-3,8"
 */
void text_cpus(struct text *text, const uint8_t *mask, uint32_t size, bool big_endian);

/**
 * text_json() - a string of JSON, up to its NUL byte or @size bytes
 * text_json_inner() - without the quotes
 * Bytes that are no UTF-8 become U+DC80 to U+DCFF, as by Python's surrogateescape.
 */
void text_json(struct text *text, const void *string, size_t size);
void text_json_inner(struct text *text, const void *string, size_t size);
