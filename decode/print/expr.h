/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The expressions in an event's print format, as libtraceevent parsed them, made into trees that
 * are quick to evaluate and safe on any bytes: nothing outside the record is read, division by zero
 * is 0. On sound records they give what libtraceevent gives. A tree does not change once compiled;
 * any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <traceevent/event-parse.h>

#include "basic/macro.h"
#include "decode/kallsyms.h"

/* An event's data, beginning with the common fields */
struct decode_record {
	const uint8_t *data;
	uint32_t size;
	bool big_endian;
};

/* Where a field is; for dynamic ones, where the word is that tells */
struct decode_place {
	uint32_t offset, size;
	bool relative; /* to the end of the word */
};

struct expr;

/**
 * decode_place() - of a field
 * Return: false if no field can be there.
 */
bool decode_place(const struct tep_format_field *field, struct decode_place *ret);

/**
 * decode_number() - the unsigned number of 1, 2, 4 or 8 bytes at an offset; 0 if there is none
 */
uint64_t decode_number(const struct decode_record *record, uint64_t offset, uint32_t size);

/**
 * decode_dynamic() - the part of the record that a dynamic field means
 * @ret_size: never beyond the end of the record
 */
const uint8_t *decode_dynamic(const struct decode_record *record, const struct decode_place *place,
			      uint32_t *ret_size);

/**
 * expr_compile() - @arg as a number
 * @event: for names of fields
 * @symbols: for names of symbols; may be NULL
 * Return: NULL if this is not an expression that can be compiled, or without memory.
 */
struct expr *expr_compile(const struct tep_print_arg *arg, struct tep_event *event,
			  const struct kallsyms *symbols);
struct expr *expr_free(struct expr *expr);

uint64_t expr_eval(const struct expr *expr, const struct decode_record *record);
