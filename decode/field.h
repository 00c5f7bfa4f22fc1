/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A field of a kind of event, looked up once, and its value in one event. Nothing outside an
 * event's data is read, whatever a file says. Any thread.
 */
#pragma once

#include "decode/event.h"

struct field {
	const char *name, *type; /* as declared; NULL in a struct field_place() made */
	uint32_t offset, size;	 /* in the data; of a dynamic field, of the word that tells */
	uint32_t element;	 /* of an array: bytes of one */
	bool is_signed, is_array, is_string, is_pointer;
	bool is_dynamic;
	bool is_relative; /* dynamic: to the end of the word */
	bool is_last;	  /* of the event's */
};

struct tep_format_field;

/**
 * field_place() - where and what a field of libtraceevent's is
 * Return: false if no field can be there.
 */
bool field_place(const struct tep_format_field *from, struct field *ret);

/**
 * decode_number() - the unsigned number of 1, 2, 4 or 8 bytes at an offset; 0 if there is none
 */
uint64_t decode_number(const struct decode_event *event, uint64_t offset, uint32_t size);

/**
 * decode_signed() - the signed number that these bytes are
 */
static inline int64_t decode_signed(uint64_t value, uint32_t size)
{
	const unsigned unused = size - 1 < 8 ? 64 - 8 * size : 0;

	return (int64_t)(value << unused) >> unused;
}

/**
 * decode_dynamic() - the part of the event that a dynamic field means
 * @ret_size: never beyond the end of the event
 */
const uint8_t *decode_dynamic(const struct decode_event *event, const struct field *field,
			      uint32_t *ret_size);

/**
 * field_number() - of a field that is one, as it is stored; 0 beyond the end of the event
 */
static inline uint64_t field_number(const struct field *field, const struct decode_event *event)
{
	return decode_number(event, field->offset, field->size);
}

/**
 * field_signed() - the same, with its sign if it has one
 */
int64_t field_signed(const struct field *field, const struct decode_event *event);

/**
 * field_bytes() - all of a field, dynamic or not, as far as it is in the event
 */
const uint8_t *field_bytes(const struct field *field, const struct decode_event *event,
			   uint32_t *ret_size);
