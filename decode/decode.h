/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events of a trace.dat as text and JSON, one by one: what `export` and `tail` print. A decoder
 * holds what is common to the file and does not change, but for the task names, which one thread
 * asks for; a formatter is one thread's and turns events into lines. The text is that of
 * `trace-cmd report` 3.1.6, byte for byte.
 *
 *	decoder_new → decoder_task → struct decode_event → formatter_text | formatter_json
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/fault.h"
#include "decode/event-time.h"
#include "decode/tasks.h"
#include "decode/text.h"
#include "formats/trace-dat-read.h"

/* One event, as the merge of the CPUs gives it; what it points to is borrowed */
struct decode_event {
	uint64_t ts; /* nanoseconds, or the clock's own units; offsets of the file applied */
	const uint8_t *data;
	const uint8_t *leaf; /* of a funcgraph_entry: its funcgraph_exit, if that comes next */
	const struct task_name *task;
	bool new_day;	/* its date is to be said, see event_days_changed() */
	int64_t missed; /* events lost before it on this CPU; -1: some; 0: none */
	uint32_t size, leaf_size;
	uint32_t cpu;
	uint32_t buffer; /* index in dat->buffers */
};

struct decoder;

/**
 * decoder_new() - read what events are decoded with
 * @dat: stays the caller's and must outlive @ret
 * Return: 0 or negative errno with the story in @why.
 */
int decoder_new(const struct trace_dat *dat, struct decoder **ret, struct fault *why);
struct decoder *decoder_free(struct decoder *decoder);
DEFINE_CLEANUP(struct decoder *, decoder_free)

/**
 * decoder_time() - a timestamp of the ring buffer as it is shown
 */
uint64_t decoder_time(const struct decoder *decoder, uint64_t ts);

/**
 * decoder_in_usecs() - are times shown as seconds.microseconds (or as plain numbers)
 */
bool decoder_in_usecs(const struct decoder *decoder);

/**
 * decoder_has_date() - do the file's options turn times into those of CLOCK_REALTIME
 */
bool decoder_has_date(const struct decoder *decoder);

/**
 * decoder_find() - index of an event id's format in dat->formats, -1 if the file has none
 */
int32_t decoder_find(const struct decoder *decoder, uint32_t id);

/**
 * decoder_name() - "EVENT" of a format in dat->formats, without parsing it
 * Return: NUL-terminated, valid as long as the decoder; "" if the text has no name.
 */
const char *decoder_name(const struct decoder *decoder, size_t format);

/**
 * decoder_id() - the event id in an event's data; decoder_pid() the task's pid
 */
uint32_t decoder_id(const struct decoder *decoder, const struct decode_event *event);
int32_t decoder_pid(const struct decoder *decoder, const struct decode_event *event);

/**
 * decoder_task() - set event->task, and learn the names the event tells of
 * To be called for all events in their order, by one thread: trace-cmd learns a name when it has
 * printed the event.
 */
int decoder_task(struct decoder *decoder, struct decode_event *event);

/**
 * decoder_rename() - a task has this name from now on; the same thread
 */
int decoder_rename(struct decoder *decoder, int32_t pid, const char *name);

/**
 * decoder_is_leaf() - is @next the end of the function that @event, a funcgraph_entry, enters, on
 * the same CPU? Such two are shown as one line, of the first.
 */
bool decoder_is_leaf(const struct decoder *decoder, const struct decode_event *event,
		     const struct decode_event *next);

struct formatter;

/**
 * formatter_new() - Thread: main; loads libtraceevent's plugins, as trace-cmd does
 * @plugins: false: none, for tests
 */
int formatter_new(struct decoder *decoder, bool plugins, struct formatter **ret);

/**
 * formatter_times() - how times are printed in text; EVENT_TIME_EPOCH without it
 */
void formatter_times(struct formatter *formatter, const struct event_time *time);

/**
 * formatter_has_plugins() - are libtraceevent's plugins installed? Without them some kinds of event
 * are printed as their formats say.
 */
bool formatter_has_plugins(const struct formatter *formatter);

/**
 * formatter_free() - Thread: main
 */
struct formatter *formatter_free(struct formatter *formatter);
DEFINE_CLEANUP(struct formatter *, formatter_free)

enum {
	FORMATTER_E_ORDER = 1, /* nothing was appended */
};

/**
 * formatter_text() - append the event's line (or lines) with the newline
 * @ordered: this formatter sees all events of its kind in their order
 *
 * The text of a few kinds of event depends on what was printed before (calls of functions are
 * indented, formats that do not parse change their mind). They are refused with FORMATTER_E_ORDER
 * unless @ordered.
 * Return: 0, FORMATTER_E_ORDER, or -ENOMEM.
 */
int formatter_text(struct formatter *formatter, const struct decode_event *event, bool ordered,
		   struct text *out);

/**
 * formatter_json() - append one line with a JSON object; flyrecctl(1) describes it
 * Return: 0 or -ENOMEM.
 */
int formatter_json(struct formatter *formatter, const struct decode_event *event, struct text *out);

/**
 * formatter_escape() - what becomes of control characters in texts from now on
 */
void formatter_escape(struct formatter *formatter, enum text_escape escape);

/**
 * formatter_by_libtraceevent() - for tests: print by libtraceevent what would be compiled
 */
void formatter_by_libtraceevent(struct formatter *formatter, bool yes);
