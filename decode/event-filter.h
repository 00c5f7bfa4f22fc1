/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which events are wanted: of which kinds, CPUs, tasks and times. Main thread.
 */
#pragma once

#include "basic/parse.h"
#include "decode/decoder.h"
#include "decode/who.h"

/* --since= or --until= */
struct event_filter_time {
	bool set;
	bool realtime;	/* else in the units in which the file's times are shown */
	uint64_t value; /* microseconds since the epoch, or nanoseconds or ticks */
	char *text;	/* as given */
};

struct event_filter {
	char **events; /* "SYSTEM:NAME", "SYSTEM", "NAME", with * and ?; NULL: all */
	bool has_cpus, has_pids;
	struct cpu_list cpus;
	int32_t *pids;
	size_t n_pids;
	char **units, **containers; /* patterns, as in who_new(); NULL: all */
	struct event_filter_time since, until;
	bool lenient; /* an event that a file has no format of: it has none of them */

	/* made by event_filter_prepare() */
	uint8_t *ids;	   /* by event id; NULL: all */
	uint64_t from, to; /* times wanted, both included */
};

/**
 * event_filter_event() - --event=, with several behind commas
 * Return: 0, -EINVAL (no such kind of name) or -ENOMEM. The others likewise.
 */
int event_filter_event(struct event_filter *filter, const char *text);
int event_filter_pids(struct event_filter *filter, const char *text);
int event_filter_cpus(struct event_filter *filter, const char *text);

/**
 * event_filter_unit(), event_filter_container() - --unit=, --container=
 */
int event_filter_unit(struct event_filter *filter, const char *text);
int event_filter_container(struct event_filter *filter, const char *text);

/**
 * event_filter_time() - a time as flyrecctl takes it, or a number as the file's own times
 * are shown
 */
int event_filter_time(struct event_filter_time *time, const char *text);

/**
 * event_filter_prepare() - look the names up in a file
 * Return: 0, or -EINVAL with the reason in @why: an event the file has no format of, a time of day
 * where the file's times are none.
 */
int event_filter_prepare(struct event_filter *filter, const struct decoder *decoder,
			 struct fault *why);
void event_filter_done(struct event_filter *filter);

/* Does it take event->who to tell which are wanted? */
static inline bool event_filter_has_places(const struct event_filter *filter)
{
	return filter->units || filter->containers;
}

/* For event_filter_wants() */
bool event_filter_wants_task(const struct event_filter *filter, const struct decode_event *event);

/**
 * event_filter_wants() - is this event one of them
 */
static inline bool event_filter_wants(const struct event_filter *filter,
				      const struct decode_event *event)
{
	if (event->ts < filter->from || event->ts > filter->to)
		return false;
	if (filter->ids && !filter->ids[event->id])
		return false;
	return !(filter->has_pids || event_filter_has_places(filter)) ||
	       event_filter_wants_task(filter, event);
}
