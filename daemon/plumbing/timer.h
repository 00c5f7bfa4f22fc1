/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timers of the event loop that go off once, in microseconds from now. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

/* Again, or at another time */
static inline int timer_rearm(sd_event_source *source, uint64_t usec)
{
	int r = sd_event_source_set_time_relative(source, usec);

	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The same; @source: NULL: there is none yet */
static inline int timer_arm(sd_event *event, sd_event_source **source, uint64_t usec,
			    sd_event_time_handler_t handler, void *userdata)
{
	return *source ? timer_rearm(*source, usec)
		       : sd_event_add_time_relative(event, source, CLOCK_MONOTONIC, usec, 0,
						    handler, userdata);
}
