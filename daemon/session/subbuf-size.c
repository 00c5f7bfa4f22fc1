/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/session/subbuf-size.h"
#include "basic/macro.h"

/* The next ones gain little more, and are beyond what the kernel finds when memory is fragmented
 * (PAGE_ALLOC_COSTLY_ORDER) */
#define LARGE (16 * KIB)

/* Bytes of a CPU's ring buffer: with fewer sub-buffers BufferPercent= is coarse, and what is taken
 * at a time little */
#define BUFFER_MIN (4 * MIB)

/* Of MaxUse=: what a day in which next to nothing happens may take */
#define SHARE 8

#define DAY_USEC (24 * 3600 * USEC_PER_SEC)

/* Bytes that a day of flushes of nearly empty sub-buffers takes */
static uint64_t quiet_day(const struct subbuf_size_input *in)
{
	return in->flush_usec > 0 ? DAY_USEC / in->flush_usec * in->n_cpus * LARGE : 0;
}

uint64_t subbuf_size_auto(const struct subbuf_size_input *in)
{
	if (!in->settable || in->persistent || in->page_size != 4 * KIB ||
	    in->buffer_size < BUFFER_MIN)
		return 0;
	return in->compress || quiet_day(in) <= in->max_use / SHARE ? LARGE : 0;
}
