/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Taking sub-buffers out of a ring buffer (trace_pipe_raw, or snapshot_raw after a swap) by
 * read(2), for flight sessions on kernels whose ring buffers cannot be mapped. What has been taken
 * is gone from the kernel: the caller keeps it. Any thread, one a CPU.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

struct ring_read {
	int fd;		      /* non-blocking; borrowed */
	unsigned subbuf_size; /* bytes */
	uint64_t stop_nsec;   /* whoever begins after this is the last one; UINT64_MAX: none */
	size_t left;	      /* sub-buffers at most, so that no writer is chased for ever */
	bool done;
};

/**
 * ring_read_fill() - the next sub-buffers, the partial one at the end too
 * @to: room for @max of them
 * @ret_n: fewer than @max: that was the last
 * Return: 0 or negative errno; what came before an error is counted in @ret_n.
 */
int ring_read_fill(struct ring_read *read, char *to, size_t max, size_t *ret_n);

/* Were events overwritten between the sub-buffer before and this one? */
bool ring_read_missed(const char *subbuf);
