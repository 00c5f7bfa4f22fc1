/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "decode/json-printer.h"
#include "decode/symbols.h"

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
	struct field at; /* its element: the size of a number */
	bool rest;	 /* up to the end of the event */
	bool address;	 /* may have a symbol */
};

/* A kind of event */
struct json_plan {
	struct text head; /* "system":…,"event":… */
	struct json_field *fields;
	size_t n;
};

struct json_printer {
	const struct decoder *decoder;
	struct json_plan **plans; /* by index of the format; NULL: not met yet */
	struct symbols_cache symbols;
};

static void put_escape(uint8_t c, struct text *out)
{
	if (c == '"' || c == '\\' || c == '\n' || c == '\t') {
		text_char(out, '\\');
		text_char(out, c == '\n' ? 'n' : c == '\t' ? 't' : (char)c);
		return;
	}
	/* a byte that is no UTF-8: U+DC80 to U+DCFF, as Python's surrogateescape */
	text_printf(out, c < 0x80 ? "\\u%04x" : "\\udc%02x", c);
}

/* A string up to its NUL byte or @size bytes */
static void put_escaped(const void *string, size_t size, struct text *out)
{
	const uint8_t *p = string, *end = p + size, *run = p;
	const uint8_t *nul = size ? memchr(p, '\0', size) : NULL;

	if (nul)
		end = nul;
	while (p < end) {
		size_t n = *p >= 0x80 ? utf8_length((const char *)p, (size_t)(end - p)) : 1;

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

static bool is_text(const struct field *field)
{
	return has_word(field->type, "char") && !has_word(field->type, "unsigned");
}

static bool is_word_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static void plan_field(const char *event, uint32_t long_size, struct json_field *f)
{
	struct field *at = &f->at;

	/* the array at the end of an event of ftrace's own is as long as it happens to be */
	f->rest = at->is_array && !at->is_dynamic && at->is_last &&
		  (at->size == 0 || strcmp(event, "kernel_stack") == 0);
	if (!at->is_array)
		at->element = at->size;
	if (strstr(at->type, "cpumask"))
		f->kind = JSON_CPUS;
	else if (at->is_array && is_text(at))
		f->kind = JSON_STRING;
	else if (at->is_array || !is_word_size(at->size))
		f->kind = JSON_NUMBERS;
	else
		f->kind = has_word(at->type, "bool") ? JSON_BOOL : JSON_NUMBER;
	if (f->rest && at->element == 0)
		at->element = has_word(at->type, "long") ? long_size : 4;
	if (!is_word_size(at->element))
		at->element = 1; /* structures, as bytes */
	f->address = at->element == long_size && (at->is_pointer || has_word(at->type, "long")) &&
		     !has_word(at->type, "long long") && !at->is_signed;
}

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
	put_string(system, strlen(system), &plan->head);
	text_string(&plan->head, ",\"event\":");
	put_string(event, strlen(event), &plan->head);
	plan->fields = calloc(n + 1, sizeof(*plan->fields));
	if (!plan->fields || plan->head.no_memory)
		return free_plan(plan);
	for (; plan->n < n; plan->n++) {
		struct json_field *f = &plan->fields[plan->n];

		f->at = fields[plan->n];
		plan_field(event, dat->long_size, f);
		if (plan->n > 0)
			text_char(&f->key, ',');
		put_string(f->at.name, strlen(f->at.name), &f->key);
		text_char(&f->key, ':');
		if (f->key.no_memory)
			return free_plan(plan);
	}
	return plan;
}

static void put_number(uint64_t value, uint32_t size, bool is_signed, struct text *out)
{
	if (is_signed)
		text_i64(out, decode_signed(value, size));
	else
		text_u64(out, value);
}

/* Where a field's bytes are, and how many */
static const uint8_t *bytes_of(const struct json_field *f, const struct decode_event *event,
			       uint32_t *ret_size)
{
	const uint8_t *p = field_bytes(&f->at, event, ret_size);

	if (f->rest)
		*ret_size = (uint32_t)(event->data + event->size - p);
	return p;
}

/* Each number of an array */
static bool each_number(const struct json_field *f, const struct decode_event *event,
			bool (*put)(const struct json_field *f, uint64_t value,
				    struct symbols_cache *symbols, struct text *out),
			struct symbols_cache *symbols, struct text *out)
{
	uint32_t size, at;
	const uint8_t *p = bytes_of(f, event, &size);
	bool any = false;

	at = (uint32_t)(p - event->data);
	text_char(out, '[');
	for (uint32_t i = 0; i + f->at.element <= size; i += f->at.element) {
		if (i)
			text_char(out, ',');
		any |= put(f, decode_number(event, (uint64_t)at + i, f->at.element), symbols, out);
	}
	text_char(out, ']');
	return any;
}

static bool put_element(const struct json_field *f, uint64_t value, struct symbols_cache *symbols,
			struct text *out)
{
	(void)symbols;
	put_number(value, f->at.element, f->at.is_signed, out);
	return true;
}

static void put_field(const struct json_field *f, const struct decode_event *event,
		      struct text *out)
{
	const uint8_t *p;
	uint32_t size;

	switch (f->kind) {
	case JSON_NUMBER:
		put_number(field_number(&f->at, event), f->at.size, f->at.is_signed, out);
		break;
	case JSON_BOOL:
		text_string(out, field_number(&f->at, event) ? "true" : "false");
		break;
	case JSON_STRING:
		p = bytes_of(f, event, &size);
		put_string(p, size, out);
		break;
	case JSON_NUMBERS:
		each_number(f, event, put_element, NULL, out);
		break;
	case JSON_CPUS:
		p = bytes_of(f, event, &size);
		text_char(out, '"');
		text_cpus(out, p, size, event->big_endian);
		text_char(out, '"');
		break;
	}
}

/* "NAME+0xOFFSET" of an address of code, or the string that the kernel keeps there */
static bool put_symbol(struct symbols_cache *symbols, uint64_t address, uint32_t size,
		       struct text *out)
{
	const char *string = symbols_string(symbols->symbols, address), *name;
	uint64_t start;

	if (string) {
		put_string(string, strlen(string), out);
		return true;
	}
	/* the kernel is in the upper half */
	if (!(address >> (8 * size - 1)))
		return false;
	name = symbols_find(symbols, address, &start);
	if (!name)
		return false;
	text_char(out, '"');
	put_escaped(name, strlen(name), out);
	text_string(out, "+0x");
	text_hex(out, address - start);
	text_char(out, '"');
	return true;
}

static bool put_element_symbol(const struct json_field *f, uint64_t value,
			       struct symbols_cache *symbols, struct text *out)
{
	bool any = put_symbol(symbols, value, f->at.element, out);

	if (!any)
		text_string(out, "null");
	return any;
}

static void put_symbols(struct symbols_cache *symbols, const struct json_plan *plan,
			const struct decode_event *event, struct text *out)
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
			any = each_number(f, event, put_element_symbol, symbols, out);
		else
			any = put_symbol(symbols, field_number(&f->at, event), f->at.element, out);
		if (any)
			first = false;
		else
			out->size = before;
	}
	if (!first)
		text_char(out, '}');
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
		put_string(name, strlen(name), out);
	}
	text_string(out, ",\"cpu\":");
	text_u64(out, event->cpu);
	text_string(out, ",\"pid\":");
	text_i64(out, event->pid);
	text_string(out, ",\"comm\":");
	if (event->task->known)
		put_string(event->task->text, event->task->size, out);
	else
		text_string(out, "null");
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

int json_printer_put(struct json_printer *printer, const struct decode_event *event,
		     struct text *out)
{
	bool own;
	struct json_plan *plan = find_plan(printer, event->id, &own);

	if (!plan)
		return -ENOMEM;
	put_common(printer, event, out);
	text_bytes(out, plan->head.bytes, plan->head.size);
	text_string(out, ",\"fields\":{");
	for (size_t i = 0; i < plan->n; i++) {
		text_bytes(out, plan->fields[i].key.bytes, plan->fields[i].key.size);
		put_field(&plan->fields[i], event, out);
	}
	text_char(out, '}');
	put_symbols(&printer->symbols, plan, event, out);
	text_string(out, "}\n");
	if (own)
		free_plan(plan);
	return out->no_memory ? -ENOMEM : 0;
}

int json_printer_new(const struct decoder *decoder, struct json_printer **ret)
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
	p->symbols.symbols = decoder_symbols(decoder);
	*ret = p;
	return 0;
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
