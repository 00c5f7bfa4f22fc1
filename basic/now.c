/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/now.h"
#include "basic/macro.h"

uint64_t now_nsec(clockid_t clock)
{
	struct timespec now = {};

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

uint64_t now_usec(clockid_t clock)
{
	return now_nsec(clock) / NSEC_PER_USEC;
}

uint64_t timespec_usec(struct timespec time)
{
	return (uint64_t)time.tv_sec * USEC_PER_SEC + (uint64_t)time.tv_nsec / NSEC_PER_USEC;
}
