/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event's text, compiled: what libtraceevent walks through for each event again is looked at
 * once. Prints what libtraceevent and its plugins print, and is nothing but quicker: whoever gets
 * NULL lets libtraceevent do it. What is compiled does not change; struct symbols_cache is one
 * thread's.
 */
#pragma once

#include "decode/decoder.h"
#include "decode/symbols.h"
#include "decode/text.h"

struct tep_event;
struct print;

/**
 * print_compile() - @event's text
 * @event: a sound one, see decoder_parse(); must outlive what is returned
 * @plugins: print as libtraceevent's plugins do, installed or not
 * Return: NULL if libtraceevent must print it, or without memory.
 */
struct print *print_compile(struct tep_event *event, const struct decoder *decoder, bool plugins);
struct print *print_free(struct print *print);

/**
 * print_put() - append it
 */
void print_put(const struct print *print, const struct decode_event *event,
	       struct symbols_cache *symbols, struct text *out);

/* --- what libtraceevent prints */

struct print_bounds;

enum {
	PRINT_E_UNSAFE = 1,
};

/**
 * print_bounds_new() - what has to hold for a record of @event before libtraceevent prints it
 * @symbols: what libtraceevent was given; may be NULL
 * @ret: NULL if it bounds all that it reads itself; only while @event lasts
 *
 * libtraceevent trusts the counts, indices, divisors and precisions in a record.
 * Return: 0, PRINT_E_UNSAFE: no record may be printed otherwise than by its fields, or -ENOMEM.
 */
int print_bounds_new(struct tep_event *event, const struct file_symbols *symbols,
		     struct print_bounds **ret);
struct print_bounds *print_bounds_free(struct print_bounds *bounds);
DEFINE_CLEANUP(struct print_bounds *, print_bounds_free)

/**
 * print_bounds_hold() - does @event keep within them? Any thread.
 */
bool print_bounds_hold(const struct print_bounds *bounds, const struct decode_event *event);
