/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The header of a sub-buffer as this kernel writes it: timestamp:u64 commit:long, see
 * formats/subbuf.h; the two top bits of commit's lower 32 are flags.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#define COMMIT_AT   8
#define DATA_AT	    (COMMIT_AT + sizeof(long))
#define COMMIT_MASK ((1UL << 30) - 1)
#define STORED	    (1UL << 30) /* the number of lost events, a long, follows the events */
#define MISSED	    (1UL << 31) /* events were lost before this sub-buffer */

/* Never 0 */
static inline uint64_t ring_header_time(const char *subbuf)
{
	uint64_t time;

	memcpy(&time, subbuf, sizeof(time));
	return time;
}

/* Bytes of events */
static inline uint32_t ring_header_commit(const char *subbuf)
{
	uint32_t commit;

	memcpy(&commit, subbuf + COMMIT_AT, sizeof(commit));
	return commit & (uint32_t)COMMIT_MASK;
}
