/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The event that the kernel made of a hit (config/latency-kernel.h), as latency-process.h has it.
 * No state, any thread.
 */
#pragma once

#include "analysis/latency-config.h"
#include "daemon/latency/latency-process.h"
#include "decode/event-text.h"
#include "formats/subbuf.h"

/**
 * latency_event_read() - what the event says; a field that it lacks counts as 0
 * @text: has been told of this event
 * @ret: condition and at_usec are left 0
 */
void latency_event_read(const struct latency_config *c, struct event_text *text, unsigned cpu,
			const struct subbuf_event *event, struct latency_message *ret);
