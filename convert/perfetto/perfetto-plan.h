/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an event of a format becomes in Perfetto's trace: a message that Perfetto knows, where it
 * makes tracks and states of such events; else one that is described in the trace itself, with all
 * fields. The main thread makes plans when it meets the first event; workers only read them.
 */
#pragma once

#include "decode/decoder.h"
#include "decode/field-value.h"
#include "decode/text.h"

#define PERFETTO_TYPED_MAX 64U /* kinds of events that Perfetto knows */

enum perfetto_kind {
	PERFETTO_SWITCH, /* into the columns of the bundle: fields as in enum below */
	PERFETTO_WAKING,
	PERFETTO_TYPED,	    /* a message that Perfetto knows */
	PERFETTO_DESCRIBED, /* one with a descriptor */
	PERFETTO_NAMED,	    /* each event with the names of its fields: too many for a descriptor */
};

enum {
	SWITCH_PREV_STATE,
	SWITCH_NEXT_COMM,
	SWITCH_NEXT_PID,
	SWITCH_NEXT_PRIO,
	WAKING_COMM = 0,
	WAKING_PID,
	WAKING_PRIO,
	WAKING_TARGET_CPU,
};

enum perfetto_form {
	FORM_PLAIN,    /* a number, or a string: arrays and masks as text */
	FORM_REPEATED, /* each number of an array */
	FORM_FUNCTION, /* an address whose symbol is in the interned data */
	FORM_POINTED,  /* the string that the kernel has there */
	FORM_PID,      /* a number that is a task, */
	FORM_CPU,      /* a CPU */
};

struct perfetto_field {
	struct field_value value;
	enum perfetto_form form;
	uint32_t number; /* in the message */
	uint32_t symbol; /* of another field, for the symbol at the address; 0: none */
};

struct perfetto_plan {
	enum perfetto_kind kind;
	const char *name;
	uint32_t number; /* of the message, in FtraceEvent */
	struct perfetto_field *fields;
	size_t n;
	uint32_t buffer; /* of a field for the ring buffer's name; 0: none */
	uint32_t header; /* of one for what the event says of itself, decode/event-header.h; 0: none
			  */
};

/**
 * perfetto_plan_typed() - how Perfetto knows such events
 * @ret: NULL: it does not, or has no more use for them than for any other
 * Return: 0 or -ENOMEM.
 */
int perfetto_plan_typed(const struct decoder *decoder, size_t format, struct perfetto_plan **ret);

/**
 * perfetto_plan_any() - with a descriptor, for any event
 * @format: -1: of an id without one, whose bytes are shown
 * @described: struct perfetto_events
 */
int perfetto_plan_any(const struct decoder *decoder, int32_t format, uint32_t id,
		      uint32_t described, struct perfetto_plan **ret);
struct perfetto_plan *perfetto_plan_free(struct perfetto_plan *plan);

/**
 * perfetto_plan_descriptor() - append a packet with it, for PERFETTO_DESCRIBED
 */
void perfetto_plan_descriptor(const struct perfetto_plan *plan, uint32_t cpu, struct text *out);
