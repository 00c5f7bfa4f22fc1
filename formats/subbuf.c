/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/macro.h"
#include "formats/subbuf.h"

#define MISSED_EVENTS (UINT64_C(1) << 31)
#define MISSED_STORED (UINT64_C(1) << 30)
#define MISSED_MASK   (MISSED_EVENTS | MISSED_STORED)

#define TYPE_LENGTH  0 /* length in the next word */
#define TYPE_PADDING 29
#define TYPE_EXTEND  30
#define TYPE_STAMP   31

#define DELTA_BITS  27
#define DELTA_MASK  ((UINT32_C(1) << DELTA_BITS) - 1)
#define TS_TOP_BITS (UINT64_C(0xf8) << 56) /* absolute times come without these */

static _always_inline_ uint16_t get_u16(const uint8_t *p, bool big)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return big ? be16toh(v) : le16toh(v);
}

static _always_inline_ uint32_t get_u32(const uint8_t *p, bool big)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return big ? be32toh(v) : le32toh(v);
}

static _always_inline_ uint64_t get_u64(const uint8_t *p, bool big)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return big ? be64toh(v) : le64toh(v);
}

static uint64_t get_long(const struct subbuf_layout *layout, const uint8_t *p)
{
	return layout->commit_size == 8 ? get_u64(p, layout->big_endian)
					: get_u32(p, layout->big_endian);
}

static int bad(struct subbuf_fault *ret, enum subbuf_reason reason, uint32_t offset, uint64_t value)
{
	if (ret)
		*ret = (struct subbuf_fault){
			.reason = reason,
			.offset = offset,
			.value = (uint32_t)MIN(value, (uint64_t)UINT32_MAX),
		};
	return -EBADMSG;
}

struct subbuf_layout subbuf_layout_native(uint32_t size)
{
	return (struct subbuf_layout){
		.size = size,
		.data_offset = sizeof(uint64_t) + sizeof(long),
		.commit_size = sizeof(long),
		.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
	};
}

bool subbuf_layout_valid(const struct subbuf_layout *layout)
{
	return (layout->commit_size == 4 || layout->commit_size == 8) &&
	       layout->data_offset >= 8U + layout->commit_size && layout->data_offset <= 64 &&
	       layout->data_offset % 4 == 0 && layout->size > layout->data_offset &&
	       layout->size % 8 == 0 && layout->size <= 64 * MIB;
}

int subbuf_header(const struct subbuf_layout *layout, const void *bytes, struct subbuf_header *ret,
		  struct subbuf_fault *ret_fault)
{
	const uint8_t *p = bytes;
	uint64_t timestamp = get_u64(p, layout->big_endian);
	uint64_t commit = get_long(layout, p + 8);
	uint64_t length;
	uint32_t room = layout->size - layout->data_offset;
	bool missed = commit & MISSED_EVENTS, stored = missed && (commit & MISSED_STORED);

	if (timestamp == 0 && commit == 0)
		return SUBBUF_E_EMPTY;
	/* the kernel adds bit 31 as a negative int, which fills the upper half of a 64-bit commit
	 */
	if (missed && commit >> 32 == UINT32_MAX)
		commit = (uint32_t)commit;
	length = commit & ~MISSED_MASK;
	if (length > room || (stored && length + layout->commit_size > room))
		return bad(ret_fault, SUBBUF_COMMIT_TOO_LONG, 8, length);
	if (timestamp == 0)
		return bad(ret_fault, SUBBUF_NO_TIMESTAMP, 0, 0);
	*ret = (struct subbuf_header){
		.timestamp = timestamp,
		.commit = (uint32_t)length,
		.missed = missed,
		.missed_stored = stored,
		.missed_events = stored ? get_long(layout, p + layout->data_offset + length) : 0,
	};
	return 0;
}

void subbuf_mark_missed(const struct subbuf_layout *layout, void *bytes)
{
	uint8_t *commit = (uint8_t *)bytes + sizeof(uint64_t);

	commit[layout->big_endian ? layout->commit_size - 4 : 3] |= 0x80;
}

void subbuf_make_empty(const struct subbuf_layout *layout, void *bytes, uint64_t timestamp)
{
	uint64_t ts = layout->big_endian ? htobe64(timestamp) : htole64(timestamp);

	memset(bytes, 0, layout->size);
	memcpy(bytes, &ts, sizeof(ts));
}

int subbuf_iter_init(const struct subbuf_layout *layout, const void *bytes, struct subbuf_iter *ret,
		     struct subbuf_fault *ret_fault)
{
	struct subbuf_header header;
	int r;

	r = subbuf_header(layout, bytes, &header, ret_fault);
	if (r != 0)
		return r;
	*ret = (struct subbuf_iter){
		.layout = layout,
		.bytes = bytes,
		.header = header,
		.pos = layout->data_offset,
		.end = layout->data_offset + header.commit,
		.ts = header.timestamp,
	};
	return 0;
}

/* A time event; the caller has seen that all 8 bytes of it are there */
static _always_inline_ int step_time(struct subbuf_iter *it, uint32_t type, uint32_t delta,
				     uint32_t high, struct subbuf_fault *ret_fault)
{
	uint64_t time = ((uint64_t)high << DELTA_BITS) + delta;
	uint64_t ts = type == TYPE_EXTEND ? it->ts + time : (it->ts & TS_TOP_BITS) | time;

	if (ts < it->ts)
		return bad(ret_fault, SUBBUF_TIME_BACKWARDS, it->pos, 0);
	it->ts = ts;
	it->pos += 8;
	return 0;
}

/*
 * One event. Compiled once for each byte order, with the iterator in registers: this is where
 * verify spends its time.
 */
static _always_inline_ int step(struct subbuf_iter *it, bool big, struct subbuf_event *ret,
				struct subbuf_fault *ret_fault)
{
	while (it->pos < it->end) {
		const uint8_t *p = it->bytes + it->pos;
		uint32_t left = it->end - it->pos, word, type, delta, head = 4, length;

		if (left < 4)
			return bad(ret_fault, SUBBUF_EVENT_CUT, it->pos, left);
		word = get_u32(p, big);
		type = big ? word >> DELTA_BITS : word & 31;
		delta = big ? word & DELTA_MASK : word >> 5;

		if (type == TYPE_PADDING && delta == 0) {
			it->pos = it->end;
			break;
		}
		if ((type == TYPE_LENGTH || type >= TYPE_PADDING) && left < 8)
			return bad(ret_fault, SUBBUF_EVENT_CUT, it->pos, left);
		if (type >= TYPE_EXTEND) {
			int r = step_time(it, type, delta, get_u32(p + 4, big), ret_fault);

			if (r < 0)
				return r;
			continue;
		}
		if (type == TYPE_LENGTH) {
			length = get_u32(p + 4, big);
			if (length < 8) /* itself, and data that begins with the id */
				return bad(ret_fault, SUBBUF_EVENT_TOO_SHORT, it->pos, length);
			length -= 4;
			head = 8;
		} else {
			length = type == TYPE_PADDING ? get_u32(p + 4, big) : type * 4;
		}
		if (length > left - head)
			return bad(ret_fault, SUBBUF_EVENT_TOO_LONG, it->pos, length);
		if (length % 4)
			return bad(ret_fault, SUBBUF_EVENT_UNALIGNED, it->pos, length);
		if (it->ts + delta < it->ts)
			return bad(ret_fault, SUBBUF_TIME_BACKWARDS, it->pos, 0);
		it->ts += delta;
		if (type != TYPE_PADDING) {
			ret->ts = it->ts;
			ret->offset = it->pos;
			ret->data = p + head;
			ret->size = length;
			it->pos += head + length;
			return 1;
		}
		it->pos += head + length;
	}
	return 0;
}

int subbuf_iter_next(struct subbuf_iter *iter, struct subbuf_event *ret,
		     struct subbuf_fault *ret_fault)
{
	if (iter->layout->big_endian)
		return step(iter, true, ret, ret_fault);
	return step(iter, false, ret, ret_fault);
}

/* The fault of the event behind those that are good is found again by the next call */
static _always_inline_ int some(struct subbuf_iter *iter, bool big, struct subbuf_event *ret,
				unsigned most, struct subbuf_fault *ret_fault)
{
	struct subbuf_iter it = *iter;
	unsigned n = 0;
	int r = 1;

	while (n < most && (r = step(&it, big, &ret[n], ret_fault)) > 0)
		n++;
	*iter = it;
	return n > 0 ? (int)n : r;
}

int subbuf_iter_some(struct subbuf_iter *iter, struct subbuf_event *ret, unsigned most,
		     struct subbuf_fault *ret_fault)
{
	if (iter->layout->big_endian)
		return some(iter, true, ret, most, ret_fault);
	return some(iter, false, ret, most, ret_fault);
}

static _always_inline_ bool is_picked(const struct subbuf_pick *pick, bool big,
				      const struct subbuf_event *event)
{
	uint8_t by = event->size >= 2 ? pick->ids[get_u16(event->data, big)] : SUBBUF_PICK_ALL;
	uint32_t number;

	if (by != SUBBUF_PICK_BY_NUMBER || event->size < pick->number_at + sizeof(number))
		return by;
	number = get_u32(event->data + pick->number_at, big);
	return number >= SUBBUF_PICK_NUMBERS || pick->numbers[number];
}

static _always_inline_ int some_picked(struct subbuf_iter *iter, bool big,
				       const struct subbuf_pick *pick, struct subbuf_event *ret,
				       unsigned most, struct subbuf_fault *ret_fault)
{
	const uint32_t behind_loss = iter->header.missed ? iter->layout->data_offset : UINT32_MAX;
	struct subbuf_iter it = *iter;
	unsigned n = 0;
	int r = 1;

	while (n < most && (r = step(&it, big, &ret[n], ret_fault)) > 0)
		n += is_picked(pick, big, &ret[n]) || ret[n].offset == behind_loss;
	*iter = it;
	return n > 0 ? (int)n : r;
}

int subbuf_iter_pick(struct subbuf_iter *iter, const struct subbuf_pick *pick,
		     struct subbuf_event *ret, unsigned most, struct subbuf_fault *ret_fault)
{
	if (iter->layout->big_endian)
		return some_picked(iter, true, pick, ret, most, ret_fault);
	return some_picked(iter, false, pick, ret, most, ret_fault);
}

static _always_inline_ int walk(struct subbuf_iter *it, bool big, const uint32_t *least,
				struct subbuf_info *info, struct subbuf_fault *ret_fault)
{
	struct subbuf_event event;
	int r;

	while ((r = step(it, big, &event, ret_fault)) > 0) {
		if (info->events++ == 0)
			info->first_ts = event.ts;
		info->last_ts = event.ts;
		if (least) {
			uint16_t id = get_u16(event.data, big);

			if (event.size < least[id])
				return bad(ret_fault,
					   least[id] == SUBBUF_UNKNOWN_ID
						   ? SUBBUF_EVENT_UNKNOWN
						   : SUBBUF_EVENT_SMALLER_THAN_FORMAT,
					   event.offset, id);
		}
	}
	return r;
}

int subbuf_check(const struct subbuf_layout *layout, const void *bytes, const uint32_t *least,
		 struct subbuf_info *ret, struct subbuf_fault *ret_fault)
{
	struct subbuf_info info = {};
	struct subbuf_iter it;
	int r;

	r = subbuf_iter_init(layout, bytes, &it, ret_fault);
	if (r != 0)
		return r;
	info.header = it.header;
	info.first_ts = info.last_ts = it.header.timestamp;
	if (layout->big_endian)
		r = walk(&it, true, least, &info, ret_fault);
	else
		r = walk(&it, false, least, &info, ret_fault);
	if (r < 0)
		return r;
	*ret = info;
	return 0;
}

static void put_u32(uint8_t *p, bool big, uint32_t v)
{
	v = big ? htobe32(v) : htole32(v);
	memcpy(p, &v, sizeof(v));
}

static void put_head(uint8_t *p, bool big, uint32_t type, uint32_t delta)
{
	put_u32(p, big, big ? type << DELTA_BITS | delta : delta << 5 | type);
}

/* A time event */
static void put_time(uint8_t *p, bool big, uint32_t type, uint64_t time)
{
	put_head(p, big, type, (uint32_t)time & DELTA_MASK);
	put_u32(p + 4, big, (uint32_t)(time >> DELTA_BITS));
}

static uint64_t moved(const struct subbuf_move *move, uint64_t ts)
{
	return (move->rate ? time_rate_apply(move->rate, ts) : ts) + move->by;
}

/*
 * The time of an event: @ts was that of the one before, whose new one is @at. What was discarded
 * has to be some time behind it: else it would be the end.
 */
static void move_time(const struct subbuf_move *move, uint8_t *p, bool big, uint32_t type,
		      uint32_t delta, uint64_t *ts, uint64_t *at)
{
	const uint64_t time =
		(type >= TYPE_EXTEND ? (uint64_t)get_u32(p + 4, big) << DELTA_BITS : 0) + delta;
	uint64_t by;

	*ts = type == TYPE_STAMP ? (*ts & TS_TOP_BITS) | time : *ts + time;
	by = moved(move, *ts) - *at;
	if ((int64_t)by < (type == TYPE_PADDING))
		by = type == TYPE_PADDING;
	if (type < TYPE_EXTEND)
		by = MIN(by, (uint64_t)DELTA_MASK);
	*at += by;
	if (type >= TYPE_EXTEND)
		put_time(p, big, type, type == TYPE_STAMP ? *at & ~TS_TOP_BITS : by);
	else
		put_head(p, big, type, (uint32_t)by);
}

static void move_event(const struct subbuf_layout *layout, const struct subbuf_move *move,
		       uint8_t *data, uint32_t size)
{
	const bool big = layout->big_endian;
	uint32_t pid;
	uint16_t id;

	if (move->pid_at > 0 && size >= move->pid_at + sizeof(pid)) {
		pid = get_u32(data + move->pid_at, big);
		if (pid < SUBBUF_MOVE_PIDS)
			move->pids[pid / 8] |= (uint8_t)(1U << pid % 8);
	}
	if (!move->ids)
		return;
	id = move->ids[get_u16(data, big)];
	id = big ? htobe16(id) : htole16(id);
	memcpy(data, &id, sizeof(id));
}

int subbuf_move(const struct subbuf_layout *layout, void *bytes, const struct subbuf_move *move,
		struct subbuf_info *ret, struct subbuf_fault *ret_fault)
{
	const bool big = layout->big_endian;
	struct subbuf_info info;
	uint8_t *p = bytes;
	uint64_t ts, at;
	int r = subbuf_check(layout, bytes, NULL, &info, ret_fault);

	if (r != 0)
		return r;
	ts = info.header.timestamp;
	at = moved(move, ts);
	/* Every length has been seen to make sense */
	for (uint32_t pos = layout->data_offset, end = pos + info.header.commit; pos < end;) {
		uint32_t word = get_u32(p + pos, big), type = big ? word >> DELTA_BITS : word & 31;
		uint32_t delta = big ? word & DELTA_MASK : word >> 5, head = 4, length = 4;

		if (type == TYPE_PADDING && delta == 0)
			break;
		move_time(move, p + pos, big, type, delta, &ts, &at);
		if (type == TYPE_LENGTH) {
			head = 8;
			length = get_u32(p + pos + 4, big) - 4;
		} else if (type < TYPE_EXTEND) {
			length = type == TYPE_PADDING ? get_u32(p + pos + 4, big) : type * 4;
		}
		if (type < TYPE_PADDING)
			move_event(layout, move, p + pos + head, length);
		pos += head + length;
	}
	ts = moved(move, info.header.timestamp);
	ts = big ? htobe64(ts) : htole64(ts);
	memcpy(p, &ts, sizeof(ts));
	if (ret)
		*ret = info;
	return 0;
}

const char *subbuf_fault_text(const struct subbuf_fault *fault, char *buffer, size_t size)
{
	static const char *const texts[_SUBBUF_REASON_MAX] = {
		[SUBBUF_OK] = "nothing is wrong",
		[SUBBUF_COMMIT_TOO_LONG] =
			"a commit of %" PRIu32 " bytes is more than the sub-buffer holds",
		[SUBBUF_NO_TIMESTAMP] = "the sub-buffer has no timestamp",
		[SUBBUF_EVENT_CUT] =
			"the events end inside an event, after %" PRIu32 " bytes of it",
		[SUBBUF_EVENT_TOO_LONG] =
			"an event of %" PRIu32 " bytes runs past the end of the events",
		[SUBBUF_EVENT_TOO_SHORT] = "an event length of %" PRIu32 " is below the least, 8",
		[SUBBUF_EVENT_UNALIGNED] = "an event length of %" PRIu32 " is not a multiple of 4",
		[SUBBUF_EVENT_UNKNOWN] = "the file has no format for event id %" PRIu32,
		[SUBBUF_EVENT_SMALLER_THAN_FORMAT] =
			"an event of id %" PRIu32 " is shorter than its format says",
		[SUBBUF_TIME_BACKWARDS] = "time runs backwards",
	};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(buffer, size, texts[fault->reason], fault->value);
#pragma GCC diagnostic pop
	return buffer;
}
