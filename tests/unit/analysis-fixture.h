/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The formats of events that analysis knows, and events of them, for tests: as bytes for pages of a
 * trace.dat.
 */
#pragma once

#include "tests/unit/craft-formats.h"

#define FIXTURE_FORMATS 17

enum {
	ID_STACK = 5,
	ID_SWITCH = 10,
	ID_WAKING,
	ID_WAKEUP,
	ID_WAKEUP_NEW,
	ID_MIGRATE,
	ID_IRQ_ENTRY = 20,
	ID_IRQ_EXIT,
	ID_SOFTIRQ_ENTRY,
	ID_SOFTIRQ_EXIT,
	ID_ISSUE = 30,
	ID_COMPLETE,
	ID_RAW_ENTER = 40,
	ID_RAW_EXIT,
	ID_CALL_ENTER,
	ID_CALL_EXIT,
	ID_OTHER,
	ID_OOM = 50,
};

/* "ftrace" first */
extern const struct craft_format fixture_formats[FIXTURE_FORMATS];

/* Data of an event from the id on; @by: common_pid. Tasks are called "tPID". */
void fixture_switch(struct craft *c, int prev, uint64_t state, int next);
void fixture_wake(struct craft *c, unsigned id, int by, int pid, int cpu);
void fixture_flags(struct craft *c, size_t event, uint8_t flags);
/* an id and what follows the common fields, 4 bytes each */
void fixture_numbers(struct craft *c, unsigned id, int by, const uint32_t *numbers, size_t n);

/* As an event of a page, @delta after the one before */
void fixture_put(struct craft *page, uint32_t delta, const struct craft *event);
