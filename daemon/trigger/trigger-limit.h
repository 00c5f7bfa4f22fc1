/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Burst= and IntervalSec=: how many snapshots a trigger gets. An interval begins with the first
 * trigger after the one before has ended. A trigger that goes on after its burst is a storm: it
 * gets one more when the interval is over, and then one each time after twice the time, up to an
 * hour. The storm has ended when nothing has come for an interval. Pure functions over a plain
 * value.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

#define TRIGGER_BACKOFF_MAX (60 * 60 * USEC_PER_SEC)

struct trigger_limit {
	uint64_t begun_usec;  /* when the interval began, any clock that does not go back */
	uint64_t period_usec; /* of a storm: how long until the next one; 0: it is none */
	uint64_t seen_usec;   /* the last one, let through or not */
	unsigned admitted;    /* in the interval */
	unsigned refused;     /* likewise */
	unsigned taken; /* since nothing had come for an interval: 1 is the first of a storm */
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
