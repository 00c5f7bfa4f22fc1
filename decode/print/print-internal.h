/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a compiled print format, a file each: print.c (the whole), native.c (the plugins'
 * ways), string.c ("%s"), expr.c (numbers); and bounds.c, for those that are not compiled. Trees of
 * one kind use the next one, never the other way round.
 */
#pragma once

#include <traceevent/event-parse.h>

#include "decode/print/print.h"

/* What formats are compiled with */
struct compiling {
	struct tep_event *event;	    /* for names of fields */
	const struct file_symbols *symbols; /* for names of symbols; may be NULL */
	unsigned depth;			    /* of the tree; 0 to begin with */
};

/* --- expr.c: expressions as libtraceevent parsed them, made into trees that are quick to evaluate
 * and safe on any bytes: nothing outside the record is read, division by zero is 0. On sound
 * records they give what libtraceevent gives. A tree does not change once compiled. */

struct expr;

/**
 * expr_compile() - @arg as a number
 * Return: NULL if this is not an expression that can be compiled, or without memory.
 */
struct expr *expr_compile(struct compiling *with, const struct tep_print_arg *arg);
struct expr *expr_free(struct expr *expr);

uint64_t expr_eval(const struct expr *expr, const struct decode_event *event);

/**
 * expr_holds() - is all that evaluating it reads in the record, and no divisor 0?
 */
bool expr_holds(const struct expr *expr, const struct decode_event *event);

/**
 * expr_dynamic_holds() - is a dynamic field's word, and what it means, in the record?
 * @ret_begin: where that is
 */
bool expr_dynamic_holds(const struct field *field, const struct decode_event *event,
			uint64_t *ret_begin);

/**
 * expr_field() - the field that an argument is, as libtraceevent declares it
 * @field: NULL: not looked up yet
 */
const struct tep_format_field *expr_field(const struct compiling *with,
					  const struct tep_format_field *field, const char *name);

/* --- string.c */

/* "%-16s", "%.*s" and the like */
struct string_spec {
	bool left;
	int width, precision; /* -1: none */
};

struct string_arg;

/**
 * string_arg_compile() - the argument of a "%s"
 * Return: NULL if it is none that can be compiled, or without memory.
 */
struct string_arg *string_arg_compile(struct compiling *with, const struct tep_print_arg *arg);
struct string_arg *string_arg_free(struct string_arg *arg);

/**
 * string_arg_print() - append it
 */
void string_arg_print(const struct string_arg *arg, const struct decode_event *event,
		      struct symbols_cache *symbols, const struct string_spec *spec,
		      struct text *out);

/* --- native.c */

struct native;

enum {
	NATIVE_ALL = 1, /* the whole text */
	NATIVE_BEFORE,	/* what stands before the text of the print format */
};

/**
 * native_compile() - an event that a plugin prints, or trace-cmd itself
 * @plugins: those of plugins, too
 * Return: NATIVE_ALL or NATIVE_BEFORE with @ret set, 0: it is none, -ENOMEM.
 */
int native_compile(struct tep_event *event, const struct decoder *decoder, bool plugins,
		   struct native **ret);
struct native *native_free(struct native *native);
void native_print(const struct native *native, const struct decode_event *event,
		  struct symbols_cache *symbols, struct text *out);
