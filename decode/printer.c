/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JSON lines are json-printer.c's. A line of text for an event, as trace-cmd report prints it:
 *
 *	"  BUFFER: "  only if the file has several ring buffers
 *	"CPU:N [M EVENTS DROPPED]\n"  after a loss
 *	"            COMM-PID   [CPU]  SECONDS.USECS: EVENT:                TEXT\n"
 *
 * but for other times in the place of SECONDS.USECS, if they are asked for (decode/event-time.h).
 * A kind of event is looked at when the first of it comes: formats of thousands are in a file of a
 * few.
 */
#include <errno.h>
#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "basic/strv.h"
#include "decode/event-header.h"
#include "decode/json-printer.h"
#include "decode/plugins.h"
#include "decode/print/print.h"
#include "decode/printer.h"

/* libtraceevent reads beyond a record where its bytes say so: then it finds zeros */
#define PADDING (256 * KIB)

/* An event id, as one printer knows it */
struct kind {
	enum text_how how;
	struct tep_event *event;
	char *label; /* " NAME:        ", as wide as it is shown */
	size_t label_size;
	struct print *print;
	struct print_bounds
		*bounds;     /* or NULL; TEXT_TEP: a record beyond is printed by its fields */
	bool short_words;    /* of dynamic fields: 16 bits, an offset and no length */
	struct field header; /* decode/event-header.h: its flags; size 0: it is none */
	bool lines;	     /* TEXT_TEP: newlines may be libtraceevent's own */
};

/* One thread's: libtraceevent's handles are not for several, so that each printer has its own */
struct printer {
	struct json_printer *json; /* or NULL, and all that follows is for text */
	const struct decoder *decoder;
	const struct trace_dat *dat;
	struct printer_config config;
	struct tep_handle *tep;
	bool plugins;
	struct kind **kinds; /* by index of the format; NULL: not met yet */
	struct kind unknown;
	struct trace_seq seq;
	struct symbols_cache symbols;
	uint8_t *padded; /* a copy of the record, with zeros behind it */
	size_t padded_size;
	size_t buffer_width; /* of the longest name */
};

/* --- kinds of events */

static char *resolve(void *priv, unsigned long long *address, char **module)
{
	struct symbols_cache *symbols = priv;
	uint64_t start = *address;
	const char *name = symbols_find(symbols, *address, &start);

	*address = start;
	*module = NULL;
	return (char *)name;
}

static void set_how(struct printer *p, struct kind *kind)
{
	struct tep_event *event = kind->event;

	/* Plugins have static buffers (kvm), and remember what they printed (function) */
	kind->how = event->handler ? TEXT_TEP_ORDERED : TEXT_TEP;
	if (event->flags & (int)(TEP_EVENT_FL_FAILED | TEP_EVENT_FL_ISBPRINT)) {
		/* One record of trace_printk() that does not parse makes all later ones fail */
		kind->how = TEXT_TEP_ORDERED;
		return;
	}
	if (p->config.by_libtraceevent)
		return;
	kind->print = print_compile(event, p->decoder, !p->config.no_plugins);
	if (kind->print) {
		kind->how = TEXT_COMPILED;
	} else if (print_bounds_new(event, p->symbols.symbols, &kind->bounds) != 0) {
		event->flags |= (int)TEP_EVENT_FL_FAILED; /* it prints the fields */
		kind->how = TEXT_TEP_ORDERED;
	}
}

static bool has_short_words(const struct tep_event *event)
{
	for (const struct tep_format_field *f = event->format.fields; f; f = f->next)
		if (f->flags & TEP_FIELD_IS_DYNAMIC && f->size == 2)
			return true;
	return false;
}

/* Are there newlines that no string in the record has made? A stack is printed in lines. */
static bool has_lines(const struct tep_event *event)
{
	const char *format = event->print_fmt.format;

	return (format && !(event->flags & (int)TEP_EVENT_FL_FAILED) &&
		(strstr(format, "\\n") || strchr(format, '\n'))) ||
	       (plugins_is(event, "plugin_function.so") &&
		strcmp(event->name, "kernel_stack") == 0);
}

static void find_header(const struct printer *p, size_t format, struct kind *kind)
{
	size_t n;
	const struct field *fields = decoder_fields(p->decoder, format, &n);

	if (fields && event_header_is(fields, n))
		kind->header = fields[0];
}

static struct kind *new_kind(struct printer *p, int32_t format)
{
	struct kind *kind = calloc(1, sizeof(*kind));

	if (!kind)
		return NULL;
	kind->event = decoder_parse(p->decoder, p->tep, (size_t)format);
	if (!kind->event)
		return kind;
	kind->label = strf(" %s: %*s", kind->event->name,
			   (int)(20 - MIN(strlen(kind->event->name), (size_t)20)), "");
	if (!kind->label) {
		free(kind);
		return NULL;
	}
	kind->label_size = strlen(kind->label);
	if (!p->config.by_libtraceevent)
		find_header(p, (size_t)format, kind);
	set_how(p, kind);
	kind->short_words = has_short_words(kind->event);
	kind->lines = has_lines(kind->event);
	return kind;
}

/* NULL without memory */
static struct kind *find_kind(struct printer *p, uint32_t id)
{
	int32_t format = decoder_find(p->decoder, id);

	if (format < 0)
		return &p->unknown;
	if (!p->kinds[format])
		p->kinds[format] = new_kind(p, format);
	return p->kinds[format];
}

enum text_how printer_how(struct printer *printer, uint32_t id, struct tep_event **ret)
{
	const struct kind *kind = find_kind(printer, id);

	if (!kind || !kind->event)
		return TEXT_UNKNOWN;
	*ret = kind->event;
	return kind->how;
}

static void free_kind(struct kind *kind)
{
	if (!kind)
		return;
	print_free(kind->print);
	print_bounds_free(kind->bounds);
	free(kind->label);
	free(kind);
}

/* --- the line */

static void put_buffer(const struct printer *p, const struct decode_event *event, struct text *out)
{
	const char *name = p->dat->buffers[event->buffer].name;

	if (p->dat->n_buffers < 2)
		return;
	text_fill(out, ' ', p->buffer_width - MIN(strlen(name), p->buffer_width));
	text_data(out, name, strlen(name));
	/* the file's own ring buffer has no name */
	text_string(out, event->buffer == 0 ? "  " : ": ");
}

static void put_loss(const struct decode_event *event, struct text *out)
{
	if (event->missed == 0)
		return;
	text_string(out, "CPU:");
	text_u64(out, event->cpu);
	text_string(out, " [");
	if (event->missed > 0) {
		text_i64(out, event->missed);
		text_char(out, ' ');
	}
	text_string(out, "EVENTS DROPPED]\n");
}

static void put_time(struct printer *p, const struct decode_event *event, struct text *out)
{
	uint64_t ts =
		event->ts - (p->config.time.mode == EVENT_TIME_TRACE ? p->config.time.zero : 0);
	uint64_t usecs = (ts + 500) / 1000;

	if (p->config.time.mode != EVENT_TIME_EPOCH && p->config.time.mode != EVENT_TIME_TRACE) {
		event_time_put(&p->config.time, ts, out);
	} else if (decoder_facts(p->decoder)->in_usecs) {
		text_char(out, ' ');
		text_u64_wide(out, usecs / USEC_PER_SEC, 5, ' ');
		text_char(out, '.');
		text_u64_wide(out, usecs % USEC_PER_SEC, 6, '0');
	} else {
		text_u64_wide(out, ts, 12, ' ');
	}
	text_char(out, ':');
}

static void put_task(const struct decode_event *event, struct text *out)
{
	size_t before;

	text_fill(out, ' ', event->task->padding);
	text_data(out, event->task->text, event->task->size);
	text_char(out, '-');
	before = out->size;
	text_i64(out, event->pid);
	before = out->size - before;
	text_fill(out, ' ', before < 5 ? 5 - before : 0);
	text_string(out, " [");
	text_u64_wide(out, event->cpu, 3, '0');
	text_char(out, ']');
}

/* Of an offset beyond the record, libtraceevent makes a length of almost 4 GiB */
static void fit_short_words(const struct tep_event *event, bool big_endian, uint32_t size,
			    uint8_t *data)
{
	for (const struct tep_format_field *f = event->format.fields; f; f = f->next) {
		uint8_t *word = data + f->offset;

		if (!(f->flags & TEP_FIELD_IS_DYNAMIC) || f->size != 2 ||
		    (big_endian ? word[0] << 8 | word[1] : word[1] << 8 | word[0]) <= (int)size)
			continue;
		word[big_endian] = (uint8_t)size;
		word[!big_endian] = (uint8_t)(size >> 8);
	}
}

static uint8_t *pad(struct printer *p, const struct kind *kind, const struct decode_event *event)
{
	if (p->padded_size < event->size + PADDING) {
		uint8_t *more = realloc(p->padded, event->size + PADDING);

		if (!more)
			return NULL;
		p->padded = more;
		p->padded_size = event->size + PADDING;
		memset(more, 0, p->padded_size);
	}
	memcpy(p->padded, event->data, event->size);
	if (kind->short_words)
		fit_short_words(kind->event, event->big_endian, event->size, p->padded);
	return p->padded;
}

static bool is_out_of_bounds(const struct kind *kind, const struct decode_event *event)
{
	return kind->bounds && !print_bounds_hold(kind->bounds, event);
}

static int put_by_tep(struct printer *p, const struct kind *kind, const struct decode_event *event,
		      struct text *out)
{
	struct tep_record record = {
		.ts = event->ts,
		.size = (int)event->size,
		.record_size = (int)event->size,
		.data = pad(p, kind, event),
		.cpu = (int)event->cpu,
		.ref_count = 1,
	};

	const bool by_fields = is_out_of_bounds(kind, event);
	const int flags = kind->event->flags;

	if (!record.data)
		return -ENOMEM;
	trace_seq_reset(&p->seq);
	if (by_fields)
		kind->event->flags |= (int)TEP_EVENT_FL_FAILED;
	tep_print_event(p->tep, &p->seq, &record, "%s", TEP_PRINT_INFO);
	if (by_fields)
		kind->event->flags = flags;
	memset(p->padded, 0, event->size + 2); /* a short word may lie across the end */
	if (p->seq.state == TRACE_SEQ__MEM_ALLOC_FAILED)
		return -ENOMEM;
	if (kind->lines && !by_fields)
		text_bytes(out, p->seq.buffer, p->seq.len);
	else
		text_data(out, p->seq.buffer, p->seq.len);
	return 0;
}

static int put_body(struct printer *p, const struct kind *kind, const struct decode_event *event,
		    struct text *out)
{
	switch (kind->how) {
	case TEXT_UNKNOWN:
		text_printf(out, " [UNKNOWN EVENT %u]", event->id);
		return 0;
	case TEXT_COMPILED:
		print_put(kind->print, event, &p->symbols, out);
		return 0;
	case TEXT_TEP:
	case TEXT_TEP_ORDERED:
		return put_by_tep(p, kind, event, out);
	}
	return -EINVAL;
}

int printer_put(struct printer *printer, const struct decode_event *event, bool ordered,
		struct text *out)
{
	const struct kind *kind;
	size_t begin = out->size;
	int r;

	if (printer->json)
		return json_printer_put(printer->json, event, out);
	kind = find_kind(printer, event->id);
	if (!kind)
		return -ENOMEM;
	/* How it prints a field depends on the ones before */
	if (!ordered && (kind->how == TEXT_TEP_ORDERED || is_out_of_bounds(kind, event)))
		return PRINTER_E_ORDER;
	out->escape = printer->config.escape;
	if (event->new_day)
		event_time_put_day(&printer->config.time, event->ts, out);
	put_buffer(printer, event, out);
	put_loss(event, out);
	put_task(event, out);
	put_time(printer, event, out);
	text_bytes(out, kind->label, kind->label_size);
	r = put_body(printer, kind, event, out);
	if (kind->header.size > 0)
		event_header_text(event, &kind->header, out);
	if (r < 0 || out->no_memory)
		return -ENOMEM;
	text_end(out, begin);
	text_char(out, '\n');
	return out->no_memory ? -ENOMEM : 0;
}

/* --- */

int printer_new(const struct decoder *decoder, const struct printer_config *config,
		struct printer **ret)
{
	_cleanup_(printer_freep) struct printer *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	if (config->form == PRINTER_JSON) {
		int r = json_printer_new(decoder, &p->json);

		if (r >= 0)
			*ret = TAKE_PTR(p);
		return r;
	}
	p->decoder = decoder;
	p->dat = decoder_dat(decoder);
	p->config = *config;
	for (size_t i = 1; i < p->dat->n_buffers; i++)
		p->buffer_width = MAX(p->buffer_width, strlen(p->dat->buffers[i].name));
	p->kinds = calloc(MAX(p->dat->n_formats, (size_t)1), sizeof(struct kind *));
	p->tep = decoder_handle(decoder);
	if (!p->tep || !p->kinds)
		return -ENOMEM;
	trace_seq_init(&p->seq);
	p->symbols.symbols = decoder_symbols(decoder);
	p->plugins = !config->no_plugins && plugins_add(p->tep);
	if (!p->symbols.symbols || tep_set_function_resolver(p->tep, resolve, &p->symbols) < 0 ||
	    symbols_give(p->symbols.symbols, p->tep) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(p);
	return 0;
}

struct printer *printer_free(struct printer *printer)
{
	if (!printer)
		return NULL;
	json_printer_free(printer->json);
	for (size_t i = 0; printer->kinds && i < printer->dat->n_formats; i++)
		free_kind(printer->kinds[i]);
	free(printer->kinds);
	if (printer->plugins)
		plugins_remove(printer->tep);
	if (printer->seq.buffer)
		trace_seq_destroy(&printer->seq);
	free(printer->padded);
	tep_free(printer->tep);
	free(printer);
	return NULL;
}
