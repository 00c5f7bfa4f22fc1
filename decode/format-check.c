/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "decode/decoder.h"
#include "decode/format-check.h"
#include "decode/format-guard.h"

#define MAX_FORMAT (4 * MIB)

struct check {
	const struct trace_dat *dat;
	struct tep_handle *tep;
	uint32_t *least;
};

/*
 * The least data an event of this format has. A last field that is an array may be cut by the
 * kernel (stack traces) or empty; ftrace's own events are written by hand, their formats are no
 * promise.
 */
static uint32_t least_length(const struct tep_event *event, bool own)
{
	uint32_t least = 0;

	for (const struct tep_format_field *f = event->format.common_fields; f; f = f->next)
		if (f->offset >= 0 && f->size >= 0)
			least = MAX(least, (uint32_t)f->offset + (uint32_t)f->size);
	for (const struct tep_format_field *f = event->format.fields; f && !own; f = f->next)
		if (f->offset >= 0 && f->size >= 0 && (f->next || !(f->flags & TEP_FIELD_IS_ARRAY)))
			least = MAX(least, (uint32_t)f->offset + (uint32_t)f->size);
	return MIN(least, SUBBUF_UNKNOWN_ID - 1);
}

static int check_event(const struct check *c, size_t format, struct tep_event *event,
		       struct fault *why)
{
	const struct tep_format_field *type = tep_find_common_field(event, "common_type");
	const struct trace_dat_format *place = &c->dat->formats[format];
	const char *system = c->dat->systems[place->system];

	if (event->id < 0 || event->id >= SUBBUF_EVENT_IDS)
		return fault_set(why, -EBADMSG,
				 "%s: offset 0x%" PRIx64 ": the format of %s:%s has id %d, which "
				 "does not fit into 16 bits",
				 c->dat->path, place->text.offset, system, event->name, event->id);
	if (!type || type->offset != 0 || type->size != 2)
		return fault_set(why, -EBADMSG,
				 "%s: offset 0x%" PRIx64 ": the format of %s:%s does not begin "
				 "with a 16-bit common_type",
				 c->dat->path, place->text.offset, system, event->name);
	c->least[event->id] = least_length(event, place->system == 0);
	return 0;
}

static int check_format(const struct check *c, size_t format, struct fault *why)
{
	const struct trace_dat_format *place = &c->dat->formats[format];
	const char *system = c->dat->systems[place->system];
	_cleanup_free_ char *text = NULL;
	struct tep_event *event = NULL;
	char reason[128] = "";
	int r = trace_dat_load(c->dat, &place->text, MAX_FORMAT, &text, why);

	if (r < 0)
		return r;
	format_guard_fields(text);
	r = tep_parse_format(c->tep, &event, text, strlen(text), system);
	if (r == 0 && event)
		return check_event(c, format, event, why);
	/* "no memory" is what it says of a text without a name, too */
	if (r != TEP_ERRNO__MEM_ALLOC_FAILED)
		(void)tep_strerror(c->tep, (enum tep_errno)r, reason, sizeof(reason));
	return fault_set(why, -EBADMSG,
			 "%s: offset 0x%" PRIx64
			 ": an event format of system %s does not parse%s%s",
			 c->dat->path, place->text.offset, system, reason[0] ? ": " : "", reason);
}

int format_check(const struct trace_dat *dat, void (*on_fault)(void *userdata, const char *line),
		 void *userdata, uint32_t **ret_least)
{
	struct check c = {dat, decoder_new_handle(dat),
			  malloc(SUBBUF_EVENT_IDS * sizeof(*c.least))};
	struct fault why;
	int r = c.tep && c.least ? 0 : -ENOMEM;

	for (size_t i = 0; i < SUBBUF_EVENT_IDS && r >= 0; i++)
		c.least[i] = SUBBUF_UNKNOWN_ID;
	for (size_t i = 0; i < dat->n_formats && r != -ENOMEM; i++) {
		r = check_format(&c, i, &why);
		if (r < 0 && r != -ENOMEM)
			on_fault(userdata, why.text);
	}
	tep_free(c.tep);
	if (r == -ENOMEM) {
		free(c.least);
		return r;
	}
	*ret_least = c.least;
	return 0;
}
