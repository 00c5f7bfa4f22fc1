/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "basic/macro.h"
#include "formats/trace-clock.h"

/* "uptime" counts hundredths of a second */
bool trace_clock_counts_time(const char *clock)
{
	static const char *const names[] = {"local",	"global", "perf", "mono",
					    "mono_raw", "boot",	  "tai"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(clock, names[i]) == 0)
			return true;
	return false;
}

bool trace_clock_goes_on_asleep(const char *clock)
{
	return strcmp(clock, "boot") == 0 || strcmp(clock, "tai") == 0;
}

uint64_t trace_clock_nsec(uint64_t usec, int64_t date_usec)
{
	int64_t clock = (int64_t)MIN(usec, (uint64_t)INT64_MAX / 2) - date_usec;

	if (clock <= 0)
		return 0;
	return (uint64_t)clock > UINT64_MAX / NSEC_PER_USEC ? UINT64_MAX
							    : (uint64_t)clock * NSEC_PER_USEC;
}
