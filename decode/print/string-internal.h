/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The compiled argument of a "%s": decode-string-compile.c makes it, decode-string.c prints it */
#pragma once

#include "decode/print/string.h"

enum string_kind {
	STRING_NOTHING,
	STRING_CONSTANT,
	STRING_FIELD,	/* bytes of the record */
	STRING_POINTER, /* address of a string that printk_formats may know */
	STRING_DYNAMIC,
	STRING_FLAGS,
	STRING_SYMBOL,
	STRING_HEX, /* "0a ff" */
	STRING_HEX_TIGHT,
	STRING_INT_ARRAY,
	STRING_BITMASK,
	STRING_CPUMASK,
	STRING_CONDITION,
};

struct flag {
	int64_t value;
	const char *text; /* of the struct tep_event */
};

struct string_arg {
	enum string_kind kind;
	struct decode_place place;
	bool dynamic; /* of arrays: place is of a word that tells */
	struct expr *value, *size, *element;
	struct flag *flags;
	size_t n_flags;
	const char *text; /* constant, or what goes between flags */
	struct string_arg *yes, *no;
};
