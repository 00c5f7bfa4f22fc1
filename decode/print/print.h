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
