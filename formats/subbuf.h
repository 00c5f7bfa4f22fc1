/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A sub-buffer, the page of ftrace's ring buffer, as the kernel hands it out and trace.dat keeps
 * it:
 *
 *   timestamp:u64  commit:long  data            (header_page tells where and how long)
 *   commit: bit 31 events were lost before this sub-buffer, bit 30 their number (a long) follows
 * the events, the rest: bytes of events
 *
 *   event: type_len:5 time_delta:27             (a u32; type_len in the low bits if little endian,
 *                                                in the high bits if big endian)
 *     0       length:u32, then length - 4 bytes of data
 *     1..28   type_len * 4 bytes of data
 *     29      time_delta 0: unused up to the end; else a discarded event: length:u32, length bytes
 *     30      high:u32: time_delta + (high << 27) goes on top of the time
 *     31      high:u32: time_delta + (high << 27) is the time, its 5 top bits are the last time's
 *
 * Sources: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c of Linux 6.18,
 * libtraceevent's kbuffer. Pure functions over bytes nobody vouches for; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/time-rate.h"

#define SUBBUF_EVENT_IDS  65536	     /* the type field of an event is 16 bits wide */
#define SUBBUF_UNKNOWN_ID UINT32_MAX /* in a table of least lengths: no such event */

struct subbuf_layout {
	uint32_t size;	      /* whole sub-buffer, bytes */
	uint32_t data_offset; /* where events begin */
	uint8_t commit_size;  /* 4 or 8: the kernel's long */
	bool big_endian;
};

/**
 * subbuf_layout_native() - of this kernel: timestamp:u64 commit:long, then events
 */
struct subbuf_layout subbuf_layout_native(uint32_t size);

struct subbuf_header {
	uint64_t timestamp;
	uint32_t commit;	/* bytes of events, from data_offset */
	bool missed;		/* events were lost between the sub-buffer before and this one */
	bool missed_stored;	/* and the kernel says how many: */
	uint64_t missed_events; /* 0 unless missed_stored */
};

struct subbuf_info {
	struct subbuf_header header;
	uint64_t events;   /* as a reader sees them: padding and time events do not count */
	uint64_t first_ts; /* of the first event; the header's if there is none */
	uint64_t last_ts;  /* of the last event; the header's if there is none */
};

enum subbuf_reason {
	SUBBUF_OK = 0,
	SUBBUF_COMMIT_TOO_LONG,
	SUBBUF_NO_TIMESTAMP,
	SUBBUF_EVENT_CUT,
	SUBBUF_EVENT_TOO_LONG,
	SUBBUF_EVENT_TOO_SHORT,
	SUBBUF_EVENT_UNALIGNED,
	SUBBUF_EVENT_UNKNOWN,
	SUBBUF_EVENT_SMALLER_THAN_FORMAT,
	SUBBUF_TIME_BACKWARDS,
	_SUBBUF_REASON_MAX,
};

struct subbuf_fault {
	enum subbuf_reason reason;
	uint32_t offset; /* from the start of the sub-buffer: the header field or the event at fault
			  */
	uint32_t value;	 /* the commit, event length or event id that is wrong */
};

enum {
	SUBBUF_E_EMPTY = 1, /* timestamp and commit are zero: never written */
};

/**
 * subbuf_layout_valid() - can sub-buffers of this shape exist: 4 or 8 byte commit at offset 8, data
 * behind it, size a multiple of 8 and at most 64 MiB
 */
bool subbuf_layout_valid(const struct subbuf_layout *layout);

/**
 * subbuf_header() - read and check the header alone
 * @bytes: layout->size bytes, any alignment
 * @ret: timestamp, commit, missed events
 * @ret_fault: where and why if -EBADMSG; may be NULL
 *
 * Cheap: reads the header, and the stored number of missed events. Recovery uses it to tell data
 * from preallocated, never written blocks, which read as zeros. Return: 0, SUBBUF_E_EMPTY, or
 * -EBADMSG: commit longer than the sub-buffer, or no timestamp.
 */
int subbuf_header(const struct subbuf_layout *layout, const void *bytes, struct subbuf_header *ret,
		  struct subbuf_fault *ret_fault);

/**
 * subbuf_check() - walk all events of a sub-buffer
 * @least: SUBBUF_EVENT_IDS entries: the least bytes of data an event of that id has, or
 *	SUBBUF_UNKNOWN_ID; NULL: do not look at ids
 * @ret: counts and times
 * @ret_fault: where and why if -EBADMSG
 *
 * Never reads outside the sub-buffer. Time must not run backwards inside it.
 * Return: 0, SUBBUF_E_EMPTY, or -EBADMSG.
 */
int subbuf_check(const struct subbuf_layout *layout, const void *bytes, const uint32_t *least,
		 struct subbuf_info *ret, struct subbuf_fault *ret_fault);

/**
 * subbuf_fault_text() - a fault in words, e.g. "commit of 5000 bytes is more than the sub-buffer
 * holds" Return: @buffer.
 */
const char *subbuf_fault_text(const struct subbuf_fault *fault, char *buffer, size_t size);

/**
 * subbuf_mark_missed() - say that an unknown number of events was lost before this sub-buffer
 */
void subbuf_mark_missed(const struct subbuf_layout *layout, void *bytes);

/**
 * subbuf_make_empty() - one without events
 * @timestamp: 0 makes one that was never written
 */
void subbuf_make_empty(const struct subbuf_layout *layout, void *bytes, uint64_t timestamp);

/* What becomes of the sub-buffers of a file that is put beside others */
struct subbuf_move {
	/* Times are changed by this first, by which they do not get farther apart
	 * (time_rate_grows()); NULL: not */
	const struct time_rate *rate;
	uint64_t by;	     /* nanoseconds later, modulo 2^64 */
	const uint16_t *ids; /* [SUBBUF_EVENT_IDS]: by id of an event its new one; NULL: the same */
	uint32_t pid_at;     /* in an event's data: its pid, 4 bytes; 0: nobody asks */
	uint8_t *pids;	     /* a bit for each that there is, of pids below SUBBUF_MOVE_PIDS */
};

#define SUBBUF_MOVE_PIDS (UINT32_C(1) << 22) /* PID_MAX_LIMIT of the kernel */

/**
 * subbuf_move() - other times and ids of events, in place
 * @ret: as subbuf_check() had it before; may be NULL
 * Return: as subbuf_check(); nothing has changed then, or has an event without time to change.
 */
int subbuf_move(const struct subbuf_layout *layout, void *bytes, const struct subbuf_move *move,
		struct subbuf_info *ret, struct subbuf_fault *ret_fault);

/* One event, for those who want the data: subbuf_iter_init, then subbuf_iter_next until it says 0
 */
struct subbuf_event {
	uint64_t ts;
	uint32_t offset;     /* of the event's first byte, from the start of the sub-buffer */
	const uint8_t *data; /* begins with the type id */
	uint32_t size;	     /* bytes of data, a multiple of 4 */
};

struct subbuf_iter {
	const struct subbuf_layout *layout;
	const uint8_t *bytes;
	struct subbuf_header header;
	uint32_t pos, end;
	uint64_t ts;
};

/**
 * subbuf_iter_init() - begin at the first event
 * @layout, @bytes: must outlive @ret
 * Return: as subbuf_header().
 */
int subbuf_iter_init(const struct subbuf_layout *layout, const void *bytes, struct subbuf_iter *ret,
		     struct subbuf_fault *ret_fault);

/**
 * subbuf_iter_next() - the next event
 * Return: 1 and @ret filled, 0 at the end, -EBADMSG and @ret_fault filled.
 */
int subbuf_iter_next(struct subbuf_iter *iter, struct subbuf_event *ret,
		     struct subbuf_fault *ret_fault);

/**
 * subbuf_iter_some() - the next events, @most of them, for those who want many
 * Return: how many, which is 0 at the end; -EBADMSG and @ret_fault filled if the next one is bad.
 */
int subbuf_iter_some(struct subbuf_iter *iter, struct subbuf_event *ret, unsigned most,
		     struct subbuf_fault *ret_fault);

#define SUBBUF_PICK_NUMBERS 1024U

enum subbuf_pick_by {
	SUBBUF_PICK_NONE,
	SUBBUF_PICK_ALL,
	SUBBUF_PICK_BY_NUMBER, /* those with a number that is wanted, or is too large to tell */
};

/* Which events somebody wants */
struct subbuf_pick {
	uint8_t ids[SUBBUF_EVENT_IDS]; /* enum subbuf_pick_by */
	uint32_t number_at;	       /* in an event's data: 4 bytes of SUBBUF_PICK_BY_NUMBER */
	uint8_t numbers[SUBBUF_PICK_NUMBERS]; /* by number: wanted? */
};

/**
 * subbuf_iter_pick() - as subbuf_iter_some(), without the events that nobody wants
 * They are passed by fast: that is all it is for. The first event behind a loss is always there.
 */
int subbuf_iter_pick(struct subbuf_iter *iter, const struct subbuf_pick *pick,
		     struct subbuf_event *ret, unsigned most, struct subbuf_fault *ret_fault);
