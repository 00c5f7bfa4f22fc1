/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the modules of the decoder share: decode.c (struct decoder), decode-events.c (kinds of
 * events, looked at when the first of its kind comes), decode-native.c (events that plugins print),
 * decode-line.c, decode-json.c.
 */
#pragma once

#include <pthread.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "decode/decode.h"
#include "decode/print/body.h"

#define DECODE_MAX_FIELD 65536U /* fields end before; a bigger one is none of the kernel's */

struct format_text {
	char *text, *name;
};

/* Where sched's events tell a task's name */
struct comm_source {
	struct decode_place pid, comm;
};

struct decoder {
	const struct trace_dat *dat;
	struct kallsyms *symbols;
	struct printk_formats *printk;
	struct tasks *tasks;
	struct format_text *formats; /* as in dat->formats, guarded */
	size_t n_refused;	     /* of their print formats */
	int32_t by_id[SUBBUF_EVENT_IDS];
	size_t base; /* a format that is sound, from which the common fields are known */
	pthread_mutex_t tep_lock; /* libtraceevent has static buffers, its handles do not help */

	struct decode_place pid, flags, preempt_count;

	bool in_usecs, has_date;
	int64_t offset;	      /* nanoseconds */
	uint32_t mult, shift; /* cycles to nanoseconds, if mult */
	size_t buffer_width;  /* of the longest name, 0: no other buffers */

	struct {
		uint32_t id;
		size_t n;
		struct comm_source sources[2];
	} learn[3];
	size_t n_learn;
	int32_t graph_entry, graph_exit; /* ids; -1: none */
	struct decode_place entry_func, exit_func;
};

enum event_how {
	EVENT_UNKNOWN, /* no format, or none that can be trusted */
	EVENT_BODY,
	EVENT_NATIVE,
	EVENT_TEP,	   /* libtraceevent prints it */
	EVENT_TEP_ORDERED, /* and it depends on what it printed before */
};

struct event_kind;

typedef void native_print(struct formatter *f, const struct event_kind *kind,
			  const struct decode_event *event, struct text *out);

struct json_plan;

#define NATIVE_PLACES 7

/* An event id, as one formatter knows it */
struct event_kind {
	enum event_how how;
	struct tep_event *event;
	char *label; /* " NAME:        ", as wide as it is shown */
	size_t label_size;
	struct body *body;
	bool lines;	      /* EVENT_TEP: newlines may be libtraceevent's own */
	native_print *native; /* also before a body */
	struct decode_place places[NATIVE_PLACES];
	char letters[33]; /* of sched_switch: those of task states, by bit */
	unsigned present; /* bits of the optional ones that the format has */
	struct json_plan *json;
};

struct formatter {
	struct decoder *decoder;
	struct tep_handle *tep;
	bool plugins;
	struct event_kind **kinds; /* by index of the format; NULL: not met yet */
	struct event_kind unknown;
	struct trace_seq seq;
	struct decode_tools tools;
	uint8_t *padded; /* a copy of the record, with zeros behind it */
	size_t padded_size;
	bool native; /* decode-native.c's events are printed in the way of the plugins */
	bool by_libtraceevent;
	enum text_escape escape;
	struct event_time time;
};

/**
 * decode_new_tep() - a handle set up for this file, without formats
 */
struct tep_handle *decode_new_tep(const struct decoder *decoder);

/**
 * decode_parse() - parse format @i into a handle; any thread
 * Return: the event, NULL if it cannot be trusted.
 */
struct tep_event *decode_parse(struct decoder *decoder, struct tep_handle *tep, size_t i);

/**
 * decode_kind() - what is known of an event's id
 * Return: NULL without memory.
 */
const struct event_kind *decode_kind(struct formatter *f, uint32_t id);

/**
 * decode_handler_is() - is an event's handler that of a plugin of libtraceevent's own
 */
bool decode_handler_is(const struct tep_event *event, const char *plugin);

/**
 * decode_may_be_native() - is an event printed by this plugin of libtraceevent, or would it be if
 * that was installed; not, if somebody's own plugin prints it
 */
bool decode_may_be_native(const struct formatter *f, const struct tep_event *event,
			  const char *plugin);

/**
 * decode_native() - does decode-native.c know the event; then it fills in @kind
 */
bool decode_native(struct formatter *f, struct event_kind *kind);

/**
 * decode_by_tep() - append what libtraceevent prints of an event
 */
int decode_by_tep(struct formatter *f, const struct event_kind *kind,
		  const struct decode_event *event, struct text *out);

struct json_plan *json_plan_free(struct json_plan *plan);

static inline struct decode_record decode_record(const struct decoder *decoder,
						 const struct decode_event *event)
{
	return (struct decode_record){
		.data = event->data,
		.size = event->size,
		.big_endian = decoder->dat->big_endian,
	};
}
