/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Burst= and IntervalSec=: how many triggers of a session get a snapshot. An interval begins with
 * the first trigger after the one before has ended. Pure functions over a plain value.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

struct trigger_limit {
	uint64_t begun_usec; /* when the interval began, any clock that does not go back */
	unsigned admitted;   /* in it */
	unsigned refused;
};

/**
 * trigger_limit_admit() - may this one have a snapshot?
 * @burst: so many in each interval; 0: no limit
 * @interval_usec: 0: no limit
 * Return: true, and it is counted as one that has; or false, and it is counted as refused.
 */
bool trigger_limit_admit(struct trigger_limit *limit, unsigned burst, uint64_t interval_usec,
			 uint64_t now_usec);

/**
 * trigger_limit_give_back() - one that was let through has come to nothing, and does not count
 */
void trigger_limit_give_back(struct trigger_limit *limit);

/**
 * trigger_limit_wait() - how long until one would be let through
 * Return: microseconds, 0: now.
 */
uint64_t trigger_limit_wait(const struct trigger_limit *limit, unsigned burst,
			    uint64_t interval_usec, uint64_t now_usec);
