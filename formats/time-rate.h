/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What makes other times of those that a clock counts: cycles to nanoseconds, a guest's to its
 * host's. See formats/time-shift.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct time_rate {
	bool on; /* else times stay as they are */
	uint64_t scaling, offset;
	unsigned fraction, shift;
	uint32_t mult;
};

/* The same times, to be changed */
#define TIME_RATE_SAME ((struct time_rate){.on = true, .scaling = 1, .mult = 1})

static inline uint64_t time_rate_apply(const struct time_rate *rate, uint64_t ts)
{
	if (!rate->on)
		return ts;
	ts = (uint64_t)((unsigned __int128)ts * rate->scaling >> rate->fraction) + rate->offset;
	return (uint64_t)((unsigned __int128)ts * rate->mult >> rate->shift);
}

/**
 * time_rate_grows() - may two times be farther apart than before?
 */
bool time_rate_grows(const struct time_rate *rate);
