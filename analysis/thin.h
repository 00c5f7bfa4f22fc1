/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leave out switches and wake-ups of a CPU that can neither begin nor end a wait as long as
 * somebody wants: for those who look for long waits only, among many short ones. Of the events of
 * one CPU within less than that time a task's first one, its first switch-in, its last switch-out
 * and its last one are enough. What ends a long wait is the task's first event there, or its first
 * switch-in where it was woken although it was runnable; what begins one is its last event, or the
 * switch-out before that; and the last ones say in which state the task is.
 *
 * Not for those who want to know what runs on a CPU at any time, or how often something was waited
 * for. One thread.
 */
#pragma once

#include "analysis/known-events.h"

#define THIN_TASKS 256U /* a power of two; of more tasks at a time some events more are kept */

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
 * thin_events() - leave out what does not matter
 * @thin: struct thin; as event_stream_config.thin
 * @events: of one CPU in a row, none lost between them; the first one is kept
 * Return: how many are left, from the beginning of @events on.
 */
unsigned thin_events(void *thin, struct subbuf_event *events, unsigned n);
