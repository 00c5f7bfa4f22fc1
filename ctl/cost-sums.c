/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cost-sums.h"
#include "basic/macro.h"
#include "writer/retention.h"

#define HOUR_SEC 3600.0
#define FOR_EVER (UINT64_C(3650) * 86400 * USEC_PER_SEC)

static uint64_t history(const struct cost_base *base, const struct cost_rate *rate)
{
	const struct retention_past past = {};
	const struct retention_live live = {
		.bytes = (uint64_t)(rate->bytes * HOUR_SEC),
		.usec = 1,
		.raw_bytes = base->raw_bytes,
		.packed_bytes = base->packed_bytes,
	};

	if (rate->bytes * HOUR_SEC < 1)
		return 0;
	if (base->holds_bytes > 0)
		return (uint64_t)MIN(base->holds_bytes / rate->bytes * (double)USEC_PER_SEC,
				     (double)FOR_EVER);
	return base->max_use == 0 ? 0
				  : retention_lasts(&past, &live, base->max_use,
						    live.usec + (uint64_t)HOUR_SEC * USEC_PER_SEC);
}

struct cost cost_of(const struct cost_base *base, const struct cost_rate *rate)
{
	const double second = (double)NSEC_PER_SEC * MAX(base->cpus, 1U);

	return (struct cost){
		.tracing = rate->events * base->event_nsec / second,
		.recorder = rate->bytes * base->byte_nsec / second,
		.history_usec = history(base, rate),
	};
}

struct cost cost_without(const struct cost_base *base, const struct cost_rate *all,
			 const struct cost_rate *left_out)
{
	const struct cost_rate rest = {
		.events = MAX(all->events - left_out->events, 0),
		.bytes = MAX(all->bytes - left_out->bytes, 0),
	};
	struct cost saved = cost_of(base, left_out);
	uint64_t before = history(base, all), after = rest.events > 0 ? history(base, &rest) : 0;

	saved.history_usec = after > before ? after - before : 0;
	return saved;
}

double cost_byte_nsec(const struct cost_recorder *r)
{
	double nsec = 0;

	if (r->bytes > 0)
		nsec += (double)r->cpu_usec * NSEC_PER_USEC / (double)r->bytes;
	if (r->other_bytes > 0)
		nsec += (double)r->other_usec * NSEC_PER_USEC / (double)r->other_bytes;
	return nsec;
}
