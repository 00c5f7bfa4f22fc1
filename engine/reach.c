/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/reach.h"

struct reach reach_of_cpu(const struct cpu_stats *stats, uint64_t tracing_usec)
{
	struct reach reach = {
		.events = stats->entries,
		.bytes = stats->bytes,
		.total = stats->entries + stats->overrun + stats->read_events,
	};

	if (stats->entries == 0 || stats->oldest_usec == 0 || stats->now_usec < stats->oldest_usec)
		return reach;
	reach.full = stats->overrun > 0;
	reach.usec = stats->now_usec - stats->oldest_usec;
	if (!reach.full)
		reach.usec = MAX(reach.usec, tracing_usec);
	return reach;
}

uint64_t reach_of_all(const struct reach *cpus, unsigned n)
{
	uint64_t longest = 0, shortest = UINT64_MAX;

	for (unsigned cpu = 0; cpu < n; cpu++) {
		longest = MAX(longest, cpus[cpu].usec);
		if (cpus[cpu].full && cpus[cpu].usec > 0)
			shortest = MIN(shortest, cpus[cpu].usec);
	}
	return shortest < UINT64_MAX ? shortest : longest;
}
