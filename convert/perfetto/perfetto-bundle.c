/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/perfetto/perfetto-bundle.h"
#include "convert/perfetto/perfetto-proto.h"
#include "convert/perfetto/perfetto-wire.h"
#include "decode/event-header.h"

#define COMM_SIZE  16U
#define SEEN_SLOTS 1024U /* a power of two */
#define SEEN_MAX   768U	 /* names and symbols of a bundle; further ones are written again */

/* What of a bundle is there already: names of tasks, and addresses with a symbol */
struct seen {
	struct {
		uint64_t key[2];
		uint32_t index;
		uint32_t bundle; /* serial: of an earlier one it is free */
	} slots[SEEN_SLOTS];
	uint32_t bundle;
	uint32_t n;
};

struct bundle {
	uint32_t cpu;
	bool lost;
	struct text events;			     /* fields of the bundle */
	struct text columns[SCHED_WAKING_FLAGS + 1]; /* packed numbers, by their field */
	struct text comms;			     /* fields with the names */
	uint32_t n_comms;
	uint64_t last_switch, last_waking;
	struct text symbols; /* fields of the interned data */
	struct seen seen;
};

/* The events of one CPU and ring buffer, by their indexes */
struct chain {
	uint32_t first, last; /* plus 1; 0: there are none */
};

struct perfetto_bundles {
	const struct perfetto_events *events;
	const struct decoder_facts *facts;
	uint32_t n_cpus;
	struct bundle bundle; /* one after the other: there may be hundreds of CPUs */
	struct chain *chains; /* by ring buffer and CPU */
	size_t *used;	      /* indexes of those that have events */
	size_t n_used;
	uint32_t *next; /* by event, plus 1: the next one of its chain */
	size_t room;
	struct symbols_cache symbols;
	struct text scratch;
};

/* --- what was seen */

/* The slot of a key, or where it may go */
static size_t seen_find(const struct seen *seen, uint64_t a, uint64_t b)
{
	uint64_t hash = (a ^ (b * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xff51afd7ed558ccd);
	size_t i = (size_t)(hash >> 54) & (SEEN_SLOTS - 1);

	while (seen->slots[i].bundle == seen->bundle &&
	       (seen->slots[i].key[0] != a || seen->slots[i].key[1] != b))
		i = (i + 1) & (SEEN_SLOTS - 1);
	return i;
}

/* Return: true: it was, and @index is what it was added with; false: it is now, if there is room */
static bool seen_add(struct seen *seen, uint64_t a, uint64_t b, uint32_t *index)
{
	size_t i = seen_find(seen, a, b);

	if (seen->slots[i].bundle == seen->bundle) {
		*index = seen->slots[i].index;
		return true;
	}
	if (seen->n < SEEN_MAX) {
		seen->slots[i] = (__typeof__(seen->slots[i])){{a, b}, *index, seen->bundle};
		seen->n++;
	}
	return false;
}

/* --- fields */

static void put_number_text(const struct field_value *value, uint64_t number, struct text *out)
{
	if (value->at.is_signed)
		text_i64(out, field_value_signed(value, number));
	else
		text_u64(out, number);
}

static void put_symbol_text(const char *name, uint64_t offset, struct text *out)
{
	text_string(out, name);
	if (offset != UINT64_MAX) {
		text_string(out, "+0x");
		text_hex(out, offset);
	}
}

/* "[1,2,3]", or with symbols where there are some */
static void put_array(struct perfetto_bundles *b, const struct field_value *value,
		      const struct decode_event *event, struct text *out)
{
	uint32_t at = 0;
	uint64_t number, offset;

	text_char(out, '[');
	for (bool first = true; field_value_next(value, event, &at, &number); first = false) {
		const char *name = value->address ? field_value_symbol(&b->symbols, number,
								       value->at.element, &offset)
						  : NULL;

		if (!first)
			text_char(out, ',');
		if (name)
			put_symbol_text(name, offset, out);
		else
			put_number_text(value, number, out);
	}
	text_char(out, ']');
}

static void put_function(struct perfetto_bundles *b, struct bundle *bundle,
			 const struct perfetto_field *f, uint32_t number,
			 const struct decode_event *event)
{
	uint64_t address = field_number(&f->value.at, event), offset;
	const char *name = field_value_symbol(&b->symbols, address, f->value.at.size, &offset);
	uint32_t unused = 0;
	size_t begin;

	wire_number(&bundle->events, number, address);
	if (!name || offset == UINT64_MAX || seen_add(&bundle->seen, address, UINT64_MAX, &unused))
		return;
	begin = wire_begin(&bundle->symbols, INTERNED_KERNEL_SYMBOLS);
	wire_number(&bundle->symbols, INTERNED_ID, address);
	wire_string(&bundle->symbols, INTERNED_STRING, name);
	wire_end(&bundle->symbols, begin);
}

static void put_repeated(const struct perfetto_field *f, uint32_t number,
			 const struct decode_event *event, struct text *out)
{
	uint32_t at = 0;
	uint64_t value;

	while (field_value_next(&f->value, event, &at, &value))
		wire_number(out, number, (uint64_t)field_value_signed(&f->value, value));
}

/* @number: of the field that it becomes */
static void put_plain(struct perfetto_bundles *b, const struct perfetto_field *f, uint32_t number,
		      const struct decode_event *event, struct text *out)
{
	const struct field_value *value = &f->value;
	const uint8_t *p;
	uint32_t size;
	size_t begin;

	switch (value->kind) {
	case VALUE_NUMBER:
		wire_number(out, number,
			    (uint64_t)field_value_signed(value, field_number(&value->at, event)));
		break;
	case VALUE_BOOL:
		wire_number(out, number, field_number(&value->at, event) != 0);
		break;
	case VALUE_STRING:
		p = field_value_bytes(value, event, &size);
		wire_text(out, number, p, size);
		break;
	case VALUE_NUMBERS:
		begin = wire_begin(out, number);
		put_array(b, value, event, out);
		wire_end(out, begin);
		break;
	case VALUE_CPUS:
		p = field_value_bytes(value, event, &size);
		begin = wire_begin(out, number);
		text_cpus(out, p, size, event->big_endian);
		wire_end(out, begin);
		break;
	}
}

static void put_symbol(struct perfetto_bundles *b, const struct perfetto_field *f,
		       const struct decode_event *event, struct text *out)
{
	uint64_t address = field_number(&f->value.at, event), offset;
	const char *name = field_value_symbol(&b->symbols, address, f->value.at.size, &offset);

	if (!name)
		return;
	b->scratch.size = 0;
	put_symbol_text(name, offset, &b->scratch);
	wire_text(out, f->symbol, b->scratch.bytes, b->scratch.size);
}

static void put_field(struct perfetto_bundles *b, struct bundle *bundle,
		      const struct perfetto_field *f, const struct decode_event *event)
{
	const char *string;

	switch (f->form) {
	case FORM_PLAIN:
		put_plain(b, f, f->number, event, &bundle->events);
		if (f->symbol)
			put_symbol(b, f, event, &bundle->events);
		break;
	case FORM_REPEATED:
		put_repeated(f, f->number, event, &bundle->events);
		break;
	case FORM_FUNCTION:
		put_function(b, bundle, f, f->number, event);
		break;
	case FORM_PID:
		wire_number(&bundle->events, f->number,
			    (uint64_t)(int64_t)(int32_t)perfetto_pid(
				    b->events, (int32_t)field_number(&f->value.at, event)));
		break;
	case FORM_CPU:
		wire_number(&bundle->events, f->number,
			    field_number(&f->value.at, event) + b->events->cpus);
		break;
	case FORM_POINTED:
		string = symbols_string(b->symbols.symbols, field_number(&f->value.at, event));
		if (string)
			wire_string(&bundle->events, f->number, string);
		break;
	}
}

/* What decode/event-header.h prints, without the key */
static void put_header(struct perfetto_bundles *b, const struct perfetto_plan *plan,
		       const struct decode_event *event, struct text *out)
{
	const size_t key = strlen(",\"eventheader\":");

	b->scratch.size = 0;
	event_header_json(event, &plan->fields[0].value.at, &b->scratch);
	if (b->scratch.size > key)
		wire_bytes(out, plan->header, b->scratch.bytes + key, b->scratch.size - key);
}

/* --- events */

/* As GenericFtraceEvent, which has names in each event, and any number of fields */
static void put_named(struct perfetto_bundles *b, const struct perfetto_plan *plan,
		      const struct decode_event *event, struct text *out)
{
	const char *buffer = decoder_dat(b->events->decoder)->buffers[event->buffer].name;
	char name[32];
	size_t begin;

	(void)snprintf(name, sizeof(name), "event_%" PRIu32, event->id);
	wire_string(out, GENERIC_NAME, plan->name ? plan->name : name);
	for (size_t i = 0; i < plan->n; i++) {
		const struct perfetto_field *f = &plan->fields[i];
		bool number = f->value.kind == VALUE_NUMBER || f->value.kind == VALUE_BOOL;

		begin = wire_begin(out, GENERIC_FIELD);
		wire_string(out, GENERIC_FIELD_NAME, f->value.at.name);
		put_plain(b, f,
			  !number		  ? GENERIC_FIELD_STRING
			  : f->value.at.is_signed ? GENERIC_FIELD_INT
						  : GENERIC_FIELD_UINT,
			  event, out);
		wire_end(out, begin);
	}
	if (!plan->name) {
		size_t hex;

		begin = wire_begin(out, GENERIC_FIELD);
		wire_string(out, GENERIC_FIELD_NAME, "data");
		hex = wire_begin(out, GENERIC_FIELD_STRING);
		for (uint32_t i = 0; i < event->size; i++)
			text_printf(out, "%02x", event->data[i]);
		wire_end(out, hex);
		wire_end(out, begin);
	}
	if (*buffer) {
		begin = wire_begin(out, GENERIC_FIELD);
		wire_string(out, GENERIC_FIELD_NAME, "ring_buffer");
		wire_string(out, GENERIC_FIELD_STRING, buffer);
		wire_end(out, begin);
	}
}

/* The reader wants time, task and message in this order, which it can find quickly */
static void put_event(struct perfetto_bundles *b, struct bundle *bundle,
		      const struct perfetto_plan *plan, const struct decode_event *event)
{
	const char *buffer = decoder_dat(b->events->decoder)->buffers[event->buffer].name;
	const bool named = plan->kind == PERFETTO_NAMED;
	struct text *out = &bundle->events;
	size_t begin = wire_begin(out, BUNDLE_EVENT), message;

	wire_number(out, EVENT_TIMESTAMP, event->ts + b->events->to_boot);
	wire_number(out, EVENT_PID, perfetto_pid(b->events, event->pid));
	message = wire_begin(out, named ? EVENT_GENERIC : plan->number);
	if (named)
		put_named(b, plan, event, out);
	for (size_t i = 0; i < plan->n && !named; i++)
		put_field(b, bundle, &plan->fields[i], event);
	if (plan->header && !named)
		put_header(b, plan, event, out);
	if (plan->buffer && !named && *buffer)
		wire_string(out, plan->buffer, buffer);
	wire_end(out, message);
	wire_end(out, begin);
}

/* The index of a name in the bundle's table */
static uint32_t put_comm(struct bundle *bundle, const struct perfetto_field *f,
			 const struct decode_event *event)
{
	uint32_t size, index = bundle->n_comms;
	const uint8_t *p = field_value_bytes(&f->value, event, &size);
	uint64_t key[2] = {};

	size = (uint32_t)strnlen((const char *)p, size);
	if (size <= COMM_SIZE) {
		memcpy(key, p, size);
		if (seen_add(&bundle->seen, key[0], key[1], &index))
			return index;
	}
	wire_text(&bundle->comms, SCHED_INTERN_TABLE, p, size);
	return bundle->n_comms++;
}

static void put_column(struct bundle *bundle, enum perfetto_sched column,
		       const struct perfetto_field *f, const struct decode_event *event)
{
	wire_raw(&bundle->columns[column],
		 (uint64_t)field_value_signed(&f->value, field_number(&f->value.at, event)));
}

static void put_pid(struct perfetto_bundles *b, enum perfetto_sched column,
		    const struct perfetto_field *f, const struct decode_event *event)
{
	const int32_t pid = (int32_t)field_number(&f->value.at, event);

	wire_raw(&b->bundle.columns[column],
		 (uint64_t)(int64_t)(int32_t)perfetto_pid(b->events, pid));
}

static void put_time(struct bundle *bundle, enum perfetto_sched column, uint64_t ts, uint64_t *last)
{
	wire_raw(&bundle->columns[column], ts - *last);
	*last = ts;
}

static void put_switch(struct perfetto_bundles *b, struct bundle *bundle,
		       const struct perfetto_plan *plan, const struct decode_event *event)
{
	put_time(bundle, SCHED_SWITCH_TIMESTAMP, event->ts + b->events->to_boot,
		 &bundle->last_switch);
	put_column(bundle, SCHED_SWITCH_PREV_STATE, &plan->fields[SWITCH_PREV_STATE], event);
	put_pid(b, SCHED_SWITCH_NEXT_PID, &plan->fields[SWITCH_NEXT_PID], event);
	put_column(bundle, SCHED_SWITCH_NEXT_PRIO, &plan->fields[SWITCH_NEXT_PRIO], event);
	wire_raw(&bundle->columns[SCHED_SWITCH_NEXT_COMM],
		 put_comm(bundle, &plan->fields[SWITCH_NEXT_COMM], event));
}

static void put_waking(struct perfetto_bundles *b, struct bundle *bundle,
		       const struct perfetto_plan *plan, const struct decode_event *event)
{
	put_time(bundle, SCHED_WAKING_TIMESTAMP, event->ts + b->events->to_boot,
		 &bundle->last_waking);
	put_pid(b, SCHED_WAKING_PID, &plan->fields[WAKING_PID], event);
	put_column(bundle, SCHED_WAKING_PRIO, &plan->fields[WAKING_PRIO], event);
	wire_raw(&bundle->columns[SCHED_WAKING_TARGET_CPU],
		 field_number(&plan->fields[WAKING_TARGET_CPU].value.at, event) + b->events->cpus);
	wire_raw(&bundle->columns[SCHED_WAKING_COMM],
		 put_comm(bundle, &plan->fields[WAKING_COMM], event));
	wire_raw(&bundle->columns[SCHED_WAKING_FLAGS], field_number(&b->facts->flags, event));
}

/* --- bundles */

static void empty(struct bundle *bundle)
{
	bundle->lost = false;
	bundle->events.size = bundle->comms.size = bundle->symbols.size = 0;
	for (size_t i = 0; i < ARRAY_SIZE(bundle->columns); i++)
		bundle->columns[i].size = 0;
	bundle->n_comms = 0;
	bundle->last_switch = bundle->last_waking = 0;
	bundle->seen.n = 0;
	bundle->seen.bundle++;
}

static int put_packet(struct perfetto_bundles *b, struct bundle *bundle, struct text *out)
{
	size_t packet = wire_begin(out, PERFETTO_PACKET);
	size_t begin = wire_begin(out, PACKET_FTRACE_EVENTS), sched;
	bool no_memory =
		bundle->events.no_memory || bundle->comms.no_memory || bundle->symbols.no_memory;

	wire_number(out, BUNDLE_CPU, bundle->cpu + b->events->cpus);
	if (bundle->lost)
		wire_number(out, BUNDLE_LOST_EVENTS, true);
	if (bundle->n_comms > 0) {
		sched = wire_begin(out, BUNDLE_COMPACT_SCHED);
		text_bytes(out, bundle->comms.bytes, bundle->comms.size);
		for (uint32_t i = 0; i < ARRAY_SIZE(bundle->columns); i++) {
			struct text *column = &bundle->columns[i];

			no_memory |= column->no_memory;
			if (column->size > 0)
				wire_bytes(out, i, column->bytes, column->size);
		}
		wire_end(out, sched);
	}
	text_bytes(out, bundle->events.bytes, bundle->events.size);
	wire_end(out, begin);
	if (bundle->symbols.size > 0) {
		wire_bytes(out, PACKET_INTERNED_DATA, bundle->symbols.bytes, bundle->symbols.size);
		wire_number(out, PACKET_SEQUENCE_FLAGS, PERFETTO_NEEDS_STATE);
	}
	wire_number(out, PACKET_SEQUENCE, PERFETTO_SEQUENCE);
	wire_end(out, packet);
	empty(bundle);
	return no_memory || out->no_memory ? -ENOMEM : 0;
}

static int make_event(struct perfetto_bundles *b, const struct decode_event *event,
		      struct text *out)
{
	const struct perfetto_choice *choice = perfetto_choice(b->events, event->id);
	const struct perfetto_plan *plan =
		perfetto_is_typed(choice, event) ? choice->typed : choice->any;
	struct bundle *bundle = &b->bundle;
	int r = 0;

	if (event->missed != 0) {
		if (bundle->events.size > 0 || bundle->n_comms > 0)
			r = put_packet(b, bundle, out);
		bundle->lost = true;
	}
	switch (plan->kind) {
	case PERFETTO_SWITCH:
		put_switch(b, bundle, plan, event);
		break;
	case PERFETTO_WAKING:
		put_waking(b, bundle, plan, event);
		break;
	case PERFETTO_TYPED:
	case PERFETTO_DESCRIBED:
	case PERFETTO_NAMED:
		put_event(b, bundle, plan, event);
		break;
	}
	return r;
}

/* Those of each CPU and ring buffer, in their order */
static int chain_events(struct perfetto_bundles *b, const struct decode_event *events, size_t n)
{
	if (n > b->room) {
		free(b->next);
		b->next = calloc(n, sizeof(*b->next));
		b->room = b->next ? n : 0;
	}
	if (n > b->room)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t at = events[i].buffer * (size_t)b->n_cpus + events[i].cpu;
		struct chain *chain = &b->chains[at];

		b->next[i] = 0;
		if (chain->first == 0) {
			b->used[b->n_used++] = at;
			chain->first = (uint32_t)i + 1;
		} else {
			b->next[chain->last - 1] = (uint32_t)i + 1;
		}
		chain->last = (uint32_t)i + 1;
	}
	return 0;
}

static int make_chain(struct perfetto_bundles *b, struct chain *chain,
		      const struct decode_event *events, struct text *out)
{
	int r = 0;

	b->bundle.cpu = events[chain->first - 1].cpu;
	for (uint32_t i = chain->first; i > 0 && r >= 0; i = b->next[i - 1])
		r = make_event(b, &events[i - 1], out);
	chain->first = 0;
	return r < 0 ? r : put_packet(b, &b->bundle, out);
}

int perfetto_bundles_make(struct perfetto_bundles *bundles, const struct decode_event *events,
			  size_t n, struct text *out)
{
	int r = chain_events(bundles, events, n);

	for (size_t i = 0; i < bundles->n_used && r >= 0; i++)
		r = make_chain(bundles, &bundles->chains[bundles->used[i]], events, out);
	bundles->n_used = 0;
	return r < 0 || bundles->scratch.no_memory ? -ENOMEM : 0;
}

int perfetto_bundles_new(const struct perfetto_events *events, struct perfetto_bundles **ret)
{
	const struct trace_dat *dat = decoder_dat(events->decoder);
	const size_t n = MAX(dat->n_buffers * (size_t)dat->n_cpus, (size_t)1);
	struct perfetto_bundles *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->events = events;
	b->facts = decoder_facts(events->decoder);
	b->n_cpus = dat->n_cpus;
	b->chains = calloc(n, sizeof(*b->chains));
	b->used = calloc(n, sizeof(*b->used));
	b->symbols.symbols = decoder_symbols(events->decoder);
	b->bundle.seen.bundle = 1;
	if (!b->chains || !b->used || !b->symbols.symbols) {
		perfetto_bundles_free(b);
		return -ENOMEM;
	}
	*ret = b;
	return 0;
}

struct perfetto_bundles *perfetto_bundles_free(struct perfetto_bundles *bundles)
{
	struct bundle *bundle;

	if (!bundles)
		return NULL;
	bundle = &bundles->bundle;
	text_done(&bundle->events);
	text_done(&bundle->comms);
	text_done(&bundle->symbols);
	for (size_t i = 0; i < ARRAY_SIZE(bundle->columns); i++)
		text_done(&bundle->columns[i]);
	text_done(&bundles->scratch);
	free(bundles->chains);
	free(bundles->used);
	free(bundles->next);
	free(bundles);
	return NULL;
}
