/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnEvent=, and OnLatency= with way=kernel: a small instance of its own that traces just these
 * events, so that the event loop wakes up when one happens, on any kernel. Nothing wakes up while
 * none does; after a wake-up it is deaf for a while, so that a storm of events costs no more than
 * reading a few sub-buffers now and then. Owner: the session's triggers. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/fault.h"
#include "decode/event-text.h"
#include "formats/subbuf.h"
#include "recorder/trace-config.h"

struct event_watch;

/* The first of an event in what was read at once */
struct event_hit {
	uint64_t time_usec; /* realtime */
	const char *lines;  /* which, where, who: "KEY: VALUE" lines; may be NULL */
};

/*
 * How to go on; microseconds to be deaf. @storm: an event has no snapshot coming for a while: so it
 * is looked at now and then, until nothing has come.
 */
struct event_pause {
	uint64_t usec;
	bool storm;
};

struct event_watch_setup {
	const char *name;		      /* of the instance */
	char *const *events;		      /* as in OnEvent=, each event once */
	const struct trace_trigger *triggers; /* set in the instance: what makes these events; they
						 stay the caller's, as long as it watches */
	size_t n_triggers;
	bool adopt; /* there may be an instance, made for the same: what happened since then is not
		       lost */
};

struct event_watch_calls {
	/* @index: in the list of events; @first: NULL: @more events were overwritten before they
	 * were read */
	void (*on_event)(void *userdata, size_t index, const struct event_hit *first,
			 uint64_t more);
	/* What is to be said of one: event_hit.lines; NULL: it is none of ours. No such call: as
	 * event_text_describe() has it. */
	char *(*describe)(void *userdata, size_t index, struct event_text *text, unsigned cpu,
			  const struct subbuf_event *event);
	/* asked after events, and when the pause is over (0: listen again) */
	struct event_pause (*pause)(void *userdata);
	void *userdata;
};

/**
 * event_watch_new() - make the instance, or take over what an earlier process made
 * @setup: borrowed for this call, but for the triggers
 * Return: 0, or negative errno with @why: what the kernel refused, with its error_log.
 */
int event_watch_new(const struct event_watch_setup *setup, struct event_watch **ret,
		    struct fault *why);

/**
 * event_watch_free() - @keep: the instance goes on tracing for the next process; NULL is fine
 */
int event_watch_free(struct event_watch *watch, bool keep, struct fault *why);

/**
 * event_watch_start() - call from now on, with the priority given
 */
int event_watch_start(struct event_watch *watch, sd_event *event, int64_t priority,
		      const struct event_watch_calls *calls, struct fault *why);

/**
 * event_watch_has() - has this kernel the event?
 */
bool event_watch_has(const struct event_watch *watch, size_t index);

/**
 * event_watch_count() - in a storm: have the events counted that have happened until now
 */
void event_watch_count(struct event_watch *watch);

/**
 * event_watch_flush() - have all events told that have happened until now
 */
void event_watch_flush(struct event_watch *watch);

/* The instance's directory, borrowed */
int event_watch_dir_fd(const struct event_watch *watch);

/**
 * event_watch_check() - has somebody meddled with the instance? Repairs it
 * Return: an enum instance_health (see recorder/instance.h) with @why, or negative errno.
 * INSTANCE_GONE: make another one.
 */
int event_watch_check(struct event_watch *watch, struct fault *why);
