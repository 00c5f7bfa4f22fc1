/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arguments of "%s" and "%p…" in an event's print format, compiled once and printed as
 * libtraceevent prints them. Compiled arguments do not change; struct decode_tools is one thread's.
 */
#pragma once

#include "decode/kallsyms.h"
#include "decode/print/expr.h"
#include "decode/printk-formats.h"
#include "decode/text.h"

/* What printing needs besides the record */
struct decode_tools {
	struct kallsyms_cache symbols;
	const struct printk_formats *printk; /* may be NULL */
	struct text scratch;
};

/* "%-16s", "%.*s" and the like */
struct string_spec {
	bool plain; /* "%s" */
	bool left;
	int width, precision; /* -1: none */
	bool star;	      /* the precision, or without a '.' the width, comes as an argument */
	bool star_width;
};

struct string_arg;

/**
 * string_arg_compile() - the argument of a "%s"
 * Return: NULL if it is none that can be compiled, or without memory.
 */
struct string_arg *string_arg_compile(const struct tep_print_arg *arg, struct tep_event *event,
				      const struct kallsyms *symbols);
struct string_arg *string_arg_free(struct string_arg *arg);

/**
 * string_arg_print() - append it
 * @star: value of the argument that a '*' stands for
 */
void string_arg_print(const struct string_arg *arg, const struct decode_record *record,
		      struct decode_tools *tools, const struct string_spec *spec, int star,
		      struct text *out);

struct pointer_arg;

/**
 * pointer_arg_compile() - the argument of a "%p…"
 * @extension: what follows the 'p'
 */
struct pointer_arg *pointer_arg_compile(const struct tep_print_arg *arg, const char *extension,
					struct tep_event *event, const struct kallsyms *symbols);
struct pointer_arg *pointer_arg_free(struct pointer_arg *arg);
void pointer_arg_print(const struct pointer_arg *arg, const struct decode_record *record,
		       struct decode_tools *tools, int star, struct text *out);

/**
 * pointer_extension() - how many characters behind "%p" belong to it
 */
size_t pointer_extension(const char *format);
