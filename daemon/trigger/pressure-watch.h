/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnPressure=: of the machine by a trigger of the kernel's (PSI), which wakes nobody while there is
 * none. Of a unit by a look at its control group twice in each window: for a trigger the file would
 * have to be writable, and with it, for the sandbox, all control groups. A unit may start later,
 * end, and be started again with another control group. Owner: the session's triggers. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "basic/fault.h"
#include "basic/macro.h"

struct pressure_watch;

struct pressure_watch_calls {
	/* @lines: which and how much, "KEY: VALUE"; NULL: no memory */
	void (*on_pressure)(void *userdata, const char *lines);
	/* @trouble: why it is not watched any more, or NULL: it is, again */
	void (*on_state)(void *userdata, const char *trouble);
	void *userdata;
};

/**
 * pressure_watch_new() - begin
 * @condition: as in OnPressure=, without "post="
 * Return: 0, also if the unit does not run: on_state() tells; or negative errno with @why, which
 * names the file and what this process or kernel lacks.
 */
int pressure_watch_new(sd_event *event, int64_t priority, const char *condition,
		       const struct pressure_watch_calls *calls, struct pressure_watch **ret,
		       struct fault *why);

/* NULL is fine */
void pressure_watch_free(struct pressure_watch *watch);

DEFINE_CLEANUP(struct pressure_watch *, pressure_watch_free)
