/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnLatency= with way=kernel: an instance of its own with histogram triggers, in which the kernel
 * makes an event of each wait that was too long. Nothing of what they look at gets into a ring
 * buffer for that, and nobody wakes up until it happens. It is told when it ends. Owner: the
 * session's triggers. Main thread.
 */
#pragma once

#include "daemon/trigger/event-watch.h"

struct kernel_latency;

struct kernel_latency_calls {
	/* as in struct event_watch_calls; @condition: in the list */
	void (*on_event)(void *userdata, size_t condition, const struct event_hit *first,
			 uint64_t more);
	struct event_pause (*pause)(void *userdata);
	/* It had to begin anew, and could not: free it */
	void (*on_failure)(void *userdata, const struct fault *why);
	void *userdata;
};

/**
 * kernel_latency_new() - make the instance; what an earlier process left is removed
 * @instance: the session's, whose synthetic events these are
 * @conditions: OnLatency= with way=kernel, checked, each once
 * Return: 0, or negative errno with @why: what the kernel lacks or refused.
 */
int kernel_latency_new(const char *instance, char *const *conditions, struct kernel_latency **ret,
		       struct fault *why);

/**
 * kernel_latency_start() - call from now on; @calls is the caller's
 */
int kernel_latency_start(struct kernel_latency *latency, sd_event *event, int64_t priority,
			 const struct kernel_latency_calls *calls, struct fault *why);

/**
 * kernel_latency_check() - as event_watch_check()
 */
int kernel_latency_check(struct kernel_latency *latency, struct fault *why);

/* Remove it all. NULL is fine. */
int kernel_latency_free(struct kernel_latency *latency, struct fault *why);

/* What an earlier process left of session's @instance; none is fine */
int kernel_latency_remove_stray(const char *instance, struct fault *why);
