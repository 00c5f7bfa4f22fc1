/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Drops switches and wake-ups that can neither begin nor end a long wait, for those who look for
 * long waits only: most waits are much shorter. Of the events that one CPU has within less than the
 * limit four for each task are enough: its first one, its first switch-in, its last switch-out, its
 * last one. A long wait ends with the task's first event there, or with its first switch-in if it
 * was woken while it was runnable; it begins with the last event, or with the switch-out before
 * that; and the last ones tell the task's state.
 *
 * Not for those who need to know what runs on a CPU at any time, or how often tasks wait. One
 * thread.
 */
#pragma once

#include "analysis/known-events.h"

#define THIN_TASKS 256U /* a power of two; with more tasks at a time some more events are kept */

/* One of the present events' tasks */
struct thin_task {
	uint32_t pid;
	uint32_t turn; /* which call of thin_events() it belongs to */
	uint8_t last, last_out;
	bool in;
};

struct thin {
	uint64_t nsec;				/* 0: all events are kept */
	uint16_t on_switch, on_waking;		/* their ids */
	uint32_t prev_pid, next_pid, woken_pid; /* where they are */
	uint32_t switch_size, waking_size;	/* at least, or the events are kept */
	uint32_t turn;
	struct thin_task tasks[THIN_TASKS];
};

/**
 * thin_init() - for the events of a file
 * @known: those that are looked at; others are kept
 * @nsec: shorter waits do not matter
 */
void thin_init(struct thin *thin, const struct known_events *known, uint64_t nsec);

/**
 * thin_events() - drop what does not matter
 * @thin: struct thin; as event_stream_config.thin
 * @events: of one CPU in a row, none lost between them; the first one is kept
 * Return: how many are left, from the beginning of @events on.
 */
unsigned thin_events(void *thin, struct subbuf_event *events, unsigned n);
