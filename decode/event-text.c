/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "basic/escape.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "decode/event-text.h"
#include "decode/print/print.h"

#define FIELDS_MAX 512U /* bytes of text: it goes into a file's header */

struct event_text {
	struct tep_handle *tep;
	int dir_fd; /* borrowed */
};

void event_text_free(struct event_text *text)
{
	if (!text)
		return;
	tep_free(text->tep);
	free(text);
}

int event_text_new(int dir_fd, struct event_text **ret, struct fault *why)
{
	struct event_text *text = calloc(1, sizeof(*text));

	if (text)
		text->tep = tep_alloc();
	if (!text || !text->tep) {
		free(text);
		return fault_errno(why, -ENOMEM, "cannot decode events");
	}
	text->dir_fd = dir_fd;
	/* Of this very machine */
	tep_set_long_size(text->tep, sizeof(long));
	tep_set_file_bigendian(text->tep, tep_is_local_bigendian(text->tep));
	*ret = text;
	return 0;
}

int event_text_add(struct event_text *text, const char *system, const char *name, uint32_t *ret_id,
		   struct fault *why)
{
	_cleanup_free_ char *path = strf("events/%s/%s/format", system, name), *format = NULL;
	struct tep_event *event;
	size_t size;
	int r;

	if (!path)
		return fault_errno(why, -ENOMEM, "cannot decode events");
	r = io_read_file_at(text->dir_fd, path, &format, &size);
	if (r < 0)
		return fault_errno(why, r, "cannot read %s", path);
	/* A print format that libtraceevent cannot make sense of is no reason to do without */
	(void)tep_parse_event(text->tep, format, size, system);
	event = tep_find_event_by_name(text->tep, system, name);
	if (!event)
		return fault_set(why, -EBADMSG, "cannot make sense of %s", path);
	*ret_id = (uint32_t)event->id;
	return 0;
}

uint32_t event_text_id(const void *data, size_t size)
{
	uint16_t id;

	if (size < sizeof(id))
		return UINT32_MAX;
	memcpy(&id, data, sizeof(id));
	return id;
}

static struct tep_format_field *find_field(struct event_text *text, const void *data, size_t size,
					   const char *name)
{
	struct tep_record record = {.data = (void *)data, .size = (int)size};
	struct tep_event *event = tep_find_event_by_record(text->tep, &record);
	struct tep_format_field *field = event ? tep_find_any_field(event, name) : NULL;

	return field && (size_t)field->offset + (size_t)field->size <= size ? field : NULL;
}

bool event_text_number(struct event_text *text, const void *data, size_t size, const char *name,
		       uint64_t *ret)
{
	struct tep_format_field *field = find_field(text, data, size, name);
	unsigned long long value;

	if (!field || tep_read_number_field(field, data, &value) != 0)
		return false;
	*ret = value;
	return true;
}

void event_text_string(struct event_text *text, const void *data, size_t size, const char *name,
		       char *ret, size_t ret_size)
{
	struct tep_format_field *field = find_field(text, data, size, name);

	(void)snprintf(ret, ret_size, "%.*s", field ? field->size : 0,
		       field ? (const char *)data + field->offset : "");
}

/* Its name now: the event is milliseconds old. "?" if it has ended */
static void task_name(int pid, char *ret, size_t size)
{
	_cleanup_free_ char *name = NULL;
	char path[32], *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	(void)snprintf(ret, size, "%s", pid == 0 ? "<idle>" : "?");
	if (pid == 0 || io_read_file_at(AT_FDCWD, path, &name, NULL) < 0)
		return;
	end = strrchr(name, '\n'); /* the kernel's; others are the task's */
	if (end)
		*end = '\0';
	if (escape_replace(&name) >= 0)
		(void)snprintf(ret, size, "%s", name);
}

/* Of one beyond its bounds, which libtraceevent would not keep to, only the fields */
static void print_info(struct event_text *text, struct tep_event *event, struct tep_record *record,
		       struct trace_seq *seq)
{
	const struct decode_event bounded = {
		.data = record->data,
		.size = (uint32_t)record->size,
		.big_endian = __BYTE_ORDER == __BIG_ENDIAN,
	};
	_cleanup_(print_bounds_freep) struct print_bounds *bounds = NULL;
	const int flags = event->flags;

	if (print_bounds_new(event, NULL, &bounds) != 0 ||
	    (bounds && !print_bounds_hold(bounds, &bounded)))
		event->flags |= (int)TEP_EVENT_FL_FAILED;
	tep_print_event(text->tep, seq, record, "%s", TEP_PRINT_INFO);
	event->flags = flags;
}

char *event_text_describe(struct event_text *text, unsigned cpu, const void *data, size_t size)
{
	struct tep_record record = {
		.cpu = (int)cpu,
		.data = (void *)data,
		.size = (int)size,
		.record_size = (int)size,
	};
	struct tep_event *event = tep_find_event_by_record(text->tep, &record);
	struct trace_seq seq;
	_cleanup_free_ char *shown = NULL;
	char name[64], none[] = "", *fields = none, *lines = NULL;
	int pid;

	if (!event)
		return NULL;
	pid = tep_data_pid(text->tep, &record);
	task_name(pid, name, sizeof(name));
	trace_seq_init(&seq);
	print_info(text, event, &record, &seq);
	(void)trace_seq_terminate(&seq);
	if (seq.state == TRACE_SEQ__GOOD)
		fields = seq.buffer;
	/* One line, whatever a string of the event has in it */
	for (char *c = fields; *c; c++)
		if (*c == '\n')
			*c = ' ';
	shown = escape_text(fields, false);
	if (shown)
		lines = strf("event: %s:%s%s%.*s\ncpu: %u\ntask: %s-%d\n", event->system,
			     event->name, *fields ? " " : "", (int)FIELDS_MAX, shown, cpu, name,
			     pid);
	trace_seq_destroy(&seq);
	return lines;
}
