/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --time=: how the time of an event is printed in a line of text. Owner: the caller; a struct is
 * one thread's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/fault.h"
#include "decode/text.h"

struct decoder;

enum event_time_mode {
	EVENT_TIME_EPOCH, /* as trace-cmd report: seconds since 1970 of files that tell */
	EVENT_TIME_LOCAL, /* HH:MM:SS.uuuuuu, and the date in a line of its own where it changes */
	EVENT_TIME_UTC,
	EVENT_TIME_TRACE,   /* of the trace clock, without the file's offset */
	EVENT_TIME_TRIGGER, /* milliseconds after what caused the snapshot, or before: -1.234 */
};

struct event_time {
	enum event_time_mode mode;
	uint64_t zero; /* EVENT_TIME_TRACE, _TRIGGER: nanoseconds to take off */
	/* the quarter of an hour that was looked up last; no clock is set in the middle of one */
	uint64_t quarter;
	unsigned second; /* of the day, when it begins */
	bool known;
};

/* Which day it was last */
struct event_days {
	enum event_time_mode mode;
	uint64_t begin, end; /* nanoseconds since 1970; 0: none yet */
};

/**
 * event_time_parse() - a word of --time=
 */
bool event_time_parse(const char *text, enum event_time_mode *ret);

/**
 * event_time_choose() - for the times of a file
 * @text: of --time=, NULL: @usual, or the file's own times if it does not tell what that takes
 * Return: 0 or negative errno with the story in @why: the file does not tell.
 */
int event_time_choose(struct event_time *ret, const char *text, enum event_time_mode usual,
		      const struct decoder *decoder, struct fault *why);

/**
 * event_time_put() - append a time, as wide as that of trace-cmd at least
 * @ts: as it is shown, see decoder_time(): nanoseconds. Not for EVENT_TIME_EPOCH and _TRACE.
 */
void event_time_put(struct event_time *time, uint64_t ts, struct text *out);

/**
 * event_days_init() - @today: the date need not be said while it is today's
 */
void event_days_init(struct event_days *days, enum event_time_mode mode, bool today);

/**
 * event_days_changed() - is it another day, which has to be said?
 */
bool event_days_changed(struct event_days *days, uint64_t ts);

/**
 * event_time_put_day() - append "2026-01-31 CET\n"
 */
void event_time_put_day(const struct event_time *time, uint64_t ts, struct text *out);
