/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fields that a print format shows by name: flags (__print_flags) and enumerations
 * (__print_symbolic), also if something is shown in their place under a condition. One thread's.
 */
#pragma once

#include "decode/decoder.h"
#include "decode/text.h"

struct field_names;

/**
 * field_names_new() - those of a format; what is too odd to be compiled is left out
 * @decoder: outlives @ret
 * Return: 0 or -ENOMEM.
 */
int field_names_new(const struct decoder *decoder, size_t format, struct field_names **ret);
struct field_names *field_names_free(struct field_names *names);
DEFINE_CLEANUP(struct field_names *, field_names_free)

size_t field_names_count(const struct field_names *names);

/* Of which field */
const char *field_names_field(const struct field_names *names, size_t i);

/**
 * field_names_put() - append the names that one of them has in an event
 */
void field_names_put(const struct field_names *names, size_t i, const struct decode_event *event,
		     struct text *out);
