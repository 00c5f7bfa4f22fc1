/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many events of each kind recordings have of two times that end together: the last minute and
 * the last hour, say. Straight over the sub-buffers, of which only the heads of events are looked
 * at, and only as many bytes as the caller has time for. One thread.
 */
#pragma once

#include "analysis/sources.h"

enum rates_window {
	RATES_SHORT,
	RATES_LONG,
	_RATES_MAX,
};

struct rates_config {
	const struct source *sources; /* each with what is later than the one before; or only
					 partly so, as segments of a session */
	size_t n;
	uint64_t from_usec[_RATES_MAX], to_usec; /* realtime */
	uint64_t read_max; /* bytes of data to be read at most, of the end of the recordings */
};

struct rates_event {
	char *name; /* "SYSTEM:NAME", or the id of one that the file has no format of */
	uint64_t count[_RATES_MAX], bytes[_RATES_MAX];
};

struct rates {
	uint64_t from_usec[_RATES_MAX]; /* later than asked for if it was too much to read */
	struct rates_event *events;	/* those with the most bytes in the long time first */
	size_t n_events;
	uint64_t count[_RATES_MAX];	   /* of all */
	uint64_t subbuf_bytes[_RATES_MAX]; /* of sub-buffers that begin then, whole */
};

/**
 * rates_read() - count
 * Sub-buffers that are damaged are left out.
 * Return: 0; -EINVAL: the clock of a file counts no time of day; or another negative errno; with
 * the story in @why.
 */
int rates_read(const struct rates_config *config, struct rates *ret, struct fault *why);
void rates_done(struct rates *rates);
