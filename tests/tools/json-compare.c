/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json-compare FILE <JSON-LINES - does `flyrecctl export --format=json FILE` say what is in the
 * file? Each line is parsed by json-c and compared with the record that libtracecmd reads next on
 * that CPU: time, pid, names, and every field. Prints how many events and values agreed.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <string.h>
#include <trace-cmd.h>

#include "basic/macro.h"

#define MAX_CPUS    1024
#define MAX_BUFFERS 16

struct buffer {
	struct tracecmd_input *in;
	const char *name; /* NULL: the file's own */
	bool begun[MAX_CPUS];
};

struct comparison {
	struct buffer buffers[MAX_BUFFERS];
	int n_buffers;
	uint64_t line, values, strings, last_ts;
};

static _Noreturn void differs(const struct comparison *c, const char *what, const char *ours,
			      unsigned long long theirs)
{
	errx(1, "line %" PRIu64 ": %s is %s, the record has %llu", c->line, what, ours, theirs);
}

static struct json_object *get(const struct comparison *c, struct json_object *o, const char *key,
			       enum json_type type)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value))
		errx(1, "line %" PRIu64 ": no \"%s\"", c->line, key);
	if (json_object_get_type(value) != type)
		errx(1, "line %" PRIu64 ": \"%s\" is of another type", c->line, key);
	return value;
}

/* Numbers are compared with all their 64 bits */
static uint64_t number(struct json_object *o)
{
	int64_t i = json_object_get_int64(o);

	return i < 0 ? (uint64_t)i : json_object_get_uint64(o);
}

static uint64_t read_number(struct tep_handle *tep, const uint8_t *p, unsigned size, bool is_signed)
{
	uint64_t v = tep_read_number(tep, p, (int)size);

	switch (is_signed ? size : 0) {
	case 1:
		return (uint64_t)(int8_t)v;
	case 2:
		return (uint64_t)(int16_t)v;
	case 4:
		return (uint64_t)(int32_t)v;
	default:
		return v;
	}
}

static void compare_array(struct comparison *c, const struct tep_format_field *field,
			  struct json_object *o, const uint8_t *p, size_t size)
{
	struct tep_handle *tep = field->event->tep;
	size_t n = json_object_array_length(o), element = n ? size / n : 1;

	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_object_array_get_idx(o, i);
		uint64_t v = read_number(tep, p + i * element, (unsigned)element,
					 field->flags & TEP_FIELD_IS_SIGNED);

		if (number(e) != v)
			differs(c, field->name, json_object_get_string(e), v);
		c->values++;
	}
}

/* What is no UTF-8 comes back from json-c as U+FFFD: only the rest can be compared */
static void compare_string(struct comparison *c, const struct tep_format_field *field,
			   struct json_object *o, const char *p, size_t size)
{
	const char *ours = json_object_get_string(o);
	size_t n = strnlen(p, size);

	if (!strstr(ours, "\xef\xbf\xbd") && (strlen(ours) != n || memcmp(ours, p, n) != 0))
		errx(1, "line %" PRIu64 ": %s is \"%s\", the record has \"%.*s\"", c->line,
		     field->name, ours, (int)n, p);
	c->strings++;
}

static void compare_field(struct comparison *c, const struct tep_format_field *field,
			  struct json_object *o, const struct tep_record *record)
{
	struct tep_handle *tep = field->event->tep;
	const uint8_t *data = record->data;
	size_t offset = (size_t)field->offset, size = (size_t)field->size;
	uint64_t v;

	if (field->flags & TEP_FIELD_IS_DYNAMIC) {
		v = tep_read_number(tep, data + offset, field->size);
		size = (v >> 16) & 0xffff;
		offset = (v & 0xffff) +
			 (field->flags & TEP_FIELD_IS_RELATIVE ? offset + (size_t)field->size : 0);
	}
	if (size == 0 && !(field->flags & TEP_FIELD_IS_DYNAMIC))
		size = (size_t)record->size - offset;
	if (json_object_is_type(o, json_type_array)) {
		/* a stack goes on behind its field */
		if (strcmp(field->event->name, "kernel_stack") == 0)
			size = (size_t)record->size - offset;
		compare_array(c, field, o, data + offset, size);
	} else if (strstr(field->type, "cpumask")) {
		return;
	} else if (json_object_is_type(o, json_type_string)) {
		compare_string(c, field, o, (const char *)data + offset, size);
	} else {
		v = read_number(tep, data + offset, (unsigned)size,
				field->flags & TEP_FIELD_IS_SIGNED);
		if (json_object_is_type(o, json_type_boolean) ? json_object_get_boolean(o) != !!v
							      : number(o) != v)
			differs(c, field->name, json_object_get_string(o), v);
		c->values++;
	}
}

static struct buffer *find_buffer(struct comparison *c, struct json_object *line)
{
	struct json_object *name;

	if (!json_object_object_get_ex(line, "buffer", &name))
		return &c->buffers[0];
	for (int i = 1; i < c->n_buffers; i++)
		if (strcmp(c->buffers[i].name, json_object_get_string(name)) == 0)
			return &c->buffers[i];
	errx(1, "line %" PRIu64 ": no such buffer", c->line);
}

static void compare_line(struct comparison *c, struct json_object *line)
{
	struct buffer *b = find_buffer(c, line);
	int cpu = json_object_get_int(get(c, line, "cpu", json_type_int));
	struct json_object *fields = get(c, line, "fields", json_type_object);
	uint64_t ts = number(get(c, line, "ts", json_type_int));
	struct tep_handle *tep = tracecmd_get_tep(b->in);
	struct tep_record *record;
	struct tep_event *event;

	if (cpu < 0 || cpu >= MAX_CPUS)
		errx(1, "line %" PRIu64 ": cpu %d", c->line, cpu);
	record = b->begun[cpu] ? tracecmd_read_data(b->in, cpu)
			       : tracecmd_read_cpu_first(b->in, cpu);
	b->begun[cpu] = true;
	if (!record)
		errx(1, "line %" PRIu64 ": cpu %d has no such event", c->line, cpu);
	event = tep_find_event_by_record(tep, record);
	if (!event)
		errx(1, "line %" PRIu64 ": unknown event", c->line);
	if (ts != record->ts)
		differs(c, "ts", json_object_get_string(line), record->ts);
	if (ts < c->last_ts)
		errx(1, "line %" PRIu64 ": not in order", c->line);
	c->last_ts = ts;
	if (json_object_get_int(get(c, line, "pid", json_type_int)) != tep_data_pid(tep, record))
		differs(c, "pid", json_object_get_string(line),
			(unsigned)tep_data_pid(tep, record));
	if (strcmp(json_object_get_string(get(c, line, "event", json_type_string)), event->name) ||
	    strcmp(json_object_get_string(get(c, line, "system", json_type_string)), event->system))
		errx(1, "line %" PRIu64 ": not %s:%s", c->line, event->system, event->name);
	for (const struct tep_format_field *f = event->format.fields; f; f = f->next) {
		struct json_object *value;

		if (!json_object_object_get_ex(fields, f->name, &value))
			errx(1, "line %" PRIu64 ": no field %s", c->line, f->name);
		compare_field(c, f, value, record);
	}
	tracecmd_free_record(record);
}

/* Nothing may be left on any CPU */
static void compare_end(struct comparison *c)
{
	for (int i = 0; i < c->n_buffers; i++) {
		struct buffer *b = &c->buffers[i];
		int cpus = tep_get_cpus(tracecmd_get_tep(b->in));

		for (int cpu = 0; cpu < MIN(cpus, MAX_CPUS); cpu++) {
			struct tep_record *record = b->begun[cpu]
							    ? tracecmd_read_data(b->in, cpu)
							    : tracecmd_read_cpu_first(b->in, cpu);

			if (record)
				errx(1, "cpu %d: events are missing at the end", cpu);
		}
	}
}

static void open_file(struct comparison *c, const char *path)
{
	struct tracecmd_input *in = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);

	if (!in)
		errx(1, "libtracecmd cannot open %s", path);
	c->buffers[c->n_buffers++].in = in;
	for (int i = 0; i < tracecmd_buffer_instances(in) && c->n_buffers < MAX_BUFFERS; i++) {
		struct buffer *b = &c->buffers[c->n_buffers++];

		b->in = tracecmd_buffer_instance_handle(in, i);
		b->name = tracecmd_buffer_instance_name(in, i);
		if (!b->in || !b->name)
			errx(1, "libtracecmd cannot open buffer %d of %s", i, path);
	}
}

int main(int argc, char **argv)
{
	static struct comparison c;
	char *line = NULL;
	size_t room = 0;

	if (argc != 2)
		errx(2, "usage: json-compare FILE <JSON-LINES");
	tracecmd_set_loglevel(TEP_LOG_NONE);
	open_file(&c, argv[1]);
	while (getline(&line, &room, stdin) > 0) {
		struct json_object *o = json_tokener_parse(line);

		c.line++;
		if (!json_object_is_type(o, json_type_object))
			errx(1, "line %" PRIu64 ": not an object of JSON: %s", c.line, line);
		compare_line(&c, o);
		json_object_put(o);
	}
	compare_end(&c);
	free(line);
	printf("%" PRIu64 " events, %" PRIu64 " numbers, %" PRIu64 " strings\n", c.line, c.values,
	       c.strings);
	return 0;
}
