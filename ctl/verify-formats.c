/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "ctl/verify.h"
#include "decode/format-guard.h"

#define MAX_FORMAT_TEXT (4 * MIB)

static void free_tep(struct tep_handle **tep)
{
	tep_free(*tep);
}

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

static void take_event(const struct trace_dat *dat, const struct trace_dat_format *format,
		       struct tep_event *event, struct verify_report *report, uint32_t *least)
{
	const struct tep_format_field *type = tep_find_common_field(event, "common_type");

	if (event->id < 0 || event->id >= SUBBUF_EVENT_IDS)
		verify_report_fault(
			report, format->text.offset,
			"the format of %s:%s has id %d, which does not fit into 16 bits",
			dat->systems[format->system], event->name, event->id);
	else if (!type || type->offset != 0 || type->size != 2)
		verify_report_fault(report, format->text.offset,
				    "the format of %s:%s does not begin with a 16-bit common_type",
				    dat->systems[format->system], event->name);
	else
		least[event->id] = least_length(event, format->system == 0);
}

static int take_format(const struct trace_dat *dat, const struct trace_dat_format *format,
		       struct tep_handle *tep, struct verify_report *report, uint32_t *least)
{
	_cleanup_free_ char *text = NULL;
	struct tep_event *event = NULL;
	struct fault why;
	char reason[128] = "";
	int r;

	r = trace_dat_load(dat, &format->text, MAX_FORMAT_TEXT, &text, &why);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		verify_report_line(report, why.text);
		return 0;
	}
	format_guard_fields(text);
	r = tep_parse_format(tep, &event, text, strlen(text), dat->systems[format->system]);
	if (r != 0 || !event) {
		/* "no memory" is what it says of a text without a name, too */
		if (r != TEP_ERRNO__MEM_ALLOC_FAILED)
			(void)tep_strerror(tep, (enum tep_errno)r, reason, sizeof(reason));
		verify_report_fault(report, format->text.offset,
				    "an event format of system %s does not parse%s%s",
				    dat->systems[format->system], reason[0] ? ": " : "", reason);
		return 0;
	}
	take_event(dat, format, event, report, least);
	return 0;
}

int verify_formats(const struct trace_dat *dat, struct verify_report *report, uint32_t **ret_least)
{
	_cleanup_(free_tep) struct tep_handle *tep = tep_alloc();
	_cleanup_free_ uint32_t *least = malloc(SUBBUF_EVENT_IDS * sizeof(*least));
	int r;

	if (!tep || !least)
		return -ENOMEM;
	for (size_t i = 0; i < SUBBUF_EVENT_IDS; i++)
		least[i] = SUBBUF_UNKNOWN_ID;
	tep_set_loglevel(TEP_LOG_NONE); /* we say it ourselves */
	tep_set_file_bigendian(tep, dat->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, (int)dat->layout.commit_size);
	tep_set_page_size(tep, (int)dat->page_size);
	for (size_t i = 0; i < dat->n_formats; i++) {
		r = take_format(dat, &dat->formats[i], tep, report, least);
		if (r < 0)
			return r;
	}
	*ret_least = TAKE_PTR(least);
	return 0;
}
