/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecd tells those who follow a session's live file, over the socket that OpenTail hands
 * out (SOCK_SEQPACKET, native byte order; org.flyrec.Recorder1(5) describes it for others):
 *
 *   TAIL_SEGMENT, with a descriptor   the file that is written from now on; the one before is
 *                                     complete: its sizes are those in its table
 *   TAIL_ROUND                        everything that was traced before the round before this one
 *                                     ended is in the files
 *   TAIL_END                          nothing more comes
 *
 * A packet of any content in the other direction says that the reader has come to the segment it
 * was told of last, and may be told of the next; until then those that begin are counted as
 * skipped.
 *
 * Why rounds: the CPUs' ring buffers are emptied one after the other, so that the files may hold an
 * event of one CPU and not yet an earlier one of another. In a round every CPU is asked for all it
 * has. What was in the files before a round began is older than that moment, and what is older than
 * that moment is in the files when the round is over: so after each round the events up to the
 * newest one that was there at the end of the round before are complete, whatever the clock.
 *
 * Plain values.
 */
#pragma once

#include <stdint.h>

#define TAIL_CPUS_MAX 8192U /* more than any kernel has */
#define TAIL_BEHIND   1U    /* in a size: the CPU had more to give than this round took */

enum tail_type {
	TAIL_SEGMENT = 1,
	TAIL_ROUND = 2,
	TAIL_END = 3,
};

enum tail_end {
	TAIL_END_STOPPED = 1, /* all there was is in the file */
	TAIL_END_LEFT,	      /* it goes on in the kernel, and another flyrecd is to take it up */
};

struct tail_message {
	uint32_t type;
	uint32_t n_cpus;  /* of sizes; 0 but for TAIL_ROUND */
	uint64_t segment; /* its number, counted from 1; TAIL_END: an enum tail_end */
	uint64_t skipped_segments, skipped_bytes; /* TAIL_SEGMENT: before it; TAIL_ROUND: the second
						     is the session's clock when the round began, in
						     nanoseconds, or 0 */
	uint64_t sizes[]; /* bytes of each CPU in the file; whole sub-buffers, so that bits are free
			   */
};
