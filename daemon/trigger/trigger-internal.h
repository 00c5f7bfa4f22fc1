/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The list of triggers, for trigger.c, which owns it, and trigger-event.c, which is the part of it
 * that is about the instance of OnEvent=. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/trigger/trigger.h"

struct event_watch;

struct pressure_source {
	struct triggers *triggers;
	size_t index; /* in the list of triggers */
	int fd;
	sd_event_source *source;
};

struct triggers {
	sd_event *event;
	const char *name; /* of the session */
	const struct trigger_host *host;
	void *userdata;
	unsigned burst; /* as configured, and: */
	uint64_t interval_usec;
	struct trigger *items;
	size_t n;
	size_t first_event; /* in items, as many as: */
	char **events;	    /* as watched: each event once */
	struct event_watch *watch;
	struct pressure_source *pressures;
	size_t n_pressures;
	bool armed;
	bool gone;	       /* the instance is, and is to be made again */
	uint64_t counted_usec; /* monotonic */
};

/* trigger.c: ask for the snapshot, and count. @usec: realtime, 0: now */
void trigger_fire(struct triggers *triggers, struct trigger *trigger, const char *detail,
		  uint64_t usec);
/* @why: NULL: it is available. Logged when it is new. */
int trigger_set_unavailable(struct triggers *triggers, struct trigger *trigger, const char *why);

/* trigger-event.c: make the instance or take it over; begin to listen; let go */
int trigger_open_events(struct triggers *triggers, const char *instance, char *const *watched,
			struct fault *why);
int trigger_start_events(struct triggers *triggers, struct fault *why);
void trigger_close_events(struct triggers *triggers, bool keep);
