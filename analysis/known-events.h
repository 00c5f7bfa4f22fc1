/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's events that analysis understands, and where their fields are in the events of one
 * file: looked up once, so that reading one is a load. Constant once made; any thread.
 */
#pragma once

#include <endian.h>
#include <string.h>

#include "decode/decoder.h"
#include "formats/subbuf.h"

enum known_event {
	KNOWN_NOT,
	KNOWN_SWITCH,
	KNOWN_WAKING,
	KNOWN_WAKEUP,
	KNOWN_WAKEUP_NEW,
	KNOWN_MIGRATE,
	KNOWN_STACK,
	KNOWN_IRQ_ENTRY,
	KNOWN_IRQ_EXIT,
	KNOWN_SOFTIRQ_ENTRY,
	KNOWN_SOFTIRQ_EXIT,
	KNOWN_BLOCK_ISSUE,
	KNOWN_BLOCK_COMPLETE,
	KNOWN_RAW_ENTER,
	KNOWN_RAW_EXIT,
	KNOWN_CALL_ENTER, /* of a system call that has events of its own */
	KNOWN_CALL_EXIT,
	KNOWN_OOM,
	_KNOWN_MAX,
};

/* Fields, by what they are in the table of known-events.c */
enum {
	SWITCH_PREV_PID = 0,
	SWITCH_PREV_STATE,
	SWITCH_NEXT_PID,
	SWITCH_PREV_COMM,
	SWITCH_NEXT_COMM,
	SWITCH_NEXT_PRIO,
	SWITCH_PREV_PRIO,

	WAKE_PID = 0,
	WAKE_CPU,
	WAKE_COMM,

	MIGRATE_PID = 0,
	MIGRATE_CPU,

	STACK_CALLERS = 0,

	IRQ_NUMBER = 0,
	IRQ_NAME, /* of an entry */

	SOFTIRQ_VECTOR = 0,

	BLOCK_DEVICE = 0,
	BLOCK_SECTOR,
	BLOCK_SECTORS,
	BLOCK_KIND,

	SYSCALL_NUMBER = 0,

	OOM_PID = 0,
	OOM_COMM,

	KNOWN_FIELDS = 7,
};

struct known_events {
	const struct decoder *decoder;
	uint8_t event[SUBBUF_EVENT_IDS]; /* enum known_event by id */
	/* size 0: the file's events have no such field */
	struct field fields[_KNOWN_MAX][KNOWN_FIELDS];
};

/**
 * known_events_find() - look them up in a file
 * An event that lacks a field which is needed is none of them.
 */
void known_events_find(struct known_events *known, const struct decoder *decoder);

/**
 * known_events_named() - which one has this name; KNOWN_NOT: none
 * @event: "SYSTEM:NAME"
 */
enum known_event known_events_named(const char *event);

/**
 * known_events_name() - "SYSTEM:NAME", for people; "syscalls" for those of single system calls
 */
const char *known_events_name(enum known_event event);

/**
 * known_number() - a number of the event, 0 beyond its end
 */
static inline uint64_t known_number(const struct field *field, const struct decode_event *event)
{
	const uint8_t *p = event->data + field->offset;

	if (event->size < field->offset + (uint64_t)field->size)
		return 0;
	if (field->size == 4) {
		uint32_t v;

		memcpy(&v, p, sizeof(v));
		return event->big_endian ? be32toh(v) : le32toh(v);
	}
	if (field->size == 1)
		return *p;
	if (field->size == 8) {
		uint64_t v;

		memcpy(&v, p, sizeof(v));
		return event->big_endian ? be64toh(v) : le64toh(v);
	}
	return field_number(field, event);
}
