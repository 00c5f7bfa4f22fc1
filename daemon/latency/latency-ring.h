/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a flight session has traced since the last look, without taking it out of the kernel: its
 * mapped ring buffers' new sub-buffers, appended to a file as if they had been drained. Of the
 * sub-buffer that is being written the new part comes as one of its own, as read(2) would give it.
 * One thread.
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
 * latency_ring_look() - one CPU's new sub-buffers
 * Where some were overwritten before they were seen, the next one says so.
 * @put: gets one after the other, oldest first
 * Return: 0, what @put returned if less than 0, or negative errno.
 */
int latency_ring_look(struct latency_ring *ring, unsigned cpu,
		      int (*put)(void *userdata, unsigned cpu, const char *subbuf), void *userdata);
