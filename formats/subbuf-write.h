/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Making sub-buffers out of events that do not come from a kernel; formats/subbuf.h draws the
 * layout. This machine's byte order, a commit of 8 bytes at 8, data from 16 on: SUBBUF_WRITE_HEAD.
 * Pure functions over memory of the caller's; any thread, one a sub-buffer.
 */
#pragma once

#include "formats/subbuf.h"

#define SUBBUF_WRITE_HEAD 16

struct subbuf_write {
	uint8_t *bytes;
	uint32_t size, pos;
	uint64_t first_ts, ts; /* of the first and the newest event */
};

enum {
	SUBBUF_WRITE_E_FULL = 1, /* the event goes into the next sub-buffer */
};

/**
 * subbuf_write_max() - bytes of data that fit into an empty sub-buffer
 */
static inline uint32_t subbuf_write_max(uint32_t size)
{
	return (size - SUBBUF_WRITE_HEAD - 8) & ~3U;
}

/**
 * subbuf_write_begin() - an empty sub-buffer
 * @bytes: @size of them, aligned to 8
 */
void subbuf_write_begin(struct subbuf_write *write, void *bytes, uint32_t size);

/**
 * subbuf_write_event() - room for an event's data behind the events that are there
 * @ts: above 0, and not before the event before; any distance is fine
 * @size: bytes of data, beginning with the u16 of its type; what is missing to a multiple of 4 is
 *	filled with zeros
 * @ret: where the caller puts @size bytes
 * Return: 0, SUBBUF_WRITE_E_FULL, -EINVAL (time), -EMSGSIZE (more than subbuf_write_max(), or less
 * than a type).
 */
int subbuf_write_event(struct subbuf_write *write, uint64_t ts, uint32_t size, void **ret);

/**
 * subbuf_write_empty() - has it no event yet?
 */
static inline bool subbuf_write_empty(const struct subbuf_write *write)
{
	return write->pos == SUBBUF_WRITE_HEAD;
}

/**
 * subbuf_write_end() - write its header, fill up with zeros
 */
void subbuf_write_end(struct subbuf_write *write);
