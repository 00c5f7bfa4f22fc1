/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "decode/decoder.h"
#include "decode/event-formats.h"
#include "decode/kallsyms.h"
#include "decode/printk-formats.h"
#include "formats/trace-dat.h"

/* Bounds of what a bad file can make us read */
#define MAX_SYMBOLS  (256 * MIB)
#define MAX_CMDLINES (256 * MIB)
#define MAX_OPTION   (64 * KIB)

/* Where an event tells a task's name */
struct comm_source {
	const struct field *pid, *comm;
};

struct decoder {
	const struct trace_dat *dat;
	struct event_formats *formats;
	struct kallsyms *symbols;
	struct printk_formats *printk;

	bool in_usecs, has_date;
	int64_t offset;	      /* nanoseconds */
	uint32_t mult, shift; /* cycles to nanoseconds, if mult */

	struct {
		uint32_t id;
		size_t n;
		struct comm_source sources[2];
	} learn[3];
	size_t n_learn;
	struct field pid;
	int32_t graph_exit;	    /* format; -1: none */
	uint32_t entry_id, exit_id; /* if there is one */
	const struct field *entry_func, *exit_func;
};

static int load_tables(struct decoder *d, struct fault *why)
{
	char *text;
	int r;

	r = trace_dat_load(d->dat, &d->dat->kallsyms, MAX_SYMBOLS, &text, why);
	if (r < 0)
		return r;
	r = kallsyms_parse(text, &d->symbols);
	if (r < 0)
		return r;
	r = trace_dat_load(d->dat, &d->dat->printk_formats, MAX_SYMBOLS, &text, why);
	return r < 0 ? r : printk_formats_parse(text, &d->printk);
}

/*
 * The clocks that count nanoseconds, for trace-cmd; it takes boot for one that does not. It looks
 * at the option and at the text behind the first table, and either may say that they do not count.
 */
static bool clock_in_usecs(const char *text)
{
	static const char *const clocks[] = {"local", "global", "uptime",
					     "perf",  "tai",	"tsc2nsec"};
	const char *p = strchr(text, '[');
	size_t n;

	if (!p)
		return true; /* not readable: trace-cmd takes it for local */
	n = strcspn(++p, "]");
	if (strncmp(p, "mono", 4) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (strlen(clocks[i]) == n && strncmp(p, clocks[i], n) == 0)
			return true;
	return false;
}

static void take_option(struct decoder *d, const struct trace_dat_option_place *option,
			const char *data)
{
	switch (option->id) {
	case TRACE_DAT_OPTION_DATE:
		d->has_date = true;
		d->offset += (int64_t)((uint64_t)strtoll(data, NULL, 0) * NSEC_PER_USEC);
		break;
	case TRACE_DAT_OPTION_OFFSET:
		d->offset = (int64_t)((uint64_t)d->offset + (uint64_t)strtoll(data, NULL, 0));
		break;
	case TRACE_DAT_OPTION_TRACECLOCK:
		d->in_usecs &= clock_in_usecs(data);
		break;
	case TRACE_DAT_OPTION_TSC2NSEC:
		if (option->data.size < 16)
			break;
		d->mult = trace_dat_u32(d->dat, data);
		d->shift = trace_dat_u32(d->dat, data + 4) & 63;
		break;
	default:
		break;
	}
}

static int load_clock(struct decoder *d, struct fault *why)
{
	_cleanup_free_ char *clock = NULL;
	int r;

	r = trace_dat_clock(d->dat, &clock, why);
	if (r < 0)
		return r;
	d->in_usecs = clock_in_usecs(clock);
	for (size_t i = 0; i < d->dat->n_options; i++) {
		const struct trace_dat_option_place *option = &d->dat->options[i];
		_cleanup_free_ char *data = NULL;

		if (option->id != TRACE_DAT_OPTION_DATE && option->id != TRACE_DAT_OPTION_OFFSET &&
		    option->id != TRACE_DAT_OPTION_TRACECLOCK &&
		    option->id != TRACE_DAT_OPTION_TSC2NSEC)
			continue;
		r = trace_dat_load(d->dat, &option->data, MAX_OPTION, &data, why);
		if (r < 0)
			return r;
		take_option(d, option, data);
	}
	return 0;
}

/* The events that tell names: whether or not the plugin is installed that learns them */
static void find_learning(struct decoder *d)
{
	static const struct {
		const char *event, *pid[2], *comm[2];
	} known[] = {
		{"sched_switch", {"prev_pid", "next_pid"}, {"prev_comm", "next_comm"}},
		{"sched_wakeup", {"pid"}, {"comm"}},
		{"sched_wakeup_new", {"pid"}, {"comm"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		__typeof__(d->learn[0]) *l = &d->learn[d->n_learn];
		int32_t format = decoder_find_name(d, "sched", known[i].event);

		if (format < 0)
			continue;
		l->id = decoder_format_id(d, (size_t)format);
		l->n = 0;
		for (size_t k = 0; k < 2 && known[i].pid[k]; k++) {
			struct comm_source *s = &l->sources[l->n];

			s->pid = decoder_field(d, (size_t)format, known[i].pid[k]);
			s->comm = decoder_field(d, (size_t)format, known[i].comm[k]);
			l->n += s->pid && s->comm;
		}
		d->n_learn += l->n > 0;
	}
}

static void find_graph(struct decoder *d)
{
	int32_t entry = decoder_find_name(d, "ftrace", "funcgraph_entry");
	int32_t exit = decoder_find_name(d, "ftrace", "funcgraph_exit");

	d->graph_exit = -1;
	if (entry < 0 || exit < 0)
		return;
	d->entry_func = decoder_field(d, (size_t)entry, "func");
	d->exit_func = decoder_field(d, (size_t)exit, "func");
	if (!d->entry_func || !d->exit_func)
		return;
	d->entry_id = decoder_format_id(d, (size_t)entry);
	d->exit_id = decoder_format_id(d, (size_t)exit);
	d->graph_exit = exit;
}

int decoder_new(const struct trace_dat *dat, struct decoder **ret, struct fault *why)
{
	_cleanup_(decoder_freep) struct decoder *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	d->dat = dat;
	r = event_formats_new(dat, &d->formats, why);
	if (r >= 0)
		r = load_tables(d, why);
	if (r >= 0)
		r = load_clock(d, why);
	if (r == -ENOMEM)
		return fault_errno(why, r, "%s: cannot read", dat->path);
	if (r < 0)
		return r;
	d->pid = event_formats_common(d->formats)->pid;
	find_learning(d);
	find_graph(d);
	*ret = TAKE_PTR(d);
	return 0;
}

struct decoder *decoder_free(struct decoder *decoder)
{
	if (!decoder)
		return NULL;
	event_formats_free(decoder->formats);
	kallsyms_free(decoder->symbols);
	printk_formats_free(decoder->printk);
	free(decoder);
	return NULL;
}

const struct trace_dat *decoder_dat(const struct decoder *decoder)
{
	return decoder->dat;
}

char *const *decoder_warnings(const struct decoder *decoder)
{
	return event_formats_warnings(decoder->formats);
}

uint64_t decoder_time(const struct decoder *decoder, uint64_t ts)
{
	if (decoder->mult)
		ts = (uint64_t)((unsigned __int128)ts * decoder->mult >> decoder->shift);
	return ts + (uint64_t)decoder->offset;
}

bool decoder_in_usecs(const struct decoder *decoder)
{
	return decoder->in_usecs;
}

bool decoder_has_date(const struct decoder *decoder)
{
	return decoder->has_date;
}

int64_t decoder_offset(const struct decoder *decoder)
{
	return decoder->offset;
}

int32_t decoder_find(const struct decoder *decoder, uint32_t id)
{
	return event_formats_by_id(decoder->formats, id);
}

int32_t decoder_find_name(const struct decoder *decoder, const char *system, const char *name)
{
	return event_formats_find(decoder->formats, system, name);
}

const char *decoder_name(const struct decoder *decoder, size_t format)
{
	return event_formats_name(decoder->formats, format);
}

uint32_t decoder_format_id(const struct decoder *decoder, size_t format)
{
	return event_formats_id_of(decoder->formats, format);
}

const struct field *decoder_fields(const struct decoder *decoder, size_t format, size_t *ret_n)
{
	return event_formats_fields(decoder->formats, format, ret_n);
}

const struct field *decoder_field(const struct decoder *decoder, size_t format, const char *name)
{
	size_t n = 0;
	const struct field *fields = decoder_fields(decoder, format, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

void decoder_identify(const struct decoder *decoder, struct decode_event *event)
{
	event->big_endian = decoder->dat->big_endian;
	event->id = trace_dat_u16(decoder->dat, event->data);
	event->pid = (int32_t)field_number(&decoder->pid, event);
}

int decoder_new_tasks(const struct decoder *decoder, struct tasks **ret, struct fault *why)
{
	const struct trace_dat *dat = decoder->dat;
	_cleanup_free_ char *cmdlines = NULL;
	int r;

	r = trace_dat_load(dat, &dat->cmdlines, MAX_CMDLINES, &cmdlines, why);
	if (r < 0)
		return r;
	r = tasks_new(cmdlines, ret);
	return r < 0 ? fault_errno(why, r, "%s: cannot read", dat->path) : 0;
}

static int learn(const struct decoder *d, struct tasks *tasks, const struct decode_event *event)
{
	for (size_t i = 0; i < d->n_learn; i++) {
		if (d->learn[i].id != event->id)
			continue;
		for (size_t k = 0; k < d->learn[i].n; k++) {
			const struct comm_source *s = &d->learn[i].sources[k];
			uint32_t offset = s->comm->offset;
			int r;

			if (offset > event->size)
				continue;
			r = tasks_learn(tasks, (int32_t)field_number(s->pid, event),
					(const char *)event->data + offset,
					MIN(s->comm->size, event->size - offset));
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int decoder_task(const struct decoder *decoder, struct tasks *tasks, struct decode_event *event)
{
	event->task = tasks_find(tasks, event->pid);
	if (!event->task)
		return -ENOMEM;
	return learn(decoder, tasks, event);
}

bool decoder_is_leaf(const struct decoder *decoder, const struct decode_event *event,
		     const struct decode_event *next)
{
	return decoder->graph_exit >= 0 && event->id == decoder->entry_id &&
	       next->id == decoder->exit_id && event->buffer == next->buffer &&
	       event->cpu == next->cpu && event->pid == next->pid &&
	       field_number(decoder->entry_func, event) == field_number(decoder->exit_func, next);
}

const struct event_formats *decoder_formats(const struct decoder *decoder)
{
	return decoder->formats;
}

const struct kallsyms *decoder_symbols(const struct decoder *decoder)
{
	return decoder->symbols;
}

const struct printk_formats *decoder_printk(const struct decoder *decoder)
{
	return decoder->printk;
}

int32_t decoder_graph_exit(const struct decoder *decoder)
{
	return decoder->graph_exit;
}
