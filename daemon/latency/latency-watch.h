/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnLatency=: a process that looks at what a session records (latency-process.h), begun anew when
 * it has ended. Owner: the session's triggers. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "daemon/latency/latency-process.h"

struct latency_watch;

struct latency_watch_calls {
	/* Open what the process needs. Return: 0, -EAGAIN: not now, or negative errno with @why. */
	int (*open)(void *userdata, struct latency_feed *ret, struct fault *why);
	/* A condition, by its index, is fulfilled. @usec: realtime; @lines: "KEY: VALUE" lines, the
	 * first one says it in a sentence */
	void (*on_hit)(void *userdata, size_t condition, uint64_t usec, const char *lines);
	/* It was so more often, in a storm: nobody looked at the units of these */
	void (*on_left_out)(void *userdata, size_t condition, uint32_t n);
	/* NULL: it watches from now on; else why it does not */
	void (*on_state)(void *userdata, const char *why);
	void *userdata;
};

/**
 * latency_watch_new() - begin soon
 * @conditions: as in OnLatency=, checked
 * Return: 0 or negative errno.
 */
int latency_watch_new(sd_event *event, int64_t priority, char *const *conditions,
		      const struct latency_watch_calls *calls, struct latency_watch **ret);

/**
 * latency_watch_anew() - begin anew soon: what went on until now may have ended without a trace
 */
void latency_watch_anew(struct latency_watch *watch);

/* End it. NULL is fine. */
struct latency_watch *latency_watch_free(struct latency_watch *watch);
DEFINE_CLEANUP(struct latency_watch *, latency_watch_free)
