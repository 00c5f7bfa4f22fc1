/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Readings of the machine's clocks, in flyrec's own section of a trace.dat: by which a time of its
 * events can be told in another clock's, and how well the wall clock was kept.
 *
 *   clock[32] boot_id[16] record_size:u32 (64) n:u32 (room for records) zero[8]
 *   n times: realtime:u64 trace:u64 mono_raw:u64 boot:u64 width:u32 maxerror:u32 status:u32 tai:s32
 *            at:u32 flags:u32 sequence:u32 checksum:u32 (of the 60 bytes before it); or zeros
 *
 * A record is written by itself, and never moved. The first half of the room is for the first ones;
 * the other half is filled in turn, so that it has the newest: what goes when it is full is from
 * the middle.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWN_CLOCKS_HEAD	  64U
#define OWN_CLOCKS_RECORD 64U
#define OWN_CLOCKS_MAX	  60U /* with the heads a block of a disk */
#define OWN_CLOCKS_SIZE	  (OWN_CLOCKS_HEAD + OWN_CLOCKS_MAX * OWN_CLOCKS_RECORD)

/* What a reading was made for */
enum own_clock_at {
	OWN_CLOCK_BEGIN = 1, /* of the file, or another process goes on with it */
	OWN_CLOCK_END,
	OWN_CLOCK_STEP, /* the wall clock was set, or the machine was suspended */
	OWN_CLOCK_SNAPSHOT,
};

enum {
	OWN_CLOCK_NO_TRACE = 1,	 /* the trace's clock counts no time: trace is 0 */
	OWN_CLOCK_NO_STATUS = 2, /* adjtimex(2) may not be asked: neither status nor maxerror */
};

struct own_clock {
	uint64_t realtime, trace, mono_raw, boot; /* nanoseconds; trace by the file's clock */
	uint32_t width;	   /* nanoseconds from the first to the last of these readings */
	uint32_t maxerror; /* of realtime, microseconds, as adjtimex(2) has it */
	uint32_t status;   /* likewise: STA_… */
	int32_t tai;	   /* seconds that TAI is ahead of UTC; 0: the kernel was not told */
	uint32_t at;	   /* an enum own_clock_at */
	uint32_t flags;
	uint32_t sequence; /* from 1 on, in the order in which they were added */
};

struct own_clocks {
	char clock[32];	     /* name of the trace's clock, as in Clock= */
	uint8_t boot_id[16]; /* of the boot that all readings are of; 0: not known */
	uint32_t sequence;   /* of the newest one; 0: there is none */
	struct own_clock slots[OWN_CLOCKS_MAX]; /* sequence 0: empty */
};

/**
 * own_clocks_init() - no readings yet
 */
void own_clocks_init(struct own_clocks *clocks, const char *clock, const uint8_t boot_id[16]);

/**
 * own_clocks_add() - one more reading, in the place of one from the middle if there are many
 * Return: the slot that it is in, with its sequence.
 */
unsigned own_clocks_add(struct own_clocks *clocks, const struct own_clock *reading);

/**
 * own_clocks_list() - in the order in which they were added
 * @ret: OWN_CLOCKS_MAX of them
 * Return: how many there are.
 */
size_t own_clocks_list(const struct own_clocks *clocks, const struct own_clock **ret);

/**
 * own_clocks_put() - as in the file
 * own_clocks_put_record() - one of them, which is at OWN_CLOCKS_HEAD + SLOT * OWN_CLOCKS_RECORD
 */
void own_clocks_put(const struct own_clocks *clocks, bool big_endian,
		    uint8_t bytes[static OWN_CLOCKS_SIZE]);
void own_clocks_put_record(const struct own_clock *reading, bool big_endian,
			   uint8_t bytes[static OWN_CLOCKS_RECORD]);

/**
 * own_clocks_take() - from a file, of any size
 * @told: hears where a record does not match its checksum: bytes from the beginning; or NULL
 * Return: 0, or -EBADMSG: nothing of it can be read.
 */
int own_clocks_take(const uint8_t *bytes, size_t size, bool big_endian, struct own_clocks *ret,
		    void (*told)(void *userdata, size_t at), void *userdata);

/* What an enum own_clock_at is called: "begin"; "?" if it is none */
const char *own_clock_at_name(uint32_t at);
