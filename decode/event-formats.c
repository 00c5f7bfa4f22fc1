/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "basic/strv.h"
#include "decode/event-formats.h"
#include "decode/format-guard.h"

#define MAX_FORMAT  (4 * MIB)
#define MAX_FIELD   65536U /* fields end before; a bigger one is none of the kernel's */
#define MAX_FIELDS  1024U  /* of an event; more are none of the kernel's */
#define MAX_REFUSED 10U	   /* formats that are named */

struct format {
	char *text, *name;
	uint32_t id;
	bool known; /* the fields are */
	struct field *fields;
	size_t n_fields;
};

struct event_formats {
	const struct trace_dat *dat;
	struct format *list; /* as in dat->formats, guarded */
	int32_t by_id[SUBBUF_EVENT_IDS];
	size_t base; /* one that is sound, from which the common fields are known */
	struct event_common common;
	struct tep_handle *tep; /* for the fields; under the lock */
	char **warnings;
};

/* libtraceevent's static buffers are the process's */
static pthread_mutex_t parsing = PTHREAD_MUTEX_INITIALIZER;

/* --- loading */

/* "\nID: N\n" */
static bool find_id(const char *text, uint32_t *ret)
{
	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, "ID:", 3) == 0)
			return sscanf(p + 3, " %" SCNu32, ret) == 1;
	}
	return false;
}

/* "name: WORD" */
static char *find_name(const char *text)
{
	if (strncmp(text, "name:", 5) != 0)
		return strdup("");
	text += 5;
	text += strspn(text, " \t");
	return strndup(text, strcspn(text, " \t\n"));
}

static int warn(struct event_formats *f, char *line)
{
	int r = line ? strv_append(&f->warnings, line) : -ENOMEM;

	free(line);
	return r;
}

/* libtraceevent's own parser never sees the rest of a format that is refused */
static int guard(struct event_formats *f, size_t i, size_t *n_refused)
{
	const char *why;
	char *line;

	format_guard(f->list[i].text, &why);
	if (!why || ++*n_refused > MAX_REFUSED)
		return 0;
	if (asprintf(&line, "%s:%s: print format with %s, showing the fields",
		     f->dat->systems[f->dat->formats[i].system], f->list[i].name, why) < 0)
		line = NULL;
	return warn(f, line);
}

static int load(struct event_formats *f, struct fault *why)
{
	const struct trace_dat *dat = f->dat;
	size_t n_refused = 0;
	char *line;

	memset(f->by_id, 0xff, sizeof(f->by_id)); /* all -1 */
	f->list = calloc(MAX(dat->n_formats, (size_t)1), sizeof(*f->list));
	if (!f->list)
		return -ENOMEM;
	for (size_t i = 0; i < dat->n_formats; i++) {
		struct format *format = &f->list[i];
		int r;

		r = trace_dat_load(dat, &dat->formats[i].text, MAX_FORMAT, &format->text, why);
		if (r < 0)
			return r;
		format->name = find_name(format->text);
		if (!format->name)
			return -ENOMEM;
		if (!find_id(format->text, &format->id))
			format->id = UINT32_MAX;
		if (format->id < SUBBUF_EVENT_IDS && f->by_id[format->id] < 0)
			f->by_id[format->id] = (int32_t)i;
		r = guard(f, i, &n_refused);
		if (r < 0)
			return r;
	}
	if (n_refused <= MAX_REFUSED)
		return 0;
	if (asprintf(&line, "%zu more such print formats", n_refused - MAX_REFUSED) < 0)
		line = NULL;
	return warn(f, line);
}

/* --- parsing */

static bool fields_sound(const struct tep_format_field *field)
{
	for (unsigned n = 1; field; field = field->next, n++)
		if (n > MAX_FIELDS || field->offset < 0 || field->size < 0 ||
		    (unsigned)field->offset > MAX_FIELD || (unsigned)field->size > MAX_FIELD ||
		    (unsigned)field->elementsize > MAX_FIELD)
			return false;
	return true;
}

static struct tep_event *parse(const struct event_formats *f, struct tep_handle *tep, size_t i)
{
	const char *system = f->dat->systems[f->dat->formats[i].system];
	/* parsing it twice would make two of it */
	struct tep_event *event = tep_find_event_by_name(tep, system, f->list[i].name);

	if (!event)
		(void)tep_parse_format(tep, &event, f->list[i].text, strlen(f->list[i].text),
				       system);
	if (!event || (uint32_t)event->id != f->list[i].id ||
	    !fields_sound(event->format.common_fields) || !fields_sound(event->format.fields))
		return NULL;
	return event;
}

struct tep_event *event_formats_parse(const struct event_formats *formats, struct tep_handle *tep,
				      size_t format)
{
	struct tep_event *event;

	pthread_mutex_lock(&parsing);
	event = parse(formats, tep, format);
	pthread_mutex_unlock(&parsing);
	return event;
}

static struct tep_handle *new_handle(const struct trace_dat *dat)
{
	struct tep_handle *tep = tep_alloc();

	if (!tep)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE); /* of formats that do not parse, verify tells */
	tep_set_file_bigendian(tep, dat->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, (int)dat->long_size);
	tep_set_page_size(tep, (int)dat->page_size);
	return tep;
}

struct tep_handle *event_formats_handle(const struct event_formats *formats)
{
	struct tep_handle *tep = new_handle(formats->dat);

	/* the common fields of all events are taken from the first one */
	if (tep && !event_formats_parse(formats, tep, formats->base)) {
		tep_free(tep);
		return NULL;
	}
	return tep;
}

static bool common_place(struct tep_event *event, const char *name, struct field *ret)
{
	const struct tep_format_field *field = tep_find_common_field(event, name);

	return field && field_place(field, ret);
}

/* All events have the same common fields: take them from the first format that parses */
static int find_common(struct event_formats *f)
{
	struct event_common *c = &f->common;

	for (size_t i = 0; i < f->dat->n_formats; i++) {
		struct tep_event *event = event_formats_parse(f, f->tep, i);
		struct field type;

		if (!event || !common_place(event, "common_type", &type) || type.offset != 0 ||
		    type.size != 2 || !common_place(event, "common_pid", &c->pid))
			continue;
		if (!common_place(event, "common_flags", &c->flags))
			c->flags = (struct field){};
		if (!common_place(event, "common_preempt_count", &c->preempt_count))
			c->preempt_count = (struct field){};
		f->base = i;
		return 0;
	}
	return -ENODATA;
}

/* The event's names are libtraceevent's, which keeps them */
static int copy_fields(struct format *format, const struct tep_event *event)
{
	size_t n = 0;

	for (const struct tep_format_field *from = event->format.fields; from; from = from->next)
		n++;
	format->fields = calloc(n + 1, sizeof(*format->fields));
	if (!format->fields)
		return -ENOMEM;
	for (const struct tep_format_field *from = event->format.fields; from; from = from->next) {
		struct field *field = &format->fields[format->n_fields];

		if (!field_place(from, field))
			continue;
		field->name = from->name;
		field->type = from->type;
		format->n_fields++;
	}
	return 0;
}

const struct field *event_formats_fields(struct event_formats *formats, size_t format,
					 size_t *ret_n)
{
	struct format *f = &formats->list[format];
	struct tep_event *event;

	pthread_mutex_lock(&parsing);
	if (!f->known) {
		event = parse(formats, formats->tep, format);
		f->known = !event || copy_fields(f, event) == 0;
	}
	pthread_mutex_unlock(&parsing);
	if (f->fields)
		*ret_n = f->n_fields;
	return f->fields;
}

/* --- what is known */

const struct event_common *event_formats_common(const struct event_formats *formats)
{
	return &formats->common;
}

char *const *event_formats_warnings(const struct event_formats *formats)
{
	return formats->warnings;
}

int32_t event_formats_by_id(const struct event_formats *formats, uint32_t id)
{
	return id < SUBBUF_EVENT_IDS ? formats->by_id[id] : -1;
}

int32_t event_formats_find(const struct event_formats *formats, const char *system,
			   const char *name)
{
	const struct trace_dat *dat = formats->dat;

	for (size_t i = 0; i < dat->n_formats; i++)
		if (strcmp(dat->systems[dat->formats[i].system], system) == 0 &&
		    strcmp(formats->list[i].name, name) == 0)
			return (int32_t)i;
	return -1;
}

uint32_t event_formats_id_of(const struct event_formats *formats, size_t format)
{
	return formats->list[format].id;
}

const char *event_formats_name(const struct event_formats *formats, size_t format)
{
	return formats->list[format].name;
}

int event_formats_new(const struct trace_dat *dat, struct event_formats **ret, struct fault *why)
{
	_cleanup_(event_formats_freep) struct event_formats *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->dat = dat;
	f->tep = new_handle(dat);
	r = f->tep ? load(f, why) : -ENOMEM;
	if (r < 0)
		return r;
	if (find_common(f) < 0)
		return fault_set(why, -EBADMSG,
				 "%s: no event format that names the type and the pid of an event",
				 dat->path);
	*ret = TAKE_PTR(f);
	return 0;
}

struct event_formats *event_formats_free(struct event_formats *formats)
{
	if (!formats)
		return NULL;
	for (size_t i = 0; formats->list && i < formats->dat->n_formats; i++) {
		free(formats->list[i].text);
		free(formats->list[i].name);
		free(formats->list[i].fields);
	}
	free(formats->list);
	strv_free(formats->warnings);
	tep_free(formats->tep);
	free(formats);
	return NULL;
}
