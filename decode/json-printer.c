/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "decode/event-header.h"
#include "decode/json-printer.h"
#include "decode/who.h"

struct plan_field {
	struct text key; /* "NAME": with the comma before it */
	struct field_value value;
};

/* A kind of event */
struct json_plan {
	struct text head; /* "system":…,"event":… */
	struct plan_field *fields;
	size_t n;
	bool has_header; /* decode/event-header.h */
};

struct json_printer {
	const struct decoder *decoder;
	struct json_plan **plans; /* by index of the format; NULL: not met yet */
	struct symbols_cache symbols;
};

static struct json_plan *free_plan(struct json_plan *plan)
{
	if (!plan)
		return NULL;
	for (size_t i = 0; plan->fields && i < plan->n; i++)
		text_done(&plan->fields[i].key);
	text_done(&plan->head);
	free(plan->fields);
	free(plan);
	return NULL;
}

/* @fields: NULL: of an unknown event */
static struct json_plan *new_plan(const struct decoder *d, size_t format,
				  const struct field *fields, size_t n, uint32_t id)
{
	const struct trace_dat *dat = decoder_dat(d);
	struct json_plan *plan = calloc(1, sizeof(*plan));
	const char *system, *event;

	if (!plan)
		return NULL;
	if (!fields) {
		text_printf(&plan->head, ",\"system\":null,\"event\":null,\"id\":%u", id);
		return plan->head.no_memory ? free_plan(plan) : plan;
	}
	system = dat->systems[dat->formats[format].system];
	event = decoder_name(d, format);
	text_string(&plan->head, ",\"system\":");
	text_json(&plan->head, system, strlen(system));
	text_string(&plan->head, ",\"event\":");
	text_json(&plan->head, event, strlen(event));
	plan->fields = calloc(n + 1, sizeof(*plan->fields));
	if (!plan->fields || plan->head.no_memory)
		return free_plan(plan);
	plan->has_header = event_header_is(fields, n);
	for (; plan->n < n; plan->n++) {
		struct plan_field *f = &plan->fields[plan->n];

		field_value_init(&f->value, event, dat->long_size, &fields[plan->n]);
		if (plan->n > 0)
			text_char(&f->key, ',');
		text_json(&f->key, f->value.at.name, strlen(f->value.at.name));
		text_char(&f->key, ':');
		if (f->key.no_memory)
			return free_plan(plan);
	}
	return plan;
}

/* "NAME+0xOFFSET" of an address of code, or the string that the kernel keeps there */
static bool put_symbol(struct symbols_cache *symbols, uint64_t address, uint32_t size,
		       struct text *out)
{
	uint64_t offset;
	const char *name = field_value_symbol(symbols, address, size, &offset);

	if (!name)
		return false;
	text_char(out, '"');
	text_json_inner(out, name, strlen(name));
	if (offset != UINT64_MAX) {
		text_string(out, "+0x");
		text_hex(out, offset);
	}
	text_char(out, '"');
	return true;
}

static void put_number(const struct field_value *value, uint64_t number, struct text *out)
{
	if (value->at.is_signed)
		text_i64(out, field_value_signed(value, number));
	else
		text_u64(out, number);
}

/* Each number of an array, or its symbol where @symbols is given */
static bool put_numbers(const struct field_value *value, const struct decode_event *event,
			struct symbols_cache *symbols, struct text *out)
{
	uint32_t at = 0;
	uint64_t number;
	bool any = false;

	text_char(out, '[');
	for (bool first = true; field_value_next(value, event, &at, &number); first = false) {
		if (!first)
			text_char(out, ',');
		if (!symbols)
			put_number(value, number, out);
		else if (put_symbol(symbols, number, value->at.element, out))
			any = true;
		else
			text_string(out, "null");
	}
	text_char(out, ']');
	return any;
}

void json_printer_value(const struct field_value *value, const struct decode_event *event,
			struct text *out)
{
	const uint8_t *p;
	uint32_t size;

	switch (value->kind) {
	case VALUE_NUMBER:
		put_number(value, field_number(&value->at, event), out);
		break;
	case VALUE_BOOL:
		text_string(out, field_number(&value->at, event) ? "true" : "false");
		break;
	case VALUE_STRING:
		p = field_value_bytes(value, event, &size);
		text_json(out, p, size);
		break;
	case VALUE_NUMBERS:
		put_numbers(value, event, NULL, out);
		break;
	case VALUE_CPUS:
		p = field_value_bytes(value, event, &size);
		text_char(out, '"');
		text_cpus(out, p, size, event->big_endian);
		text_char(out, '"');
		break;
	}
}

static void put_symbols(struct symbols_cache *symbols, const struct json_plan *plan,
			const struct decode_event *event, struct text *out)
{
	bool first = true;

	for (size_t i = 0; i < plan->n; i++) {
		const struct plan_field *f = &plan->fields[i];
		size_t before = out->size, key;
		bool any;

		if (!f->value.address)
			continue;
		text_string(out, first ? ",\"symbols\":{" : ",");
		key = i == 0 ? 0 : 1; /* without its comma */
		text_bytes(out, f->key.bytes + key, f->key.size - key);
		if (f->value.kind == VALUE_NUMBERS)
			any = put_numbers(&f->value, event, symbols, out);
		else
			any = put_symbol(symbols, field_number(&f->value.at, event),
					 f->value.at.element, out);
		if (any)
			first = false;
		else
			out->size = before;
	}
	if (!first)
		text_char(out, '}');
}

/* As far as it is known */
static void put_who(const struct task_who *who, struct text *out)
{
	const struct cgroup_names *names = who->place ? &who->place->names : NULL;

	if (who->tgid > 0) {
		text_string(out, ",\"tgid\":");
		text_i64(out, who->tgid);
	}
	if (who->process[0]) {
		text_string(out, ",\"process\":");
		text_json(out, who->process, sizeof(who->process));
	}
	if (names && names->unit) {
		text_string(out, ",\"unit\":");
		text_json(out, names->unit, strlen(names->unit));
	}
	if (names && names->container) {
		text_string(out, ",\"container\":");
		text_json(out, names->container, strlen(names->container));
	}
}

static void put_common(struct json_printer *printer, const struct decode_event *event,
		       struct text *out)
{
	const struct decoder_facts *facts = decoder_facts(printer->decoder);

	text_string(out, "{\"ts\":");
	text_u64(out, event->ts);
	if (event->buffer > 0) {
		const char *name = decoder_dat(printer->decoder)->buffers[event->buffer].name;

		text_string(out, ",\"buffer\":");
		text_json(out, name, strlen(name));
	}
	text_string(out, ",\"cpu\":");
	text_u64(out, event->cpu);
	text_string(out, ",\"pid\":");
	text_i64(out, event->pid);
	text_string(out, ",\"comm\":");
	if (event->task->known)
		text_json(out, event->task->text, event->task->size);
	else
		text_string(out, "null");
	if (event->who)
		put_who(event->who, out);
	text_string(out, ",\"flags\":");
	text_u64(out, field_number(&facts->flags, event));
	text_string(out, ",\"preempt_count\":");
	text_u64(out, field_number(&facts->preempt_count, event));
	if (event->missed) {
		text_string(out, ",\"lost_before\":");
		if (event->missed > 0)
			text_i64(out, event->missed);
		else
			text_string(out, "null");
	}
}

/* @ret_own: one that is not kept: such events have many ids */
static struct json_plan *find_plan(struct json_printer *printer, uint32_t id, bool *ret_own)
{
	const struct decoder *d = printer->decoder;
	int32_t format = decoder_find(d, id);
	const struct field *fields = NULL;
	struct json_plan *plan;
	size_t n = 0;

	*ret_own = false;
	if (format >= 0 && printer->plans[format])
		return printer->plans[format];
	if (format >= 0)
		fields = decoder_fields(d, (size_t)format, &n);
	plan = new_plan(d, (size_t)format, fields, n, id);
	*ret_own = !fields;
	if (fields)
		printer->plans[format] = plan;
	return plan;
}

static void put_fields(const struct json_plan *plan, const struct decode_event *event,
		       struct text *out)
{
	text_char(out, '{');
	for (size_t i = 0; i < plan->n; i++) {
		text_bytes(out, plan->fields[i].key.bytes, plan->fields[i].key.size);
		json_printer_value(&plan->fields[i].value, event, out);
	}
	text_char(out, '}');
}

int json_printer_fields(struct json_printer *printer, const struct decode_event *event,
			struct text *out)
{
	bool own;
	struct json_plan *plan = find_plan(printer, event->id, &own);

	if (!plan)
		return -ENOMEM;
	put_fields(plan, event, out);
	if (own)
		free_plan(plan);
	return out->no_memory ? -ENOMEM : 0;
}

int json_printer_put(struct json_printer *printer, const struct decode_event *event,
		     struct text *out)
{
	bool own;
	struct json_plan *plan = find_plan(printer, event->id, &own);

	if (!plan)
		return -ENOMEM;
	put_common(printer, event, out);
	text_bytes(out, plan->head.bytes, plan->head.size);
	text_string(out, ",\"fields\":");
	put_fields(plan, event, out);
	put_symbols(&printer->symbols, plan, event, out);
	if (plan->has_header)
		event_header_json(event, &plan->fields[0].value.at, out);
	text_string(out, "}\n");
	if (own)
		free_plan(plan);
	return out->no_memory ? -ENOMEM : 0;
}

int json_printer_new_fields(const struct decoder *decoder, struct json_printer **ret)
{
	struct json_printer *p = calloc(1, sizeof(*p));
	size_t n = decoder_dat(decoder)->n_formats;

	if (p)
		p->plans = calloc(MAX(n, (size_t)1), sizeof(struct json_plan *));
	if (!p || !p->plans) {
		free(p);
		return -ENOMEM;
	}
	p->decoder = decoder;
	*ret = p;
	return 0;
}

int json_printer_new(const struct decoder *decoder, struct json_printer **ret)
{
	const struct file_symbols *symbols = decoder_symbols(decoder);
	int r = symbols ? json_printer_new_fields(decoder, ret) : -ENOMEM;

	if (r >= 0)
		(*ret)->symbols.symbols = symbols;
	return r;
}

struct json_printer *json_printer_free(struct json_printer *printer)
{
	if (!printer)
		return NULL;
	for (size_t i = 0; i < decoder_dat(printer->decoder)->n_formats; i++)
		free_plan(printer->plans[i]);
	free(printer->plans);
	free(printer);
	return NULL;
}
