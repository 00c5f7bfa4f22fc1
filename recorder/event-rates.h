/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How often events happen that an instance traces, or does not trace for now: counted for some
 * hundredths of a second in an instance of its own, which takes over its filters, tasks and CPUs.
 * So nothing of the instance itself is read or disturbed, in whatever way that is drained. A job:
 * any thread.
 */
#pragma once

#include "basic/fault.h"
#include "basic/macro.h"

struct event_rate {
	char *name; /* "SYSTEM:NAME" */
	double per_sec;
};

struct event_rates {
	struct event_rate *events;
	size_t n;
};

struct event_rates_order {
	int tracing_fd;	     /* the root of tracefs */
	int instance_fd;     /* the directory of the instance */
	const char *name;    /* of the instance to be made */
	char *const *events; /* "SYSTEM:NAME"; NULL: all that are enabled there */
};

/**
 * event_rates_measure() - count
 * An instance of that name that an earlier process left is removed. Events that have gone are left
 * out.
 * @ret: undo with event_rates_done()
 * Return: 0 or negative errno with @why.
 */
int event_rates_measure(const struct event_rates_order *order, struct event_rates *ret,
			struct fault *why);
void event_rates_done(struct event_rates *rates);

/**
 * event_rates_total() - how many events an instance has had: those that were overwritten, too
 * @instance_fd: its directory
 * Return: 0 or negative errno.
 */
int event_rates_total(int instance_fd, unsigned n_cpus, uint64_t *ret);

/**
 * event_rates_remove() - an instance that an earlier process left; none is fine
 */
int event_rates_remove(int tracing_fd, const char *name, struct fault *why);
