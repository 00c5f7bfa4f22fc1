/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "basic/macro.h"
#include "formats/subbuf-write.h"

#define TYPE_EXTEND	  30
#define DELTA_BITS	  27
#define DELTA_MAX	  ((UINT64_C(1) << DELTA_BITS) - 1)
#define EXTENDED_MAX	  ((UINT64_C(1) << (DELTA_BITS + 32)) - 1)
#define SMALL_DATA_MAX	  (28 * 4) /* more has its length in a word of its own */
#define SIZE_OF_EXTEND	  8
#define SIZE_OF_LONG_HEAD 8
#define SIZE_OF_HEAD	  4

static void put_u32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static uint32_t head_word(uint32_t type_len, uint32_t delta)
{
#if __BYTE_ORDER == __BIG_ENDIAN
	return type_len << DELTA_BITS | delta;
#else
	return type_len | delta << 5;
#endif
}

void subbuf_write_begin(struct subbuf_write *w, void *bytes, uint32_t size)
{
	*w = (struct subbuf_write){.bytes = bytes, .size = size, .pos = SUBBUF_WRITE_HEAD};
}

int subbuf_write_event(struct subbuf_write *w, uint64_t ts, uint32_t size, void **ret)
{
	uint32_t room, head = size > SMALL_DATA_MAX ? SIZE_OF_LONG_HEAD : SIZE_OF_HEAD;
	uint64_t delta = subbuf_write_empty(w) ? 0 : ts - w->ts;
	uint8_t *at = w->bytes + w->pos;

	if (size > subbuf_write_max(w->size) || size < sizeof(uint16_t))
		return -EMSGSIZE;
	if (ts == 0 || ts < w->ts)
		return -EINVAL;
	room = (size + 3) & ~3U;
	if (w->size - w->pos < head + room + (delta > DELTA_MAX ? SIZE_OF_EXTEND : 0) ||
	    delta > EXTENDED_MAX)
		return SUBBUF_WRITE_E_FULL;
	if (subbuf_write_empty(w))
		w->first_ts = ts;
	if (delta > DELTA_MAX) {
		put_u32(at, head_word(TYPE_EXTEND, (uint32_t)(delta & DELTA_MAX)));
		put_u32(at + 4, (uint32_t)(delta >> DELTA_BITS));
		at += SIZE_OF_EXTEND;
		delta = 0;
	}
	if (head == SIZE_OF_LONG_HEAD) {
		put_u32(at, head_word(0, (uint32_t)delta));
		put_u32(at + 4, room + 4); /* with itself */
	} else {
		put_u32(at, head_word(room / 4, (uint32_t)delta));
	}
	put_u32(at + head + room - 4, 0); /* the caller overwrites all but the filling */
	*ret = at + head;
	w->ts = ts;
	w->pos = (uint32_t)(at + head + room - w->bytes);
	return 0;
}

void subbuf_write_end(struct subbuf_write *w)
{
	uint64_t commit = w->pos - SUBBUF_WRITE_HEAD;

	memcpy(w->bytes, &w->first_ts, sizeof(w->first_ts));
	memcpy(w->bytes + 8, &commit, sizeof(commit));
	memset(w->bytes + w->pos, 0, w->size - w->pos);
}
