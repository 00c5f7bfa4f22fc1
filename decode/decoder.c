/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "basic/strv.h"
#include "decode/decoder.h"
#include "decode/format-guard.h"
#include "decode/symbols.h"
#include "formats/time-shift.h"
#include "formats/trace-dat.h"

/* Bounds of what a bad file can make us read */
#define MAX_SYMBOLS  (256 * MIB)
#define MAX_CMDLINES (256 * MIB)
#define MAX_OPTION   (64 * KIB)
#define MAX_FORMAT   (4 * MIB)
#define MAX_FIELD    65536U /* fields end before; a bigger one is none of the kernel's */
#define MAX_FIELDS   1024U  /* of an event; more are none of the kernel's */
#define MAX_REFUSED  10U    /* formats that are named */

struct format {
	char *text, *name;
	uint32_t id;
	bool known; /* the fields are */
	struct field *fields;
	size_t n_fields;
};

/* Where an event tells a task's name */
struct comm_source {
	const struct field *pid, *comm;
};

/* Sorting them takes longer than all else, and few need them */
struct lazy_symbols {
	char *kallsyms, *printk_formats; /* until then; they go into */
	struct file_symbols *made;
};

struct decoder {
	const struct trace_dat *dat;
	struct format *formats; /* as in dat->formats, guarded */
	int32_t by_id[SUBBUF_EVENT_IDS];
	size_t base;		/* a format that is sound, from which the common fields are known */
	struct tep_handle *tep; /* for fields; under the lock */
	char **warnings;
	struct lazy_symbols *symbols; /* under the lock */

	struct decoder_facts facts;
	uint32_t native_pid; /* where the common_pid ends, if it is an int of ours; else 0 */

	struct {
		uint32_t id;
		size_t n;
		struct comm_source sources[2];
	} learn[3];
	size_t n_learn;
	uint32_t entry_id, exit_id; /* if there is a facts.graph_exit */
	const struct field *entry_func, *exit_func;
};

/*
 * libtraceevent keeps things in static buffers while it parses: one thread of the process at a time
 * lets it. It trusts what it parses, so that it gets formats guarded.
 */
static pthread_mutex_t parsing = PTHREAD_MUTEX_INITIALIZER;

/* --- formats */

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

/* Takes over the line */
static int warn(struct decoder *d, char *line)
{
	int r = line ? strv_append(&d->warnings, line) : -ENOMEM;

	free(line);
	return r;
}

/* libtraceevent's own parser never sees the rest of a format that is refused */
static int guard(struct decoder *d, size_t i, size_t *n_refused)
{
	const char *why;

	format_guard(d->formats[i].text, &why);
	if (!why || ++*n_refused > MAX_REFUSED)
		return 0;
	return warn(d, strf("%s:%s: print format with %s, showing the fields",
			    d->dat->systems[d->dat->formats[i].system], d->formats[i].name, why));
}

static int load_formats(struct decoder *d, struct fault *why)
{
	const struct trace_dat *dat = d->dat;
	size_t n_refused = 0;

	memset(d->by_id, 0xff, sizeof(d->by_id)); /* all -1 */
	d->formats = calloc(MAX(dat->n_formats, (size_t)1), sizeof(*d->formats));
	if (!d->formats)
		return -ENOMEM;
	for (size_t i = 0; i < dat->n_formats; i++) {
		struct format *format = &d->formats[i];
		int r;

		r = trace_dat_load(dat, &dat->formats[i].text, MAX_FORMAT, &format->text, why);
		if (r < 0)
			return r;
		format->name = find_name(format->text);
		if (!format->name)
			return -ENOMEM;
		if (!find_id(format->text, &format->id))
			format->id = UINT32_MAX;
		if (format->id < SUBBUF_EVENT_IDS && d->by_id[format->id] < 0)
			d->by_id[format->id] = (int32_t)i;
		r = guard(d, i, &n_refused);
		if (r < 0)
			return r;
	}
	if (n_refused <= MAX_REFUSED)
		return 0;
	return warn(d, strf("%zu more such print formats", n_refused - MAX_REFUSED));
}

static bool fields_sound(const struct tep_format_field *field)
{
	for (unsigned n = 1; field; field = field->next, n++)
		if (n > MAX_FIELDS || field->offset < 0 || field->size < 0 ||
		    (unsigned)field->offset > MAX_FIELD || (unsigned)field->size > MAX_FIELD ||
		    (unsigned)field->elementsize > MAX_FIELD)
			return false;
	return true;
}

/* libtraceevent does not survive a declaration that ends, or has what is no text, in its brackets
 */
static bool lines_sound(const char *text, const char *end)
{
	for (const char *p = strstr(text, "field:"); p && (!end || p < end);
	     p = strstr(p + 1, "field:")) {
		size_t n = strcspn(p, ";\n");
		bool sound = p[n] == ';';
		int open = 0;

		for (size_t i = 0; i < n && sound; i++) {
			open += p[i] == '[' ? 1 : p[i] == ']' ? -1 : 0;
			sound = open >= 0 && (p[i] == '\t' || (p[i] >= ' ' && p[i] <= '~'));
		}
		if (!sound || open != 0)
			return false;
	}
	return true;
}

static struct tep_event *parse(const struct decoder *d, struct tep_handle *tep, size_t i)
{
	const char *system = d->dat->systems[d->dat->formats[i].system];
	/* parsing it twice would make two of it */
	struct tep_event *event = tep_find_event_by_name(tep, system, d->formats[i].name);

	const char *text = d->formats[i].text, *end = strstr(text, "\nprint fmt:");

	if (!lines_sound(text, end))
		return NULL;
	/* fields alone do not need what libtraceevent is most likely to stumble over */
	if (tep != d->tep)
		end = NULL;
	if (!event)
		(void)tep_parse_format(tep, &event, text,
				       end ? (size_t)(end + 1 - text) : strlen(text), system);
	if (!event || (uint32_t)event->id != d->formats[i].id ||
	    !fields_sound(event->format.common_fields) || !fields_sound(event->format.fields))
		return NULL;
	return event;
}

struct tep_event *decoder_parse(const struct decoder *decoder, struct tep_handle *tep,
				size_t format)
{
	struct tep_event *event;

	pthread_mutex_lock(&parsing);
	event = parse(decoder, tep, format);
	pthread_mutex_unlock(&parsing);
	return event;
}

struct tep_handle *decoder_new_handle(const struct trace_dat *dat)
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

struct tep_handle *decoder_handle(const struct decoder *decoder)
{
	struct tep_handle *tep = decoder_new_handle(decoder->dat);

	/* the common fields of all events are taken from the first one */
	if (tep && !decoder_parse(decoder, tep, decoder->base)) {
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
static int find_common(struct decoder *d, struct fault *why)
{
	for (size_t i = 0; i < d->dat->n_formats; i++) {
		struct tep_event *event = decoder_parse(d, d->tep, i);
		struct field type;

		if (!event || !common_place(event, "common_type", &type) || type.offset != 0 ||
		    type.size != 2 || !common_place(event, "common_pid", &d->facts.pid))
			continue;
		(void)common_place(event, "common_flags", &d->facts.flags);
		(void)common_place(event, "common_preempt_count", &d->facts.preempt_count);
		d->base = i;
		if (d->dat->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) &&
		    d->facts.pid.size == 4)
			d->native_pid = d->facts.pid.offset + 4;
		return 0;
	}
	return fault_set(why, -EBADMSG,
			 "%s: no event format that names the type and the pid of an event",
			 d->dat->path);
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

const struct field *decoder_fields(const struct decoder *decoder, size_t format, size_t *ret_n)
{
	struct format *f = &decoder->formats[format];
	struct tep_event *event;

	pthread_mutex_lock(&parsing);
	if (!f->known) {
		event = parse(decoder, decoder->tep, format);
		f->known = !event || copy_fields(f, event) == 0;
	}
	pthread_mutex_unlock(&parsing);
	if (f->fields)
		*ret_n = f->n_fields;
	return f->fields;
}

/* --- tables and clock */

static int load_symbols(const struct decoder *d, struct fault *why)
{
	int r = trace_dat_load(d->dat, &d->dat->kallsyms, MAX_SYMBOLS, &d->symbols->kallsyms, why);

	if (r < 0)
		return r;
	return trace_dat_load(d->dat, &d->dat->printk_formats, MAX_SYMBOLS,
			      &d->symbols->printk_formats, why);
}

/* Megabytes, that may wait where nothing but a disk can be wrong with them */
static int load_tables(struct decoder *d, struct fault *why)
{
	d->symbols = calloc(1, sizeof(*d->symbols));
	if (!d->symbols)
		return -ENOMEM;
	return d->dat->data || d->dat->kallsyms.size > MAX_SYMBOLS ||
			       d->dat->printk_formats.size > MAX_SYMBOLS
		       ? load_symbols(d, why)
		       : 0;
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
		d->facts.has_date = true;
		d->facts.offset += (int64_t)((uint64_t)strtoll(data, NULL, 0) * NSEC_PER_USEC);
		break;
	case TRACE_DAT_OPTION_OFFSET:
		d->facts.offset =
			(int64_t)((uint64_t)d->facts.offset + (uint64_t)strtoll(data, NULL, 0));
		break;
	case TRACE_DAT_OPTION_TRACECLOCK:
		d->facts.in_usecs &= clock_in_usecs(data);
		break;
	default:
		break;
	}
}

/* A guest's times are shown as its host's, if they are all as far from these */
static int load_rate(struct decoder *d, struct fault *why)
{
	_cleanup_(time_shift_done) struct time_shift shift = {};
	struct time_rate rate;
	struct fault wrong;
	int nsec, r = time_shift_read(d->dat, &shift, &wrong);

	if (r == -EBADMSG)
		r = warn(d, strdup(wrong.text));
	else if (r < 0)
		return fault_set(why, r, "%s", wrong.text);
	if (!time_shift_one(&shift, &rate))
		r = warn(d, strf("%s: the TSC offsets of the guest's CPUs differ: times are shown "
				 "without",
				 d->dat->path));
	nsec = time_shift_nsec(d->dat, &rate, why);
	rate.on |= nsec > 0;
	d->facts.rate = rate;
	d->facts.in_usecs |= nsec > 0;
	return MIN(r, MIN(nsec, 0));
}

static int load_clock(struct decoder *d, struct fault *why)
{
	_cleanup_free_ char *clock = NULL;
	int r;

	r = trace_dat_clock(d->dat, &clock, why);
	if (r < 0)
		return r;
	d->facts.in_usecs = clock_in_usecs(clock);
	for (size_t i = 0; i < d->dat->n_options; i++) {
		const struct trace_dat_option_place *option = &d->dat->options[i];
		_cleanup_free_ char *data = NULL;

		if (option->id != TRACE_DAT_OPTION_DATE && option->id != TRACE_DAT_OPTION_OFFSET &&
		    option->id != TRACE_DAT_OPTION_TRACECLOCK)
			continue;
		r = trace_dat_load(d->dat, &option->data, MAX_OPTION, &data, why);
		if (r < 0)
			return r;
		take_option(d, option, data);
	}
	return load_rate(d, why);
}

static int32_t find_event(const struct decoder *d, const char *system, const char *name)
{
	const struct trace_dat *dat = d->dat;

	for (size_t i = 0; i < dat->n_formats; i++)
		if (strcmp(dat->systems[dat->formats[i].system], system) == 0 &&
		    strcmp(d->formats[i].name, name) == 0)
			return (int32_t)i;
	return -1;
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
		int32_t format = find_event(d, "sched", known[i].event);

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
	int32_t entry = find_event(d, "ftrace", "funcgraph_entry");
	int32_t exit = find_event(d, "ftrace", "funcgraph_exit");

	d->facts.graph_exit = -1;
	if (entry < 0 || exit < 0)
		return;
	d->entry_func = decoder_field(d, (size_t)entry, "func");
	d->exit_func = decoder_field(d, (size_t)exit, "func");
	if (!d->entry_func || !d->exit_func)
		return;
	d->entry_id = decoder_format_id(d, (size_t)entry);
	d->exit_id = decoder_format_id(d, (size_t)exit);
	d->facts.graph_exit = exit;
}

int decoder_new(const struct trace_dat *dat, struct decoder **ret, struct fault *why)
{
	_cleanup_(decoder_freep) struct decoder *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	d->dat = dat;
	d->tep = decoder_new_handle(dat);
	r = d->tep ? load_formats(d, why) : -ENOMEM;
	if (r >= 0)
		r = find_common(d, why);
	if (r >= 0)
		r = load_tables(d, why);
	if (r >= 0)
		r = load_clock(d, why);
	if (r == -ENOMEM)
		return fault_errno(why, r, "%s: cannot read", dat->path);
	if (r < 0)
		return r;
	find_learning(d);
	find_graph(d);
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
		free(decoder->formats[i].fields);
	}
	free(decoder->formats);
	strv_free(decoder->warnings);
	tep_free(decoder->tep);
	if (decoder->symbols) {
		free(decoder->symbols->kallsyms);
		free(decoder->symbols->printk_formats);
		file_symbols_free(decoder->symbols->made);
	}
	free(decoder->symbols);
	free(decoder);
	return NULL;
}

const struct trace_dat *decoder_dat(const struct decoder *decoder)
{
	return decoder->dat;
}

char *const *decoder_warnings(const struct decoder *decoder)
{
	return decoder->warnings;
}

const struct decoder_facts *decoder_facts(const struct decoder *decoder)
{
	return &decoder->facts;
}

void decoder_place(struct decoder *decoder, const struct time_rate *rate, int64_t offset,
		   bool dated)
{
	decoder->facts.in_usecs |= rate->on && (rate->mult > 1 || rate->shift > 0);
	decoder->facts.has_date = dated;
	decoder->facts.offset = offset;
	decoder->facts.rate = *rate;
}

int32_t decoder_find(const struct decoder *decoder, uint32_t id)
{
	return id < SUBBUF_EVENT_IDS ? decoder->by_id[id] : -1;
}

const char *decoder_name(const struct decoder *decoder, size_t format)
{
	return decoder->formats[format].name;
}

const char *decoder_format_text(const struct decoder *decoder, size_t format)
{
	return decoder->formats[format].text;
}

uint32_t decoder_format_id(const struct decoder *decoder, size_t format)
{
	return decoder->formats[format].id;
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
	uint16_t id;

	event->big_endian = decoder->dat->big_endian;
	if (decoder->native_pid && event->size >= decoder->native_pid) {
		memcpy(&id, event->data, sizeof(id));
		event->id = id;
		memcpy(&event->pid, event->data + decoder->native_pid - 4, 4);
		return;
	}
	event->id = trace_dat_u16(decoder->dat, event->data);
	event->pid = (int32_t)field_number(&decoder->facts.pid, event);
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
					MIN(s->comm->size, event->size - offset), false);
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

bool decoder_learns(const struct decoder *decoder, uint32_t id)
{
	for (size_t i = 0; i < decoder->n_learn; i++)
		if (decoder->learn[i].id == id)
			return true;
	return false;
}

bool decoder_is_leaf(const struct decoder *decoder, const struct decode_event *event,
		     const struct decode_event *next)
{
	return decoder->facts.graph_exit >= 0 && event->id == decoder->entry_id &&
	       next->id == decoder->exit_id && event->buffer == next->buffer &&
	       event->cpu == next->cpu && event->pid == next->pid &&
	       field_number(decoder->entry_func, event) == field_number(decoder->exit_func, next);
}

const struct file_symbols *decoder_symbols(const struct decoder *decoder)
{
	struct lazy_symbols *lazy = decoder->symbols;

	pthread_mutex_lock(&parsing);
	if (!lazy->made && !lazy->kallsyms)
		(void)load_symbols(decoder, NULL);
	if (!lazy->made && lazy->kallsyms && lazy->printk_formats)
		(void)file_symbols_new(TAKE_PTR(lazy->kallsyms), TAKE_PTR(lazy->printk_formats),
				       &lazy->made);
	pthread_mutex_unlock(&parsing);
	return lazy->made;
}
