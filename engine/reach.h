/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How far back a flight session's ring buffers reach, by the kernel's counters of each CPU. Pure
 * functions.
 */
#pragma once

#include "recorder/instance.h"

struct reach {
	uint64_t
		usec; /* from now back to the oldest event; 0: none yet, or the clock has no time */
	bool full;    /* older events have been overwritten */
	uint64_t events, bytes; /* that are in the ring buffer */
	uint64_t total;		/* events that came since the instance was made */
};

/**
 * reach_of_cpu() - of one CPU
 * @tracing_usec: how long the session has been tracing: a CPU that has overwritten nothing has all
 *                that happened since then, however young its first event is
 */
struct reach reach_of_cpu(const struct cpu_stats *stats, uint64_t tracing_usec);

/**
 * reach_of_all() - from when on all CPUs have everything
 */
uint64_t reach_of_all(const struct reach *cpus, unsigned n);
