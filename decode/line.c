/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A line of text for an event, as trace-cmd report prints it:
 *
 *	"  BUFFER: "  only if the file has several ring buffers
 *	"CPU:N [M EVENTS DROPPED]\n"  after a loss
 *	"            COMM-PID   [CPU]  SECONDS.USECS: EVENT:                TEXT\n"
 *
 * but for other times in the place of SECONDS.USECS, if they are asked for (decode/event-time.h).
 */
#include <errno.h>
#include <string.h>

#include "decode/decode-internal.h"

static void put_buffer(const struct decoder *d, const struct decode_event *event, struct text *out)
{
	const char *name = d->dat->buffers[event->buffer].name;

	if (d->dat->n_buffers < 2)
		return;
	text_fill(out, ' ', d->buffer_width - MIN(strlen(name), d->buffer_width));
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

static void put_time(struct formatter *f, const struct decode_event *event, struct text *out)
{
	uint64_t ts = event->ts - (f->time.mode == EVENT_TIME_TRACE ? f->time.zero : 0);
	uint64_t usecs = (ts + 500) / 1000;

	if (f->time.mode != EVENT_TIME_EPOCH && f->time.mode != EVENT_TIME_TRACE) {
		event_time_put(&f->time, ts, out);
	} else if (f->decoder->in_usecs) {
		text_char(out, ' ');
		text_u64_wide(out, usecs / USEC_PER_SEC, 5, ' ');
		text_char(out, '.');
		text_u64_wide(out, usecs % USEC_PER_SEC, 6, '0');
	} else {
		text_u64_wide(out, ts, 12, ' ');
	}
	text_char(out, ':');
}

static void put_task(const struct decoder *d, const struct decode_event *event, struct text *out)
{
	size_t before;

	text_fill(out, ' ', event->task->padding);
	text_data(out, event->task->text, event->task->size);
	text_char(out, '-');
	before = out->size;
	text_i64(out, decoder_pid(d, event));
	before = out->size - before;
	text_fill(out, ' ', before < 5 ? 5 - before : 0);
	text_string(out, " [");
	text_u64_wide(out, event->cpu, 3, '0');
	text_char(out, ']');
}

static int put_body(struct formatter *f, const struct event_kind *kind,
		    const struct decode_event *event, struct text *out)
{
	const struct decode_record record = decode_record(f->decoder, event);

	switch (kind->how) {
	case EVENT_UNKNOWN:
		text_printf(out, " [UNKNOWN EVENT %u]", decoder_id(f->decoder, event));
		return 0;
	case EVENT_NATIVE:
		kind->native(f, kind, event, out);
		return 0;
	case EVENT_BODY:
		if (kind->native)
			kind->native(f, kind, event, out);
		body_print(kind->body, &record, &f->tools, out);
		return 0;
	case EVENT_TEP:
	case EVENT_TEP_ORDERED:
		return decode_by_tep(f, kind, event, out);
	}
	return -EINVAL;
}

int formatter_text(struct formatter *formatter, const struct decode_event *event, bool ordered,
		   struct text *out)
{
	const struct decoder *d = formatter->decoder;
	const struct event_kind *kind = decode_kind(formatter, decoder_id(d, event));
	size_t begin = out->size;
	int r;

	if (!kind)
		return -ENOMEM;
	if (kind->how == EVENT_TEP_ORDERED && !ordered)
		return FORMATTER_E_ORDER;
	out->escape = formatter->escape;
	if (event->new_day)
		event_time_put_day(&formatter->time, event->ts, out);
	put_buffer(d, event, out);
	put_loss(event, out);
	put_task(d, event, out);
	put_time(formatter, event, out);
	text_bytes(out, kind->label, kind->label_size);
	r = put_body(formatter, kind, event, out);
	if (r < 0 || out->no_memory)
		return -ENOMEM;
	text_end(out, begin);
	text_char(out, '\n');
	return out->no_memory ? -ENOMEM : 0;
}
