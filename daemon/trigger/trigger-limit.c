/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/trigger/trigger-limit.h"

static bool is_quiet(const struct trigger_limit *limit, uint64_t interval_usec, uint64_t now_usec)
{
	return limit->taken == 0 || now_usec - limit->seen_usec >= interval_usec;
}

static uint64_t period(const struct trigger_limit *limit, uint64_t interval_usec)
{
	return MAX(limit->period_usec, interval_usec);
}

/* The next interval of a storm, with room for one, or of something that comes now and then */
static void begin_interval(struct trigger_limit *limit, uint64_t interval_usec, uint64_t now_usec)
{
	uint64_t longest = MAX(TRIGGER_BACKOFF_MAX, interval_usec);

	if (limit->refused > 0)
		limit->period_usec = MIN(2 * period(limit, interval_usec), longest);
	else
		limit->period_usec = 0;
	limit->begun_usec = now_usec;
	limit->admitted = limit->refused = 0;
}

bool trigger_limit_admit(struct trigger_limit *limit, unsigned burst, uint64_t interval_usec,
			 uint64_t now_usec)
{
	bool yes = trigger_limit_wait(limit, burst, interval_usec, now_usec) == 0;

	if (is_quiet(limit, interval_usec, now_usec))
		*limit = (struct trigger_limit){.begun_usec = now_usec};
	else if (yes && now_usec - limit->begun_usec >= period(limit, interval_usec))
		begin_interval(limit, interval_usec, now_usec);
	limit->seen_usec = now_usec;
	if (!yes) {
		limit->refused++;
		return false;
	}
	limit->admitted++;
	limit->taken++;
	return true;
}

void trigger_limit_give_back(struct trigger_limit *limit)
{
	if (limit->admitted > 0)
		limit->admitted--;
	if (limit->taken > 0)
		limit->taken--;
}

uint64_t trigger_limit_wait(const struct trigger_limit *limit, unsigned burst,
			    uint64_t interval_usec, uint64_t now_usec)
{
	uint64_t end = limit->begun_usec + period(limit, interval_usec);

	if (burst == 0 || limit->admitted < (limit->period_usec > 0 ? 1 : burst) ||
	    now_usec >= end || is_quiet(limit, interval_usec, now_usec))
		return 0;
	/* Nothing more comes: then it is over sooner */
	return MIN(end, limit->seen_usec + interval_usec) - now_usec;
}
