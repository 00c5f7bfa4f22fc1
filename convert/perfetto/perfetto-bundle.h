/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events as packets of Perfetto's, each with a bundle of those of one CPU and ring buffer. A struct
 * perfetto_bundles is one worker's; what it makes does not depend on who else made what.
 */
#pragma once

#include "convert/perfetto/perfetto-plan.h"

/* Of a kind of event */
struct perfetto_choice {
	struct perfetto_plan *typed, *any;
	/* Whose events are typed: index of the ring buffer plus 1; 0: nobody's. Perfetto knows no
	 * ring buffers, and would take the same event of another one for a second one */
	uint32_t buffer;
	bool met;
};

struct perfetto_events {
	const struct decoder *decoder;
	uint64_t to_boot; /* what has to be added to an event's time, modulo 2^64 */
	/* Of a host that is not the first: what is added to its pids, CPUs, and numbers of events
	 * that are described, as Perfetto has one space for all */
	uint32_t pids, cpus, described;
	struct perfetto_choice *choices; /* by format; one more for ids without one */
};

static inline struct perfetto_choice *perfetto_choice(const struct perfetto_events *events,
						      uint32_t id)
{
	int32_t format = decoder_find(events->decoder, id);

	return &events->choices[format >= 0 ? (size_t)format
					    : decoder_dat(events->decoder)->n_formats];
}

/* Idle tasks have none */
static inline uint32_t perfetto_pid(const struct perfetto_events *events, int32_t pid)
{
	return pid > 0 ? (uint32_t)pid + events->pids : (uint32_t)pid;
}

static inline bool perfetto_is_typed(const struct perfetto_choice *choice,
				     const struct decode_event *event)
{
	return choice->typed && choice->buffer == event->buffer + 1;
}

struct perfetto_bundles;

/**
 * perfetto_bundles_new() - @events: outlives it; the plans of an event are there when it comes
 */
int perfetto_bundles_new(const struct perfetto_events *events, struct perfetto_bundles **ret);
struct perfetto_bundles *perfetto_bundles_free(struct perfetto_bundles *bundles);

/**
 * perfetto_bundles_make() - append packets with these events, which are in order
 * Return: 0 or -ENOMEM.
 */
int perfetto_bundles_make(struct perfetto_bundles *bundles, const struct decode_event *events,
			  size_t n, struct text *out);
