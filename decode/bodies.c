/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kinds of events, each looked at by a formatter when the first of it comes: formats of thousands
 * of events are in a file of a few kinds. libtraceevent's handles are not for several threads, so
 * that each formatter has its own; and since it keeps some things in static variables, one thread
 * at a time calls it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "decode/decode-internal.h"
#include "decode/plugins.h"

/* libtraceevent reads beyond a record where its bytes say so: then it finds zeros */
#define PADDING (4 * DECODE_MAX_FIELD)

#define MAX_FIELDS 1024U /* of an event; more are none of the kernel's */

static char *resolve(void *priv, unsigned long long *address, char **module)
{
	struct decode_tools *tools = priv;
	uint64_t start = *address;
	const char *name = kallsyms_cache_find(&tools->symbols, *address, &start);

	*address = start;
	*module = NULL;
	return (char *)name;
}

struct tep_handle *decode_new_tep(const struct decoder *decoder)
{
	struct tep_handle *tep = tep_alloc();

	if (!tep)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE); /* of formats that do not parse, verify tells */
	tep_set_file_bigendian(tep, decoder->dat->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, (int)decoder->dat->long_size);
	tep_set_page_size(tep, (int)decoder->dat->page_size);
	return tep;
}

static bool fields_sound(const struct tep_format_field *field)
{
	for (unsigned n = 1; field; field = field->next, n++)
		if (n > MAX_FIELDS || field->offset < 0 || field->size < 0 ||
		    (unsigned)field->offset > DECODE_MAX_FIELD ||
		    (unsigned)field->size > DECODE_MAX_FIELD ||
		    (unsigned)field->elementsize > DECODE_MAX_FIELD)
			return false;
	return true;
}

struct tep_event *decode_parse(struct decoder *decoder, struct tep_handle *tep, size_t i)
{
	const struct trace_dat_format *format = &decoder->dat->formats[i];
	struct tep_event *event = NULL;

	pthread_mutex_lock(&decoder->tep_lock);
	/* parsing it twice would make two of it */
	event = tep_find_event_by_name(tep, decoder->dat->systems[format->system],
				       decoder->formats[i].name);
	if (!event)
		(void)tep_parse_format(tep, &event, decoder->formats[i].text,
				       strlen(decoder->formats[i].text),
				       decoder->dat->systems[format->system]);
	pthread_mutex_unlock(&decoder->tep_lock);
	if (!event || !fields_sound(event->format.common_fields) ||
	    !fields_sound(event->format.fields))
		return NULL;
	return event;
}

bool decode_may_be_native(const struct formatter *f, const struct tep_event *event,
			  const char *plugin)
{
	return f->native && (!event->handler || decode_handler_is(event, plugin));
}

bool decode_handler_is(const struct tep_event *event, const char *plugin)
{
	const char *slash;
	Dl_info info;

	if (!event->handler || !dladdr((void *)(uintptr_t)event->handler, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return strcmp(slash ? slash + 1 : info.dli_fname, plugin) == 0;
}

/*
 * "%*d": libtraceevent would fill up to any width that a record tells, which takes hours for a big
 * one. A precision only ends a string, with 'p' it counts bytes.
 */
static bool has_star_width(const char *format)
{
	for (const char *p = format; p && (p = strchr(p, '%')); p++) {
		const char *end = p + 1 + strspn(p + 1, "#+- .*hlLzZqtj0123456789");
		const char *star = memchr(p, '*', (size_t)(end - p));

		if (star && star[-1] != '.' && *end != 'p')
			return true;
		p = end - (*end == '\0' || *end == '%');
	}
	return false;
}

static void set_how(struct formatter *f, struct event_kind *kind)
{
	struct tep_event *event = kind->event;

	/* One record of trace_printk() that does not parse makes all later ones fail */
	if (event->flags & (int)(TEP_EVENT_FL_FAILED | TEP_EVENT_FL_ISBPRINT) ||
	    (decode_handler_is(event, "plugin_function.so") &&
	     strcmp(event->name, "kernel_stack") != 0 && strcmp(event->name, "raw_data") != 0)) {
		kind->how = EVENT_TEP_ORDERED;
		return;
	}
	kind->how = EVENT_TEP;
	if (f->by_libtraceevent)
		return;
	if (decode_native(f, kind)) {
		kind->how = EVENT_NATIVE;
		return;
	}
	if (event->handler && !kind->native)
		return;
	if (body_compile(event, f->decoder->symbols, &kind->body) == 0) {
		kind->how = EVENT_BODY;
	} else if (has_star_width(event->print_fmt.format)) {
		event->flags |= (int)TEP_EVENT_FL_FAILED; /* it prints the fields */
		kind->how = EVENT_TEP_ORDERED;
	}
}

/* Are there newlines that no string in the record has made? A stack is printed in lines. */
static bool has_lines(const struct tep_event *event)
{
	const char *format = event->print_fmt.format;

	return (format && !(event->flags & (int)TEP_EVENT_FL_FAILED) &&
		(strstr(format, "\\n") || strchr(format, '\n'))) ||
	       (decode_handler_is(event, "plugin_function.so") &&
		strcmp(event->name, "kernel_stack") == 0);
}

static struct event_kind *new_kind(struct formatter *f, uint32_t id, int32_t format)
{
	struct event_kind *kind = calloc(1, sizeof(*kind));
	int n;

	if (!kind)
		return NULL;
	kind->event = decode_parse(f->decoder, f->tep, (size_t)format);
	if (!kind->event || (uint32_t)kind->event->id != id) {
		kind->event = NULL;
		return kind;
	}
	n = asprintf(&kind->label, " %s: %*s", kind->event->name,
		     (int)(20 - MIN(strlen(kind->event->name), (size_t)20)), "");
	if (n < 0) {
		free(kind);
		return NULL;
	}
	kind->label_size = (size_t)n;
	set_how(f, kind);
	kind->lines = has_lines(kind->event);
	return kind;
}

const struct event_kind *decode_kind(struct formatter *f, uint32_t id)
{
	int32_t format = decoder_find(f->decoder, id);

	if (format < 0)
		return &f->unknown;
	if (!f->kinds[format])
		f->kinds[format] = new_kind(f, id, format);
	return f->kinds[format];
}

int formatter_new(struct decoder *decoder, bool plugins, struct formatter **ret)
{
	_cleanup_(formatter_freep) struct formatter *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->decoder = decoder;
	f->tep = decode_new_tep(decoder);
	f->kinds = calloc(MAX(decoder->dat->n_formats, (size_t)1), sizeof(struct event_kind *));
	if (!f->tep || !f->kinds)
		return -ENOMEM;
	trace_seq_init(&f->seq);
	f->tools.symbols.symbols = decoder->symbols;
	f->tools.printk = decoder->printk;
	f->native = plugins;
	f->plugins = plugins && plugins_add(f->tep);
	if (tep_set_function_resolver(f->tep, resolve, &f->tools) < 0 ||
	    printk_formats_give(decoder->printk, f->tep) < 0)
		return -ENOMEM;
	/* the common fields of all events are taken from the first one */
	if (!decode_parse(decoder, f->tep, decoder->base))
		return -ENOMEM;
	*ret = TAKE_PTR(f);
	return 0;
}

static void free_kind(struct event_kind *kind)
{
	if (!kind)
		return;
	json_plan_free(kind->json);
	body_free(kind->body);
	free(kind->label);
	free(kind);
}

struct formatter *formatter_free(struct formatter *formatter)
{
	if (!formatter)
		return NULL;
	for (size_t i = 0; formatter->kinds && i < formatter->decoder->dat->n_formats; i++)
		free_kind(formatter->kinds[i]);
	free(formatter->kinds);
	if (formatter->plugins)
		plugins_remove(formatter->tep);
	if (formatter->seq.buffer)
		trace_seq_destroy(&formatter->seq);
	text_done(&formatter->tools.scratch);
	free(formatter->padded);
	tep_free(formatter->tep);
	free(formatter);
	return NULL;
}

void formatter_times(struct formatter *formatter, const struct event_time *time)
{
	formatter->time = *time;
}

void formatter_escape(struct formatter *formatter, enum text_escape escape)
{
	formatter->escape = escape;
}

bool formatter_has_plugins(const struct formatter *formatter)
{
	return formatter->plugins;
}

void formatter_by_libtraceevent(struct formatter *formatter, bool yes)
{
	formatter->by_libtraceevent = yes;
}

static uint8_t *pad(struct formatter *f, const struct decode_event *event)
{
	if (f->padded_size < event->size + PADDING) {
		uint8_t *p = realloc(f->padded, event->size + PADDING);

		if (!p)
			return NULL;
		f->padded = p;
		f->padded_size = event->size + PADDING;
		memset(p, 0, f->padded_size);
	}
	memcpy(f->padded, event->data, event->size);
	return f->padded;
}

int decode_by_tep(struct formatter *f, const struct event_kind *kind,
		  const struct decode_event *event, struct text *out)
{
	struct tep_record record = {
		.ts = event->ts,
		.size = (int)event->size,
		.record_size = (int)event->size,
		.data = pad(f, event),
		.cpu = (int)event->cpu,
		.ref_count = 1,
	};

	if (!record.data)
		return -ENOMEM;
	trace_seq_reset(&f->seq);
	pthread_mutex_lock(&f->decoder->tep_lock);
	tep_print_event(f->tep, &f->seq, &record, "%s", TEP_PRINT_INFO);
	pthread_mutex_unlock(&f->decoder->tep_lock);
	memset(f->padded, 0, event->size);
	if (f->seq.state == TRACE_SEQ__MEM_ALLOC_FAILED)
		return -ENOMEM;
	if (kind->lines)
		text_bytes(out, f->seq.buffer, f->seq.len);
	else
		text_data(out, f->seq.buffer, f->seq.len);
	return 0;
}
