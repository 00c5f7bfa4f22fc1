/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What qemu4v.c and qemu4v-insn.c share: going through a line. Nothing here looks beyond its end.
 */
#pragma once

#include <string.h>

#include "convert/qemu4v/qemu4v.h"

#define HEX_DIGITS_MAX 16
#define ZEROS_MAX      15   /* that the form has room for */
#define CAPITAL	       0x10 /* these two: bits in qemu4v_digits[], beside the value */
#define DIGIT	       0x20
#define NO_DIGIT       0

#define _likely_(x) __builtin_expect(!!(x), 1)

/* The rest of a line */
struct cursor {
	const char *p, *end;
};

extern const uint8_t qemu4v_digits[256];

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool is_decimal(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline char peek(const struct cursor *c)
{
	return c->p < c->end ? *c->p : '\0';
}

static inline void skip_blanks(struct cursor *c)
{
	while (c->p < c->end && is_blank(*c->p))
		c->p++;
}

/* The end of a word: a blank or the end of the line */
static inline bool at_word_end(const struct cursor *c)
{
	return c->p == c->end || is_blank(*c->p);
}

static inline bool take(struct cursor *c, char wanted)
{
	if (peek(c) != wanted)
		return false;
	c->p++;
	return true;
}

static inline size_t word_size(const struct cursor *c)
{
	const char *p = c->p;

	while (p < c->end && !is_blank(*p))
		p++;
	return (size_t)(p - c->p);
}

static inline bool is_word(const struct cursor *c, const char *word, size_t size)
{
	return (size_t)(c->end - c->p) >= size && memcmp(c->p, word, size) == 0 &&
	       (c->p + size == c->end || is_blank(c->p[size]));
}

/* At least one digit, no overflow. @ret_zeros: how many were not needed */
static inline bool take_decimal(struct cursor *c, uint64_t *ret, unsigned *ret_zeros)
{
	const char *begin = c->p;
	unsigned zeros = 0;
	uint64_t value = 0;

	while (c->p < c->end && *c->p == '0')
		c->p++;
	zeros = (unsigned)(c->p - begin);
	for (; c->p < c->end && is_decimal(*c->p); c->p++) {
		if (!_likely_(value < UINT64_MAX / 10)) {
			uint64_t digit = (uint64_t)(*c->p - '0');

			if (value > (UINT64_MAX - digit) / 10)
				return false;
		}
		value = value * 10 + (uint64_t)(*c->p - '0');
	}
	if (c->p == begin)
		return false;
	*ret = value;
	*ret_zeros = zeros > 0 && value == 0 ? zeros - 1 : zeros;
	return true;
}

/* 1 to 16 digits. @ret_upper: one of them is a capital letter */
static inline bool take_hex(struct cursor *c, uint64_t *ret, uint8_t *ret_digits, bool *ret_upper)
{
	const char *begin = c->p;
	uint64_t value = 0;
	unsigned seen = 0;

	for (; c->p < c->end; c->p++) {
		uint8_t digit = qemu4v_digits[(uint8_t)*c->p];

		if (digit == NO_DIGIT)
			break;
		seen |= digit;
		value = value << 4 | (digit & 15);
	}
	if (c->p == begin || c->p - begin > HEX_DIGITS_MAX)
		return false;
	*ret = value;
	*ret_digits = (uint8_t)(c->p - begin);
	*ret_upper = seen & CAPITAL;
	return true;
}

/* ADDR[:PHYS[_S|_NS][,PHYS…]]: Fast Models give a second address where an instruction crosses a
 * page, which is left out */
bool qemu4v_take_address(struct cursor *c, struct qemu4v_record *r);

/* Behind time, scale and CPU, at IT or IS. NULL, or why it is no instruction */
const char *qemu4v_parse_insn(struct cursor *c, struct qemu4v_record *r);
