/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a flight session has traced since the last look, without taking it out of the kernel: its
 * mapped ring buffers' new sub-buffers, as if they were drained. Of the sub-buffer that is being
 * written the new part comes as one of its own, as read(2) would give it. One thread.
 */
#pragma once

#include "basic/macro.h"
#include "formats/subbuf.h"

/* The descriptors stay the caller's; -EBADF: a CPU that has never been there */
struct latency_ring_feed {
	unsigned n_cpus, subbuf_size;
	int *trace_fds; /* [n_cpus]: trace_pipe_raw */
	int *stats_fds; /* [n_cpus]: per_cpu/cpuN/stats */
};

struct latency_ring;

/**
 * latency_ring_new() - what is in the ring buffers by now is not wanted
 * @feed: borrowed
 */
int latency_ring_new(const struct latency_ring_feed *feed, struct latency_ring **ret);
struct latency_ring *latency_ring_free(struct latency_ring *ring);
DEFINE_CLEANUP(struct latency_ring *, latency_ring_free)

/**
 * latency_ring_now() - the instance's clock, nanoseconds
 */
int latency_ring_now(const struct latency_ring *ring, uint64_t *ret);

/**
 * latency_ring_look() - from now on there may be more of each CPU
 */
void latency_ring_look(struct latency_ring *ring);

/**
 * latency_ring_read() - one CPU's new sub-buffers, oldest first
 * Where some were overwritten before they were seen, the next one says so. A CPU is mapped until
 * there are no more of it.
 * @to: room for @max sub-buffers
 * Return: how many; 0: no more until the next look; or negative errno.
 */
int latency_ring_read(struct latency_ring *ring, unsigned cpu, char *to, unsigned max);

/**
 * latency_ring_leave() - the look is over; what was not read is there at the next one
 */
void latency_ring_leave(struct latency_ring *ring);
