/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A memfd in the place of a mapped trace_pipe_raw: a first page as the kernel has it, and
 * sub-buffers that are written as the kernel does: header emptied, timestamp, events, commit. Fails
 * the test when something does not work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/ring-copy.h"

#define PAGE  4096U
#define LARGE (16U * 1024)
#define DATA  (8 + sizeof(long)) /* where events begin in a sub-buffer */

struct ring {
	int fd; /* to be mapped */
	unsigned subbuf, n;
	struct ring_meta *meta;
	char *data; /* the sub-buffers */
};

/* @n empty sub-buffers: ids 1 … n-1 are the ring, 0 is the reader's */
void ring_make(struct ring *r, unsigned subbuf, unsigned n);
void ring_done(struct ring *r);

/* The words of a sub-buffer's header */
uint64_t *ring_timestamp(const struct ring *r, unsigned id);
unsigned long *ring_commit(const struct ring *r, unsigned id);

/*
 * Begin a sub-buffer anew. @size bytes of events, all of them the timestamp: whoever copies can
 * tell whose they are. Any thread, one at a time.
 */
void ring_write(const struct ring *r, unsigned id, uint64_t timestamp, size_t size);

/* As many bytes of events as a sub-buffer has room for */
size_t ring_full(const struct ring *r);

/* Fill the ring; @newest holds time @newest_time, time steps by 10 */
void ring_wrap(const struct ring *r, unsigned newest, uint64_t newest_time);

/* All of it mapped and listed; to be closed */
void ring_open_copy(const struct ring *r, bool overrun, struct ring_copy *ret);
