/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/log.h"
#include "decode/decode-internal.h"
#include "decode/format-guard.h"
#include "decode/plugins.h"
#include "formats/trace-dat.h"

/* Bounds of what a bad file can make us read */
#define MAX_SYMBOLS  (256 * MIB)
#define MAX_CMDLINES (256 * MIB)
#define MAX_FORMAT   (4 * MIB)
#define MAX_OPTION   (64 * KIB)

#define MAX_REFUSED 10U /* formats that are named */

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
	size_t n;

	if (strncmp(text, "name:", 5) != 0)
		return strdup("");
	text += 5;
	text += strspn(text, " \t");
	n = strcspn(text, " \t\n");
	return strndup(text, n);
}

/* libtraceevent trusts what it parses; its own parser never sees the rest of such a format */
static void guard_format(struct decoder *d, size_t i)
{
	const char *system = d->dat->systems[d->dat->formats[i].system], *why;

	format_guard(d->formats[i].text, &why);
	if (why && ++d->n_refused <= MAX_REFUSED)
		log_warning("%s: %s:%s: print format with %s, showing the fields", d->dat->path,
			    system, d->formats[i].name, why);
}

static int load_formats(struct decoder *d, struct fault *why)
{
	const struct trace_dat *dat = d->dat;

	memset(d->by_id, 0xff, sizeof(d->by_id)); /* all -1 */
	d->formats = calloc(MAX(dat->n_formats, (size_t)1), sizeof(*d->formats));
	if (!d->formats)
		return -ENOMEM;
	for (size_t i = 0; i < dat->n_formats; i++) {
		struct format_text *f = &d->formats[i];
		uint32_t id;
		int r;

		r = trace_dat_load(dat, &dat->formats[i].text, MAX_FORMAT, &f->text, why);
		if (r < 0)
			return r;
		f->name = find_name(f->text);
		if (!f->name)
			return -ENOMEM;
		if (find_id(f->text, &id) && id < SUBBUF_EVENT_IDS && d->by_id[id] < 0)
			d->by_id[id] = (int32_t)i;
		guard_format(d, i);
	}
	if (d->n_refused > MAX_REFUSED)
		log_warning("%s: %zu more such print formats", dat->path,
			    d->n_refused - MAX_REFUSED);
	return 0;
}

static int load_tables(struct decoder *d, struct fault *why)
{
	_cleanup_free_ char *cmdlines = NULL;
	char *text;
	int r;

	r = trace_dat_load(d->dat, &d->dat->kallsyms, MAX_SYMBOLS, &text, why);
	if (r < 0)
		return r;
	r = kallsyms_parse(text, &d->symbols);
	if (r < 0)
		return r;
	r = trace_dat_load(d->dat, &d->dat->printk_formats, MAX_SYMBOLS, &text, why);
	if (r < 0)
		return r;
	r = printk_formats_parse(text, &d->printk);
	if (r < 0)
		return r;
	r = trace_dat_load(d->dat, &d->dat->cmdlines, MAX_CMDLINES, &cmdlines, why);
	if (r < 0)
		return r;
	return tasks_new(cmdlines, &d->tasks);
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

static bool common_place(struct tep_event *event, const char *name, struct decode_place *ret)
{
	const struct tep_format_field *field = tep_find_common_field(event, name);

	return field && decode_place(field, ret);
}

static bool named_place(struct tep_event *event, const char *name, struct decode_place *ret)
{
	const struct tep_format_field *field = tep_find_field(event, name);

	return field && decode_place(field, ret);
}

/* All events have the same common fields: take them from the first format that parses */
static int find_common(struct decoder *d, struct tep_handle *tep)
{
	for (size_t i = 0; i < d->dat->n_formats; i++) {
		struct tep_event *event = decode_parse(d, tep, i);
		struct decode_place type;

		if (!event || !common_place(event, "common_type", &type) || type.offset != 0 ||
		    type.size != 2 || !common_place(event, "common_pid", &d->pid))
			continue;
		if (!common_place(event, "common_flags", &d->flags))
			d->flags = (struct decode_place){};
		if (!common_place(event, "common_preempt_count", &d->preempt_count))
			d->preempt_count = (struct decode_place){};
		d->base = i;
		return 0;
	}
	return -ENODATA;
}

static int32_t find_format(const struct decoder *d, const char *system, const char *name)
{
	for (size_t i = 0; i < d->dat->n_formats; i++)
		if (strcmp(d->dat->systems[d->dat->formats[i].system], system) == 0 &&
		    strcmp(d->formats[i].name, name) == 0)
			return (int32_t)i;
	return -1;
}

/* The events that tell names: whether or not the plugin is installed that learns them */
static void find_learning(struct decoder *d, struct tep_handle *tep)
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
		int32_t index = find_format(d, "sched", known[i].event);
		struct tep_event *event;

		if (index < 0)
			continue;
		event = decode_parse(d, tep, (size_t)index);
		if (!event)
			continue;
		l->id = (uint32_t)event->id;
		l->n = 0;
		for (size_t k = 0; k < 2 && known[i].pid[k]; k++)
			if (named_place(event, known[i].pid[k], &l->sources[l->n].pid) &&
			    named_place(event, known[i].comm[k], &l->sources[l->n].comm))
				l->n++;
		d->n_learn += l->n > 0;
	}
}

static void find_graph(struct decoder *d, struct tep_handle *tep)
{
	int32_t entry = find_format(d, "ftrace", "funcgraph_entry");
	int32_t exit = find_format(d, "ftrace", "funcgraph_exit");
	struct tep_event *a, *b;

	d->graph_entry = d->graph_exit = -1;
	if (entry < 0 || exit < 0)
		return;
	a = decode_parse(d, tep, (size_t)entry);
	b = decode_parse(d, tep, (size_t)exit);
	if (!a || !b || !named_place(a, "func", &d->entry_func) ||
	    !named_place(b, "func", &d->exit_func))
		return;
	d->graph_entry = a->id;
	d->graph_exit = b->id;
}

static int prepare(struct decoder *d, struct fault *why)
{
	struct tep_handle *tep = decode_new_tep(d);
	int r;

	if (!tep)
		return -ENOMEM;
	r = find_common(d, tep);
	if (r < 0) {
		(void)fault_set(why, -EBADMSG,
				"%s: no event format that names the type and the pid of an event",
				d->dat->path);
		r = -EBADMSG;
	} else {
		find_learning(d, tep);
		find_graph(d, tep);
	}
	tep_free(tep);
	return r;
}

int decoder_new(const struct trace_dat *dat, struct decoder **ret, struct fault *why)
{
	_cleanup_(decoder_freep) struct decoder *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	d->dat = dat;
	pthread_mutex_init(&d->tep_lock, NULL);
	for (size_t i = 1; i < dat->n_buffers; i++)
		d->buffer_width = MAX(d->buffer_width, strlen(dat->buffers[i].name));
	r = load_formats(d, why);
	if (r >= 0)
		r = load_tables(d, why);
	if (r >= 0)
		r = load_clock(d, why);
	if (r >= 0)
		r = prepare(d, why);
	if (r == -ENOMEM)
		return fault_errno(why, r, "%s: cannot read", dat->path);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(d);
	return 0;
}

struct decoder *decoder_free(struct decoder *decoder)
{
	if (!decoder)
		return NULL;
	for (size_t i = 0; decoder->formats && i < decoder->dat->n_formats; i++) {
		free(decoder->formats[i].text);
		free(decoder->formats[i].name);
	}
	free(decoder->formats);
	kallsyms_free(decoder->symbols);
	printk_formats_free(decoder->printk);
	tasks_free(decoder->tasks);
	pthread_mutex_destroy(&decoder->tep_lock);
	free(decoder);
	return NULL;
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

int32_t decoder_find(const struct decoder *decoder, uint32_t id)
{
	return id < SUBBUF_EVENT_IDS ? decoder->by_id[id] : -1;
}

const char *decoder_name(const struct decoder *decoder, size_t format)
{
	return decoder->formats[format].name;
}

uint32_t decoder_id(const struct decoder *decoder, const struct decode_event *event)
{
	return trace_dat_u16(decoder->dat, event->data);
}

int32_t decoder_pid(const struct decoder *decoder, const struct decode_event *event)
{
	const struct decode_record record = decode_record(decoder, event);

	return (int32_t)decode_number(&record, decoder->pid.offset, decoder->pid.size);
}

static int learn(struct decoder *d, const struct decode_event *event)
{
	const struct decode_record record = decode_record(d, event);
	uint32_t id = decoder_id(d, event);

	for (size_t i = 0; i < d->n_learn; i++) {
		if (d->learn[i].id != id)
			continue;
		for (size_t k = 0; k < d->learn[i].n; k++) {
			const struct comm_source *s = &d->learn[i].sources[k];
			int r;

			if (s->comm.offset > record.size)
				continue;
			r = tasks_learn(d->tasks,
					(int32_t)decode_number(&record, s->pid.offset, s->pid.size),
					(const char *)record.data + s->comm.offset,
					MIN(s->comm.size, record.size - s->comm.offset));
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int decoder_task(struct decoder *decoder, struct decode_event *event)
{
	event->task = tasks_find(decoder->tasks, decoder_pid(decoder, event));
	if (!event->task)
		return -ENOMEM;
	return learn(decoder, event);
}

int decoder_rename(struct decoder *decoder, int32_t pid, const char *name)
{
	return tasks_rename(decoder->tasks, pid, name, strlen(name));
}

bool decoder_is_leaf(const struct decoder *decoder, const struct decode_event *event,
		     const struct decode_event *next)
{
	const struct decode_record a = decode_record(decoder, event);
	const struct decode_record b = decode_record(decoder, next);

	return decoder->graph_entry >= 0 &&
	       decoder_id(decoder, event) == (uint32_t)decoder->graph_entry &&
	       decoder_id(decoder, next) == (uint32_t)decoder->graph_exit &&
	       event->buffer == next->buffer && event->cpu == next->cpu &&
	       decoder_pid(decoder, event) == decoder_pid(decoder, next) &&
	       decode_number(&a, decoder->entry_func.offset, decoder->entry_func.size) ==
		       decode_number(&b, decoder->exit_func.offset, decoder->exit_func.size);
}
