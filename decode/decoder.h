/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a trace.dat says of its events: formats, symbols, clock, and where events tell of tasks. The
 * only place that has libtraceevent parse formats. Does not change once it is there; any thread.
 *
 *	decoder_new → event_stream_new → event_next → decoder_field | printer_put
 */
#pragma once

#include "basic/fault.h"
#include "decode/field.h"
#include "decode/tasks.h"
#include "formats/time-rate.h"
#include "formats/trace-dat-read.h"

struct decoder;

/**
 * decoder_new() - read what events are decoded with
 * @dat: stays the caller's and must outlive @ret
 * Return: 0 or negative errno with the story in @why.
 */
int decoder_new(const struct trace_dat *dat, struct decoder **ret, struct fault *why);
struct decoder *decoder_free(struct decoder *decoder);
DEFINE_CLEANUP(struct decoder *, decoder_free)

const struct trace_dat *decoder_dat(const struct decoder *decoder);

/**
 * decoder_warnings() - what is wrong with the file's formats but does not stop anybody: lines
 */
char *const *decoder_warnings(const struct decoder *decoder);

/* Of its times, and of all its events */
struct decoder_facts {
	bool in_usecs;	       /* times are shown as seconds.microseconds, else as plain numbers */
	bool has_date;	       /* the file's options turn times into those of CLOCK_REALTIME */
	int64_t offset;	       /* what of a shown time they add to the trace clock's nanoseconds */
	struct time_rate rate; /* before that, of a clock that counts cycles, or of a KVM guest */
	struct field pid, flags, preempt_count; /* of size 0: there is none */
	int32_t graph_exit; /* the format that ends what decoder_is_leaf() pairs; -1: none */
};

const struct decoder_facts *decoder_facts(const struct decoder *decoder);

/**
 * decoder_place() - before anything is decoded: show times by these instead of what the file says
 * @dated: so they are those of CLOCK_REALTIME
 */
void decoder_place(struct decoder *decoder, const struct time_rate *rate, int64_t offset,
		   bool dated);

/**
 * decoder_time() - a timestamp of the ring buffer as it is shown
 */
static inline uint64_t decoder_facts_time(const struct decoder_facts *facts, uint64_t ts)
{
	return time_rate_apply(&facts->rate, ts) + (uint64_t)facts->offset;
}

static inline uint64_t decoder_time(const struct decoder *decoder, uint64_t ts)
{
	return decoder_facts_time(decoder_facts(decoder), ts);
}

/* --- formats and fields; formats go by their index in dat->formats */

/**
 * decoder_find() - the format of an event id, -1 if the file has none
 */
int32_t decoder_find(const struct decoder *decoder, uint32_t id);

/**
 * decoder_name() - "EVENT" of a format
 * Return: NUL-terminated, valid as long as the decoder; "" if the text has no name.
 */
const char *decoder_name(const struct decoder *decoder, size_t format);

/**
 * decoder_format_text() - all of it, as the kernel wrote it
 */
const char *decoder_format_text(const struct decoder *decoder, size_t format);

/**
 * decoder_format_id() - the id of a format's events; UINT32_MAX: none is known
 */
uint32_t decoder_format_id(const struct decoder *decoder, size_t format);

/**
 * decoder_fields() - those of a format, in order, without the common ones
 * Return: valid as long as the decoder; NULL if the format cannot be trusted, or without memory.
 */
const struct field *decoder_fields(const struct decoder *decoder, size_t format, size_t *ret_n);

/**
 * decoder_field() - one of them by name, or NULL
 */
const struct field *decoder_field(const struct decoder *decoder, size_t format, const char *name);

/* --- events */

/**
 * decoder_identify() - set an event's id, pid and byte order by its data
 */
void decoder_identify(const struct decoder *decoder, struct decode_event *event);

/**
 * decoder_new_tasks() - the names of tasks that the file has
 */
int decoder_new_tasks(const struct decoder *decoder, struct tasks **ret, struct fault *why);

/**
 * decoder_task() - set event->task, and learn the names the event tells of
 * To be called for all events in their order: trace-cmd learns a name when it has printed the
 * event. Return: 0 or -ENOMEM.
 */
int decoder_task(const struct decoder *decoder, struct tasks *tasks, struct decode_event *event);

/**
 * decoder_learns() - may events of this id tell names, so that decoder_task() has to see them?
 */
bool decoder_learns(const struct decoder *decoder, uint32_t id);

/**
 * decoder_is_leaf() - is @next the end of the function that @event, a funcgraph_entry, enters, on
 * the same CPU? Such two are shown as one line, of the first.
 */
bool decoder_is_leaf(const struct decoder *decoder, const struct decode_event *event,
		     const struct decode_event *next);

/* --- for the printers */

struct file_symbols;
struct tep_event;
struct tep_handle;

/**
 * decoder_symbols() - read and made when they are asked for first, which takes some milliseconds;
 * by the thread that reads the file
 * Return: NULL without memory, or if the disk has failed.
 */
const struct file_symbols *decoder_symbols(const struct decoder *decoder);

/**
 * decoder_new_handle() - a handle of libtraceevent's that knows the file's machine, and no event
 * Return: NULL without memory.
 */
struct tep_handle *decoder_new_handle(const struct trace_dat *dat);

/**
 * decoder_handle() - a handle of libtraceevent's for one thread, set up for the file
 * Return: NULL without memory.
 */
struct tep_handle *decoder_handle(const struct decoder *decoder);

/**
 * decoder_parse() - parse a format into a handle
 * Return: the event, NULL if it cannot be trusted.
 */
struct tep_event *decoder_parse(const struct decoder *decoder, struct tep_handle *tep,
				size_t format);
