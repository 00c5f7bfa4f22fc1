/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests that make files: an event that is there already, where the product writes it in place.
 */
#pragma once

#include <string.h>

#include "writer/event-file.h"

/* Not inline: gcc would complain of sizes that are refused */
static __attribute__((noinline)) int event_file_add(struct event_file *file, unsigned cpu,
						    uint64_t ts, const void *data, size_t size)
{
	void *at;
	int r = event_file_reserve(file, cpu, ts, size, &at);

	if (r >= 0)
		memcpy(at, data, size);
	return r;
}
