/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The event formats of a trace.dat: ids, names and fields; the only place where libtraceevent
 * parses any. It trusts what it parses, so that it gets them guarded, and keeps things in static
 * buffers while it does, so that one thread of the process at a time lets it. Any thread; owner:
 * the decoder.
 */
#pragma once

#include "basic/fault.h"
#include "decode/field.h"
#include "formats/trace-dat-read.h"

struct tep_event;
struct tep_handle;
struct event_formats;

/* What all events begin with */
struct event_common {
	struct field pid, flags, preempt_count; /* size 0: there is none of the last two */
};

/**
 * event_formats_new() - read those of a file
 * @dat: outlives @ret
 * Return: 0 or negative errno; the story is in @why but for -ENOMEM.
 */
int event_formats_new(const struct trace_dat *dat, struct event_formats **ret, struct fault *why);
struct event_formats *event_formats_free(struct event_formats *formats);
DEFINE_CLEANUP(struct event_formats *, event_formats_free)

const struct event_common *event_formats_common(const struct event_formats *formats);

/**
 * event_formats_warnings() - what was found wrong, a line each
 */
char *const *event_formats_warnings(const struct event_formats *formats);

/**
 * event_formats_by_id() - index of an id's format in dat->formats, -1 if the file has none
 */
int32_t event_formats_by_id(const struct event_formats *formats, uint32_t id);

/**
 * event_formats_find() - the same by name
 */
int32_t event_formats_find(const struct event_formats *formats, const char *system,
			   const char *name);

/**
 * event_formats_id_of() - the id of a format's events; UINT32_MAX: none is known
 */
uint32_t event_formats_id_of(const struct event_formats *formats, size_t format);

/**
 * event_formats_name() - "EVENT" of a format, without parsing it; "" if the text has no name
 */
const char *event_formats_name(const struct event_formats *formats, size_t format);

/**
 * event_formats_fields() - a format's own fields, without the common ones, in order
 * Return: as long as the formats live; NULL if the format cannot be trusted, or without memory.
 */
const struct field *event_formats_fields(struct event_formats *formats, size_t format,
					 size_t *ret_n);

/**
 * event_formats_handle() - a handle of libtraceevent's for one thread, set up for the file
 * Return: NULL without memory.
 */
struct tep_handle *event_formats_handle(const struct event_formats *formats);

/**
 * event_formats_parse() - parse a format into a handle
 * Return: the event, NULL if it cannot be trusted.
 */
struct tep_event *event_formats_parse(const struct event_formats *formats, struct tep_handle *tep,
				      size_t format);
