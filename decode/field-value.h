/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a field of an event is for those who want its value and not its text: a number, a string, or
 * several. Any thread.
 */
#pragma once

#include "decode/field.h"
#include "decode/symbols.h"

enum field_value_kind {
	VALUE_NUMBER,
	VALUE_BOOL,
	VALUE_STRING,
	VALUE_NUMBERS,
	VALUE_CPUS, /* a mask, for text_cpus() */
};

struct field_value {
	enum field_value_kind kind;
	struct field at; /* its element: the size of a number */
	bool rest;	 /* up to the end of the event */
	bool address;	 /* may have a symbol */
};

/**
 * field_value_init() - @event: name of the field's event; @long_size: of the file
 */
void field_value_init(struct field_value *value, const char *event, uint32_t long_size,
		      const struct field *field);

/**
 * field_value_bytes() - where they are, and how many
 */
const uint8_t *field_value_bytes(const struct field_value *value, const struct decode_event *event,
				 uint32_t *ret_size);

/**
 * field_value_signed() - a number of the field as it is stored, with its sign if it has one
 */
static inline int64_t field_value_signed(const struct field_value *value, uint64_t number)
{
	return value->at.is_signed ? decode_signed(number, value->at.element) : (int64_t)number;
}

/**
 * field_value_next() - each number of VALUE_NUMBERS
 * @at: 0 to begin with
 * Return: false if there are no more.
 */
bool field_value_next(const struct field_value *value, const struct decode_event *event,
		      uint32_t *at, uint64_t *ret);

/**
 * field_value_symbol() - what is at an address of the kernel: a symbol, or a string
 * @size: of the number that the address was
 * @ret_offset: from the symbol's beginning; UINT64_MAX: it is a string
 * Return: NULL: nothing that is known.
 */
const char *field_value_symbol(struct symbols_cache *symbols, uint64_t address, uint32_t size,
			       uint64_t *ret_offset);
