/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What events at a rate cost: CPU time of the traced tasks and of the recorder, and room. Pure
 * functions.
 */
#pragma once

#include <stdint.h>

/* A second */
struct cost_rate {
	double events, bytes;
};

/* What does not depend on the rate */
struct cost_base {
	unsigned cpus;
	double event_nsec; /* 0: not known */
	double byte_nsec;  /* of the recorder's CPU time */
	/* of a recording session: bytes of its segments, and what compressed ones took before and
	 * take; 0: none, or not known */
	uint64_t max_use, raw_bytes, packed_bytes;
	double holds_bytes; /* in the ring buffers of a flight session, else 0 */
};

struct cost {
	double tracing, recorder; /* share of the machine's CPU time, 1 is all of it */
	uint64_t history_usec;	  /* so long the room lasts; 0: not known, or for ever */
};

/**
 * cost_of() - what it costs at a rate
 */
struct cost cost_of(const struct cost_base *base, const struct cost_rate *rate);

/**
 * cost_without() - what is saved if events of this rate are left out of that rate
 * The history that is gained is 0 if nothing would be left.
 */
struct cost cost_without(const struct cost_base *base, const struct cost_rate *all,
			 const struct cost_rate *left_out);

/* CPU time of the recorder for a byte of a session */
struct cost_recorder {
	uint64_t cpu_usec, bytes;	  /* of the threads that drain it, and what they moved */
	uint64_t other_usec, other_bytes; /* of all other threads, and all sessions together */
};

/**
 * cost_byte_nsec() - by the session's own threads, and its share of what the others do
 */
double cost_byte_nsec(const struct cost_recorder *recorder);
