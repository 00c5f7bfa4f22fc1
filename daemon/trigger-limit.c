/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/trigger-limit.h"

static bool begins_anew(const struct trigger_limit *limit, uint64_t interval_usec,
			uint64_t now_usec)
{
	return limit->admitted == 0 || now_usec - limit->begun_usec >= interval_usec;
}

bool trigger_limit_admit(struct trigger_limit *limit, unsigned burst, uint64_t interval_usec,
			 uint64_t now_usec)
{
	if (trigger_limit_wait(limit, burst, interval_usec, now_usec) > 0) {
		limit->refused++;
		return false;
	}
	if (begins_anew(limit, interval_usec, now_usec))
		*limit = (struct trigger_limit){.begun_usec = now_usec};
	limit->admitted++;
	return true;
}

void trigger_limit_give_back(struct trigger_limit *limit)
{
	if (limit->admitted > 0)
		limit->admitted--;
}

uint64_t trigger_limit_wait(const struct trigger_limit *limit, unsigned burst,
			    uint64_t interval_usec, uint64_t now_usec)
{
	if (burst == 0 || limit->admitted < burst || begins_anew(limit, interval_usec, now_usec))
		return 0;
	return limit->begun_usec + interval_usec - now_usec;
}
