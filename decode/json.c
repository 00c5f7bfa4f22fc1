/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A line of JSON for an event; flyrecctl(1) says what is in it. Values come from the fields as the
 * format declares them, not from the print format: numbers stay numbers.
 */
#include <errno.h>
#include <string.h>

#include "decode/decode-internal.h"

enum json_kind {
	JSON_NUMBER,
	JSON_BOOL,
	JSON_STRING,
	JSON_NUMBERS,
	JSON_CPUS, /* a mask, as "0-3,8" */
};

struct json_field {
	enum json_kind kind;
	struct text key; /* "NAME": with the comma before it */
	struct decode_place place;
	uint32_t element; /* size of a number */
	bool dynamic, is_signed;
	bool rest;    /* up to the end of the record */
	bool address; /* may have a symbol */
};

struct json_plan {
	struct text head; /* "system":…,"event":… */
	struct json_field *fields;
	size_t n;
};

/* Length of a good UTF-8 sequence, 0 if there is none (RFC 3629: no surrogates, nothing overlong)
 */
static size_t utf8_length(const uint8_t *p, size_t left)
{
	size_t n = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	if (n == 0 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static void put_escape(uint8_t c, struct text *out)
{
	switch (c) {
	case '"':
		text_string(out, "\\\"");
		break;
	case '\\':
		text_string(out, "\\\\");
		break;
	case '\n':
		text_string(out, "\\n");
		break;
	case '\t':
		text_string(out, "\\t");
		break;
	default:
		/* a byte that is no UTF-8: U+DC80 to U+DCFF, as Python's surrogateescape */
		text_printf(out, c < 0x80 ? "\\u%04x" : "\\udc%02x", c);
	}
}

/* A string up to its NUL byte or @size bytes */
static void put_escaped(const void *string, size_t size, struct text *out)
{
	const uint8_t *p = string, *end = p + size, *run = p;
	const uint8_t *nul = size ? memchr(p, '\0', size) : NULL;

	if (nul)
		end = nul;
	while (p < end) {
		size_t n = *p >= 0x80 ? utf8_length(p, (size_t)(end - p)) : 1;

		if (n && *p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7f &&
		    (n != 2 || *p != 0xc2 || p[1] >= 0xa0)) {
			p += n;
			continue;
		}
		text_bytes(out, run, (size_t)(p - run));
		if (n == 2)
			text_printf(out, "\\u%04x", p[1]); /* U+0080 to U+009F */
		else
			put_escape(*p, out);
		p += MAX(n, (size_t)1);
		run = p;
	}
	text_bytes(out, run, (size_t)(end - run));
}

static void put_string(const void *string, size_t size, struct text *out)
{
	text_char(out, '"');
	put_escaped(string, size, out);
	text_char(out, '"');
}

/* Is @word in a declaration like "const unsigned char" as a word of its own */
static bool has_word(const char *type, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = type; (p = strstr(p, word)); p += n) {
		bool begins = p == type || p[-1] == ' ' || p[-1] == '_' || p[-1] == '*';

		if (begins && (p[n] == '\0' || strchr(" [*", p[n])))
			return true;
	}
	return false;
}

static bool is_text(const struct tep_format_field *field)
{
	return has_word(field->type, "char") && !has_word(field->type, "unsigned");
}

static bool is_word_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool plan_field(const struct tep_event *event, const struct tep_format_field *field,
		       struct json_field *f)
{
	bool array = field->flags & TEP_FIELD_IS_ARRAY;
	uint32_t long_size = (uint32_t)tep_get_long_size(event->tep);

	if (!decode_place(field, &f->place))
		return false;
	f->dynamic = field->flags & TEP_FIELD_IS_DYNAMIC;
	f->is_signed = field->flags & TEP_FIELD_IS_SIGNED;
	/* the array at the end of an event of ftrace's own is as long as it happens to be */
	f->rest = array && !f->dynamic && !field->next &&
		  (field->size == 0 || strcmp(event->name, "kernel_stack") == 0);
	f->element = array ? field->elementsize : (uint32_t)field->size;
	if (strstr(field->type, "cpumask"))
		f->kind = JSON_CPUS;
	else if (array && is_text(field))
		f->kind = JSON_STRING;
	else if (array || !is_word_size((uint32_t)field->size))
		f->kind = JSON_NUMBERS;
	else
		f->kind = has_word(field->type, "bool") ? JSON_BOOL : JSON_NUMBER;
	if (f->rest && f->element == 0)
		f->element = has_word(field->type, "long") ? long_size : 4;
	if (!is_word_size(f->element))
		f->element = 1; /* structures, as bytes */
	f->address = f->element == long_size &&
		     (field->flags & TEP_FIELD_IS_POINTER || has_word(field->type, "long")) &&
		     !has_word(field->type, "long long") && !f->is_signed;
	return true;
}

static struct json_plan *new_plan(const struct decoder *d, const struct event_kind *kind,
				  uint32_t id)
{
	struct json_plan *plan = calloc(1, sizeof(*plan));
	const struct tep_event *event = kind->event;

	if (!plan)
		return NULL;
	if (!event) {
		text_printf(&plan->head, ",\"system\":null,\"event\":null,\"id\":%u", id);
		return plan->head.no_memory ? json_plan_free(plan) : plan;
	}
	text_string(&plan->head, ",\"system\":");
	put_string(event->system, strlen(event->system), &plan->head);
	text_string(&plan->head, ",\"event\":");
	put_string(event->name, strlen(event->name), &plan->head);
	plan->fields = calloc((size_t)MAX(event->format.nr_fields, 0) + 1, sizeof(*plan->fields));
	if (!plan->fields || plan->head.no_memory)
		return json_plan_free(plan);
	for (const struct tep_format_field *field = event->format.fields;
	     field && plan->n < (size_t)event->format.nr_fields; field = field->next) {
		struct json_field *f = &plan->fields[plan->n];

		if (!plan_field(event, field, f))
			continue;
		if (plan->n++ > 0)
			text_char(&f->key, ',');
		put_string(field->name, strlen(field->name), &f->key);
		text_char(&f->key, ':');
		if (f->key.no_memory)
			return json_plan_free(plan);
	}
	return plan;
}

struct json_plan *json_plan_free(struct json_plan *plan)
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

static void put_number(uint64_t value, uint32_t size, bool is_signed, struct text *out)
{
	unsigned unused = 64 - 8 * size;

	if (is_signed)
		text_i64(out, (int64_t)(value << unused) >> unused);
	else
		text_u64(out, value);
}

/* Where a field's bytes are, and how many */
static const uint8_t *field_bytes(const struct json_field *f, const struct decode_record *r,
				  uint32_t *ret_size)
{
	uint32_t offset = MIN(f->place.offset, r->size);

	if (f->dynamic)
		return decode_dynamic(r, &f->place, ret_size);
	*ret_size = f->rest ? r->size - offset : MIN(f->place.size, r->size - offset);
	return r->data + offset;
}

static void put_numbers(const struct json_field *f, const struct decode_record *r, struct text *out)
{
	uint32_t size, at;
	const uint8_t *p = field_bytes(f, r, &size);

	at = (uint32_t)(p - r->data);
	text_char(out, '[');
	for (uint32_t i = 0; i + f->element <= size; i += f->element) {
		if (i)
			text_char(out, ',');
		put_number(decode_number(r, (uint64_t)at + i, f->element), f->element, f->is_signed,
			   out);
	}
	text_char(out, ']');
}

static void put_cpus(const struct json_field *f, const struct decode_record *r, struct text *out)
{
	uint32_t size;
	const uint8_t *mask = field_bytes(f, r, &size);
	bool first = true;

	text_char(out, '"');
	for (uint32_t i = 0, from; i < 8 * size; i++) {
		for (from = i; i < 8 * size; i++)
			if (!(mask[r->big_endian ? size - 1 - i / 8 : i / 8] & (1U << i % 8)))
				break;
		if (i == from)
			continue;
		text_printf(out, first ? "%u" : ",%u", from);
		if (i - 1 > from)
			text_printf(out, "-%u", i - 1);
		first = false;
	}
	text_char(out, '"');
}

static void put_field(const struct json_field *f, const struct decode_record *r, struct text *out)
{
	const uint8_t *p;
	uint32_t size;

	switch (f->kind) {
	case JSON_NUMBER:
		put_number(decode_number(r, f->place.offset, f->place.size), f->place.size,
			   f->is_signed, out);
		break;
	case JSON_BOOL:
		text_string(out,
			    decode_number(r, f->place.offset, f->place.size) ? "true" : "false");
		break;
	case JSON_STRING:
		p = field_bytes(f, r, &size);
		put_string(p, size, out);
		break;
	case JSON_NUMBERS:
		put_numbers(f, r, out);
		break;
	case JSON_CPUS:
		put_cpus(f, r, out);
		break;
	}
}

/* "NAME+0xOFFSET" of an address of code, or the string that the kernel keeps there */
static bool put_symbol(struct decode_tools *tools, uint64_t address, uint32_t size,
		       struct text *out)
{
	const char *string = printk_formats_find(tools->printk, address), *name;
	uint64_t start;

	if (string) {
		put_string(string, strlen(string), out);
		return true;
	}
	/* the kernel is in the upper half */
	if (!(address >> (8 * size - 1)))
		return false;
	name = kallsyms_cache_find(&tools->symbols, address, &start);
	if (!name)
		return false;
	text_char(out, '"');
	put_escaped(name, strlen(name), out);
	text_string(out, "+0x");
	text_hex(out, address - start);
	text_char(out, '"');
	return true;
}

/* One symbol, or null, for each number of an array; nothing if there is none at all */
static bool put_array_symbols(struct decode_tools *tools, const struct json_field *f,
			      const struct decode_record *r, struct text *out)
{
	uint32_t size, at;
	const uint8_t *p = field_bytes(f, r, &size);
	bool any = false;

	at = (uint32_t)(p - r->data);
	text_char(out, '[');
	for (uint32_t i = 0; i + f->element <= size; i += f->element) {
		uint64_t address = decode_number(r, (uint64_t)at + i, f->element);

		if (i)
			text_char(out, ',');
		if (put_symbol(tools, address, f->element, out))
			any = true;
		else
			text_string(out, "null");
	}
	text_char(out, ']');
	return any;
}

static void put_symbols(struct decode_tools *tools, const struct json_plan *plan,
			const struct decode_record *r, struct text *out)
{
	bool first = true;

	for (size_t i = 0; i < plan->n; i++) {
		const struct json_field *f = &plan->fields[i];
		size_t before = out->size, key;
		bool any;

		if (!f->address)
			continue;
		text_string(out, first ? ",\"symbols\":{" : ",");
		key = i == 0 ? 0 : 1; /* without its comma */
		text_bytes(out, f->key.bytes + key, f->key.size - key);
		if (f->kind == JSON_NUMBERS)
			any = put_array_symbols(tools, f, r, out);
		else
			any = put_symbol(tools, decode_number(r, f->place.offset, f->place.size),
					 f->element, out);
		if (any)
			first = false;
		else
			out->size = before;
	}
	if (!first)
		text_char(out, '}');
}

static void put_common(struct formatter *formatter, const struct decode_event *event,
		       const struct decode_record *r, struct text *out)
{
	const struct decoder *d = formatter->decoder;

	text_string(out, "{\"ts\":");
	text_u64(out, event->ts);
	if (event->buffer > 0) {
		const char *name = d->dat->buffers[event->buffer].name;

		text_string(out, ",\"buffer\":");
		put_string(name, strlen(name), out);
	}
	text_string(out, ",\"cpu\":");
	text_u64(out, event->cpu);
	text_string(out, ",\"pid\":");
	text_i64(out, decoder_pid(d, event));
	text_string(out, ",\"comm\":");
	if (event->task->known)
		put_string(event->task->text, event->task->size, out);
	else
		text_string(out, "null");
	text_string(out, ",\"flags\":");
	text_u64(out, decode_number(r, d->flags.offset, d->flags.size));
	text_string(out, ",\"preempt_count\":");
	text_u64(out, decode_number(r, d->preempt_count.offset, d->preempt_count.size));
	if (event->missed) {
		text_string(out, ",\"lost_before\":");
		if (event->missed > 0)
			text_i64(out, event->missed);
		else
			text_string(out, "null");
	}
}

int formatter_json(struct formatter *formatter, const struct decode_event *event, struct text *out)
{
	const struct decoder *d = formatter->decoder;
	const struct decode_record r = decode_record(d, event);
	uint32_t id = decoder_id(d, event);
	struct event_kind *kind = (struct event_kind *)decode_kind(formatter, id);
	struct json_plan *plan, *own = NULL;

	if (!kind)
		return -ENOMEM;
	plan = kind->json;
	if (!plan)
		plan = new_plan(d, kind, id);
	if (!plan)
		return -ENOMEM;
	if (kind->event)
		kind->json = plan;
	else
		own = plan; /* the kind stands for many ids */
	put_common(formatter, event, &r, out);
	text_bytes(out, plan->head.bytes, plan->head.size);
	text_string(out, ",\"fields\":{");
	for (size_t i = 0; i < plan->n; i++) {
		text_bytes(out, plan->fields[i].key.bytes, plan->fields[i].key.size);
		put_field(&plan->fields[i], &r, out);
	}
	text_char(out, '}');
	put_symbols(&formatter->tools, plan, &r, out);
	text_string(out, "}\n");
	json_plan_free(own);
	return out->no_memory ? -ENOMEM : 0;
}
