/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which events export writes, by its options. Main thread.
 */
#pragma once

#include "basic/parse.h"
#include "ctl/ctl.h"
#include "decode/decode.h"

/* --since= or --until= */
struct export_time {
	bool set;
	bool realtime;	/* else in the units in which the file's times are shown */
	uint64_t value; /* microseconds since the epoch, or nanoseconds or ticks */
	char *text;	/* as given */
};

struct export_filter {
	char **events; /* "SYSTEM:NAME", "SYSTEM", "NAME", with * and ?; NULL: all */
	bool has_cpus, has_pids;
	struct cpu_list cpus;
	int32_t *pids;
	size_t n_pids;
	struct export_time since, until;
	bool lenient; /* an event that a file has no format of: it has none of them */

	/* made by export_filter_prepare() */
	uint8_t *ids;	   /* by event id; NULL: all */
	uint64_t from, to; /* times wanted, both included */
};

/**
 * export_filter_event() - --event=, with several behind commas
 * Return: 0, -EINVAL (no such kind of name) or -ENOMEM. The others likewise.
 */
int export_filter_event(struct export_filter *filter, const char *text);
int export_filter_pids(struct export_filter *filter, const char *text);
int export_filter_cpus(struct export_filter *filter, const char *text);

/**
 * export_filter_time() - a time as flyrecctl takes it, or a number as the file's own times
 * are shown
 */
int export_filter_time(struct export_time *time, const char *text);

/**
 * export_filter_parse() - all that was given of --event=, --pid=, --cpu=, --since= and --until=
 * @verb: for the line on standard error that says what is not understood
 */
bool export_filter_parse(struct export_filter *filter, const struct ctl *ctl, const char *verb);

/**
 * export_filter_prepare() - look the names up in a file
 * Return: 0, or -EINVAL with the reason in @why: an event the file has no format of, a time of day
 * where the file's times are none.
 */
int export_filter_prepare(struct export_filter *filter, const struct trace_dat *dat,
			  const struct decoder *decoder, struct fault *why);
void export_filter_done(struct export_filter *filter);

/**
 * export_filter_wants() - is this event one of them
 */
static inline bool export_filter_wants(const struct export_filter *filter,
				       const struct decoder *decoder,
				       const struct decode_event *event)
{
	if (event->ts < filter->from || event->ts > filter->to)
		return false;
	if (filter->ids && !filter->ids[decoder_id(decoder, event)])
		return false;
	if (!filter->has_pids)
		return true;
	for (size_t i = 0; i < filter->n_pids; i++)
		if (filter->pids[i] == decoder_pid(decoder, event))
			return true;
	return false;
}
