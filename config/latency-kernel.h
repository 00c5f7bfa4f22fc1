/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A condition with way=kernel as histogram triggers, which keep the beginning of what goes on, and
 * at its end make a synthetic event of how long it took (Documentation/trace/histogram.rst). Text
 * only: the kernel is not asked. No state, any thread.
 *
 * libtracefs has functions for such a pair of triggers, which this cannot use: those of 1.6 set
 * them in the top-level buffer only, call each variable anew at every start, have no CPU as key,
 * and know no wait that has several beginnings or is to be forgotten.
 */
#pragma once

#include "analysis/latency-config.h"
#include "basic/fault.h"
#include "recorder/trace-config.h"

#define LATENCY_KERNEL_TRIGGERS 8U /* at most, of a condition */

/**
 * latency_kernel_check() - can the kernel tell of this one?
 * Return: 0, or -EINVAL with @why.
 */
int latency_kernel_check(const struct latency_config *latency, struct fault *why);

/**
 * latency_kernel_event() - its synthetic event, as in trace_config.synthetic_events
 * @number: of the condition, from 1 on; in all names
 * Return: malloc'ed; NULL without memory.
 */
char *latency_kernel_event(const struct latency_config *latency, unsigned number);

/**
 * latency_kernel_filter() - which of these events are hits
 * Return: malloc'ed; NULL without memory.
 */
char *latency_kernel_filter(const struct latency_config *latency);

struct latency_kernel {
	const char *event; /* the name of the synthetic event */
	unsigned number;   /* as above */
	unsigned tasks;	   /* the size of histograms by task */
};

/**
 * latency_kernel_triggers() - in the order in which they must be set
 * @ret: [LATENCY_KERNEL_TRIGGERS]; undo each with trigger_done()
 * Return: how many, or -ENOMEM.
 */
int latency_kernel_triggers(const struct latency_config *latency,
			    const struct latency_kernel *kernel, struct trace_trigger *ret);
