/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The triggers of a session, for the modules that make them. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/trigger/trigger.h"

struct event_watch;

struct pressure_source {
	struct session *session;
	size_t index; /* in the list of triggers */
	int fd;
	sd_event_source *source;
};

struct triggers {
	struct trigger *items;
	size_t n;
	size_t first_event; /* in items, as many as: */
	char **events;	    /* as watched: each event once */
	struct event_watch *watch;
	struct pressure_source *pressures;
	size_t n_pressures;
	bool armed;
	uint64_t counted_usec; /* monotonic */
};

/* trigger.c: ask for the snapshot, and count. @usec: realtime, 0: now */
void trigger_fire(struct session *session, struct trigger *trigger, const char *detail,
		  uint64_t usec);
/* @why: NULL: it is available. Logged when it is new. */
int trigger_set_unavailable(struct session *session, struct trigger *trigger, const char *why);

/* trigger-event.c: make the instance or take it over; begin to listen; let go */
int trigger_open_events(struct session *session, struct fault *why);
int trigger_start_events(struct session *session, struct fault *why);
void trigger_close_events(struct session *session, bool keep);
