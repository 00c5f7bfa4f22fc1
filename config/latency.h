/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions on how long something takes, as text. Whether there are such events and fields only a
 * recording or a kernel can tell: that is not checked here. No state, any thread.
 *
 *	runqueue|blocked|irq|softirq TIME [task=NAME] [unit=UNIT]
 *	block TIME [dev=MAJOR:MINOR]
 *	syscall NAME TIME [task=NAME] [unit=UNIT]
 *	SYSTEM:EVENT SYSTEM:EVENT key=FIELD[,FIELD] TIME
 * each with way=kernel|user: who looks for it; latency-kernel.h has what the kernel needs
 */
#pragma once

#include "analysis/latency-config.h"
#include "basic/fault.h"
#include "recorder/trace-config.h"

/**
 * latency_parse() - a condition
 * @needs_time: it is a trigger's, which may end with post=TIME; else TIME may be missing, which
 *makes
 *	@ret->nsec 0
 * @ret: undo with latency_done()
 * Return: 0, -EINVAL with @why set, or -ENOMEM.
 */
int latency_parse(const char *text, bool needs_time, struct latency_config *ret, struct fault *why);

/**
 * latency_format() - as latency_parse() reads it
 * @nsec: whole microseconds; 0: without a time
 * Return: malloc'ed; NULL without memory.
 */
char *latency_format(const struct latency_config *latency, uint64_t nsec);
void latency_done(struct latency_config *latency);

/**
 * latency_add_events() - what a condition takes beside what is traced anyway
 * @added: gets each event, SYSTEM:NAME, that was not in @trace; of a system call with a filter
 * Return: 0, -EINVAL with @why: Event= filters what may not be filtered; or -ENOMEM.
 */
int latency_add_events(const struct latency_config *latency, struct trace_config *trace,
		       char ***added, struct fault *why);
