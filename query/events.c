/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#include "basic/strv.h"
#include "decode/field-names.h"
#include "decode/field-value.h"
#include "decode/json-printer.h"
#include "query/events.h"
#include "query/query-internal.h"

#define STOP_EVENTS 65536U /* so many from one look to the next whether to go on */

/* Of a window that is shorter than this, in nanoseconds, less is read at a time: there may be many
 */
#define NARROW	      (NSEC_PER_SEC / 100)
#define NARROW_MEMORY (64 * KIB)

/* What an event is good for, by its id */
enum {
	IS_WANTED = 1,
	TELLS_NAMES = 2,
	TELLS_WHO = 4,
};

enum {
	COLUMN_LOST_BEFORE = COLUMN_NAME + 1,
	COLUMN_FIELDS,
	COLUMN_EVENTS_TGID,
	COLUMN_EVENTS_CONTAINER,
	COLUMN_EVENTS_BUFFER,
};

static struct query_column events_table_columns[] = {
	[COLUMN_TS] = {"ts", COLUMN_WIDE | COLUMN_SET},
	[COLUMN_CPU] = {"cpu", 0},
	[COLUMN_PID] = {"pid", 0},
	[COLUMN_COMM] = {"comm", COLUMN_TEXT},
	[COLUMN_UNIT] = {"unit", COLUMN_TEXT},
	[COLUMN_SYSTEM] = {"system", COLUMN_TEXT},
	[COLUMN_NAME] = {"name", COLUMN_TEXT},
	[COLUMN_LOST_BEFORE] = {"lost_before", 0},
	[COLUMN_FIELDS] = {"fields", COLUMN_TEXT | COLUMN_LONG},
	[COLUMN_EVENTS_TGID] = {"tgid", COLUMN_HIDDEN},
	[COLUMN_EVENTS_CONTAINER] = {"container", COLUMN_TEXT | COLUMN_HIDDEN},
	[COLUMN_EVENTS_BUFFER] = {"buffer", COLUMN_TEXT | COLUMN_HIDDEN},
};

/* Behind the fields of a kind of event, unless it has one of that name */
static const struct extra {
	const char *name;
	unsigned flags, column; /* column: which one of "events" it is */
} extras[] = {
	{"lost_before", COLUMN_HIDDEN, COLUMN_LOST_BEFORE},
	{"tgid", COLUMN_HIDDEN, COLUMN_EVENTS_TGID},
	{"container", COLUMN_TEXT | COLUMN_HIDDEN, COLUMN_EVENTS_CONTAINER},
	{"buffer", COLUMN_TEXT | COLUMN_HIDDEN, COLUMN_EVENTS_BUFFER},
};

/* A file that the scan has open */
struct open_file {
	const struct decoder *decoder; /* NULL: it is not open */
	struct json_printer *printer;  /* NULL: not needed yet */
	struct field_value *fields;    /* by column, from _COLUMN_COMMON on */
	bool *has_field;
	struct field_names *names; /* NULL: not asked for */
	int *name_of;		   /* by column: which of the names it is, -1: none */
	uint8_t good_for[SUBBUF_EVENT_IDS];
};

struct query_scan {
	struct query *query;
	const struct query_table *table;
	const struct event_kind *kind; /* NULL: of all kinds */
	const struct query_want *want;
	struct event_filter filter;
	struct sources_facts facts;
	struct spans_totals read; /* until now: from, to, events, gaps */
	struct sources *sources;
	struct who *who;	  /* NULL: nobody asks */
	struct open_file **files; /* by source */
	size_t n_files;
	bool comm; /* names of tasks are asked for */
	bool all;  /* nothing has to be looked at in an event to know that it is wanted */
	unsigned unasked;

	struct source_run run;
	size_t at; /* behind the row's event in the run */
	const struct open_file *file;
	struct decode_event event; /* the row's, if it is known: */
	bool known;
	struct text text;
};

/* --- columns */

static bool has_column(const struct query_table *table, const char *name)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (strcasecmp(table->columns[i].name, name) == 0)
			return true;
	return false;
}

static int add_column(struct query_table *table, const char *name, unsigned flags)
{
	char *copy = strdup(name);

	if (!copy || array_grow(&table->columns, table->n_columns, sizeof(*table->columns)) < 0) {
		free(copy);
		return -ENOMEM;
	}
	table->columns[table->n_columns++] = (struct query_column){copy, flags};
	return 0;
}

/* "pid" is the task that was running, so that a field of that name is "field_pid" */
static char *column_name(const struct query_table *table, size_t first, const char *field)
{
	for (size_t i = 0; i < first; i++)
		if (strcasecmp(table->columns[i].name, field) == 0)
			return strf("field_%s", field);
	return strdup(field);
}

static unsigned field_flags(const struct field_value *field)
{
	switch (field->kind) {
	case VALUE_BOOL:
		return 0;
	case VALUE_NUMBER:
		return field->at.size > 2 ? COLUMN_WIDE : 0;
	case VALUE_STRING:
	case VALUE_NUMBERS:
	case VALUE_CPUS:
		break;
	}
	return COLUMN_TEXT;
}

/* The first format of this kind of event that can be trusted; -1: none */
static int32_t find_format(const struct decoder *decoder, const struct event_kind *kind)
{
	const struct trace_dat *dat = decoder_dat(decoder);

	for (size_t i = 0; i < dat->n_formats; i++)
		if (strcmp(decoder_name(decoder, i), kind->name) == 0 &&
		    strcmp(dat->systems[dat->formats[i].system], kind->system) == 0)
			return (int32_t)i;
	return -1;
}

static int add_fields(struct query_table *table, const struct decoder *decoder)
{
	const struct event_kind *kind = table->kind;
	const int32_t format = find_format(decoder, kind);
	const struct field *fields = NULL;
	size_t n = 0;

	if (format >= 0)
		fields = decoder_fields(decoder, (size_t)format, &n);
	for (size_t i = 0; fields && i < n; i++) {
		_cleanup_free_ char *name = column_name(table, _COLUMN_COMMON, fields[i].name);
		struct field_value field;

		field_value_init(&field, kind->name, decoder_dat(decoder)->long_size, &fields[i]);
		if (!name ||
		    (!has_column(table, name) && add_column(table, name, field_flags(&field)) < 0))
			return -ENOMEM;
	}
	return 0;
}

/* "prev_state_name" beside "prev_state" */
static char *name_column(const struct field_names *names, size_t i)
{
	return strf("%s_name", field_names_field(names, i));
}

static int add_names(struct query_table *table, const struct decoder *decoder)
{
	_cleanup_(field_names_freep) struct field_names *names = NULL;
	const int32_t format = find_format(decoder, table->kind);
	int r = format < 0 ? 0 : field_names_new(decoder, (size_t)format, &names);

	for (size_t i = 0; names && i < field_names_count(names) && r >= 0; i++) {
		_cleanup_free_ char *name = name_column(names, i);

		if (!name)
			return -ENOMEM;
		if (!has_column(table, name))
			r = add_column(table, name, COLUMN_TEXT | COLUMN_HIDDEN);
	}
	return r;
}

/* By fields, or by names, of one file of each format that there is */
static int add_formats(struct query *query, struct query_table *table,
		       int (*add)(struct query_table *table, const struct decoder *decoder),
		       struct fault *why)
{
	const struct event_kind *kind = table->kind;
	int r = 0;

	for (size_t i = 0; i < kind->n_formats && r >= 0; i++) {
		const struct decoder *decoder;

		r = source_set_open(query->set, kind->formats[i].source, &decoder, why);
		if (r < 0)
			return r;
		r = add(table, decoder);
		source_set_close(query->set, kind->formats[i].source);
		if (r < 0)
			(void)fault_errno(why, r, "%s", table->name);
	}
	return r;
}

int events_columns(struct query *query, struct query_table *table, struct fault *why)
{
	int r = 0;

	table->own_columns = true;
	for (unsigned i = 0; i < _COLUMN_COMMON && r >= 0; i++)
		r = add_column(table, events_table_columns[i].name, events_table_columns[i].flags);
	if (r >= 0)
		r = add_formats(query, table, add_fields, why);
	if (r >= 0)
		r = add_formats(query, table, add_names, why);
	for (size_t i = 0; i < ARRAY_SIZE(extras) && r >= 0; i++)
		if (!has_column(table, extras[i].name))
			r = add_column(table, extras[i].name, extras[i].flags);
	if (r < 0) {
		for (size_t i = 0; i < table->n_columns; i++)
			free((char *)table->columns[i].name);
		free(table->columns);
		table->columns = NULL;
		table->n_columns = 0;
		table->own_columns = false;
	}
	return r == -ENOMEM ? fault_errno(why, r, "%s", table->name) : r;
}

/* --- a file */

static bool is_kind_wanted(const struct query_scan *scan, const char *system, const char *name)
{
	if (scan->kind)
		return strcmp(scan->kind->name, name) == 0 &&
		       strcmp(scan->kind->system, system) == 0;
	return (!scan->want->systems || strv_contains(scan->want->systems, system)) &&
	       (!scan->want->names || strv_contains(scan->want->names, name));
}

static void find_ids(const struct query_scan *scan, struct open_file *file)
{
	const struct decoder *decoder = file->decoder;
	const struct trace_dat *dat = decoder_dat(decoder);
	const bool any = !scan->kind && !scan->want->systems && !scan->want->names;

	memset(file->good_for, any ? IS_WANTED : 0, sizeof(file->good_for));
	for (size_t i = 0; i < dat->n_formats; i++) {
		const uint32_t id = decoder_format_id(decoder, i);

		/* of several formats of one id the first is its own */
		if (id >= SUBBUF_EVENT_IDS || decoder_find(decoder, id) != (int32_t)i)
			continue;
		if (is_kind_wanted(scan, dat->systems[dat->formats[i].system],
				   decoder_name(decoder, i)))
			file->good_for[id] |= IS_WANTED;
		if (scan->comm && decoder_learns(decoder, id))
			file->good_for[id] |= TELLS_NAMES;
	}
}

static int find_fields(const struct query_scan *scan, struct open_file *file)
{
	const struct query_table *table = scan->table;
	const int32_t format = find_format(file->decoder, scan->kind);
	const struct field *fields = NULL;
	size_t n = 0;

	file->fields = calloc(table->n_columns, sizeof(*file->fields));
	file->has_field = calloc(table->n_columns, sizeof(*file->has_field));
	if (!file->fields || !file->has_field)
		return -ENOMEM;
	if (format >= 0)
		fields = decoder_fields(file->decoder, (size_t)format, &n);
	for (size_t i = 0; fields && i < n; i++) {
		_cleanup_free_ char *name = column_name(table, _COLUMN_COMMON, fields[i].name);
		size_t column = _COLUMN_COMMON;

		if (!name)
			return -ENOMEM;
		while (column < table->n_columns &&
		       strcasecmp(table->columns[column].name, name) != 0)
			column++;
		if (column == table->n_columns || file->has_field[column])
			continue;
		field_value_init(&file->fields[column], scan->kind->name,
				 decoder_dat(file->decoder)->long_size, &fields[i]);
		file->has_field[column] = true;
	}
	return 0;
}

/* Which of the columns that are looked at are names */
static int find_names(const struct query_scan *scan, struct open_file *file)
{
	const struct query_table *table = scan->table;
	const int32_t format = find_format(file->decoder, scan->kind);
	bool any = false;
	int r;

	file->name_of = malloc(table->n_columns * sizeof(*file->name_of));
	if (!file->name_of)
		return -ENOMEM;
	for (unsigned i = 0; i < table->n_columns; i++) {
		file->name_of[i] = -1;
		any |= ends_with(table->columns[i].name, "_name") && !file->has_field[i] &&
		       query_wants(scan->want, i);
	}
	if (!any || format < 0)
		return 0;
	r = field_names_new(file->decoder, (size_t)format, &file->names);
	for (size_t i = 0; r >= 0 && i < field_names_count(file->names); i++) {
		_cleanup_free_ char *name = name_column(file->names, i);

		if (!name)
			return -ENOMEM;
		for (unsigned k = _COLUMN_COMMON; k < table->n_columns; k++)
			if (!file->has_field[k] && strcasecmp(table->columns[k].name, name) == 0)
				file->name_of[k] = (int)i;
	}
	return r;
}

static void free_file(struct open_file *file)
{
	if (!file)
		return;
	field_names_free(file->names);
	free(file->name_of);
	json_printer_free(file->printer);
	free(file->fields);
	free(file->has_field);
	free(file);
}

static int on_open(void *userdata, size_t source, const struct decoder *decoder, struct fault *why)
{
	struct query_scan *scan = userdata;
	struct open_file *file = calloc(1, sizeof(*file));

	if (!file)
		return fault_errno(why, -ENOMEM, "cannot query");
	file->decoder = decoder;
	find_ids(scan, file);
	if (scan->kind && (find_fields(scan, file) < 0 || find_names(scan, file) < 0)) {
		free_file(file);
		return fault_errno(why, -ENOMEM, "cannot query");
	}
	scan->files[source] = file;
	return 0;
}

static void on_close(void *userdata, size_t source)
{
	struct query_scan *scan = userdata;

	free_file(scan->files[source]);
	scan->files[source] = NULL;
}

/* --- rows */

static void close_scan(struct query_scan *scan)
{
	if (!scan)
		return;
	if (scan->sources)
		scan->query->n_faults += scan->facts.n_faults;
	if (scan->sources)
		query_note(scan->query, &scan->read, &scan->facts, is_kind_wanted, scan);
	sources_free(scan->sources);
	for (size_t i = 0; scan->files && i < scan->n_files; i++)
		free_file(scan->files[i]);
	free(scan->files);
	who_free(scan->who);
	text_done(&scan->text);
	free(scan);
}

/* Which of the columns tell more than that an event was there; what they are of "events" */
static bool asks(const struct query_scan *scan, unsigned column)
{
	if (!scan->kind)
		return query_wants(scan->want, column);
	for (unsigned i = 0; i < scan->table->n_columns; i++)
		for (size_t k = 0; k < ARRAY_SIZE(extras); k++)
			if (extras[k].column == column && query_wants(scan->want, i) &&
			    strcmp(scan->table->columns[i].name, extras[k].name) == 0)
				return true;
	return false;
}

/* Events of other CPUs tell of tasks, too */
static void narrow_cpus(struct query_scan *scan)
{
	struct event_filter *filter = &scan->filter;
	struct cpu_list cpus = {};

	if (!scan->want->has_cpus || scan->comm || scan->who)
		return;
	for (unsigned cpu = 0; cpu < CPU_LIST_MAX; cpu++)
		if (cpu_list_has(&scan->want->cpus, cpu) &&
		    (!filter->has_cpus || cpu_list_has(&filter->cpus, cpu)))
			cpu_list_add(&cpus, cpu);
	filter->has_cpus = true;
	filter->cpus = cpus;
}

static int open_scan(struct query *query, struct query_table *table, const struct query_want *want,
		     struct query_scan **ret, struct fault *why)
{
	struct query_scan *scan = calloc(1, sizeof(*scan));
	struct sources_config config = query_sources(query);
	const bool places = event_filter_has_places(config.filter);
	int r = scan ? 0 : -ENOMEM;

	if (r < 0)
		return fault_errno(why, r, "cannot query");
	scan->query = query;
	scan->table = table;
	scan->kind = table->kind;
	scan->want = want;
	scan->n_files = query->config.n;
	scan->files = calloc(MAX(scan->n_files, (size_t)1), sizeof(*scan->files));
	scan->comm = query_wants(want, COLUMN_COMM) || query->config.task;
	if (!scan->files)
		r = -ENOMEM;
	if (r >= 0 && (query_wants(want, COLUMN_UNIT) || asks(scan, COLUMN_EVENTS_TGID) ||
		       asks(scan, COLUMN_EVENTS_CONTAINER) || places))
		r = who_new(config.filter->units, config.filter->containers, false, &scan->who);
	if (r < 0) {
		close_scan(scan);
		return fault_errno(why, r, "cannot query");
	}
	scan->filter = *config.filter;
	scan->filter.lenient = true;
	narrow_cpus(scan);
	scan->all = !scan->comm && !scan->who && !want->has_pids && !scan->filter.has_pids &&
		    !scan->kind && !want->systems && !want->names;
	config.filter = &scan->filter;
	if (want->to - want->from < NARROW)
		config.memory = NARROW_MEMORY;
	config.from = want->from;
	config.to = want->to < INT64_MAX ? want->to : 0;
	config.who = scan->who;
	config.tasks = scan->comm;
	config.on_open = on_open;
	config.on_close = on_close;
	config.userdata = scan;
	r = sources_new(&config, &scan->facts, &scan->sources, why);
	if (r < 0) {
		close_scan(scan);
		return r;
	}
	*ret = scan;
	return 0;
}

static const struct decode_event *event_of(struct query_scan *scan)
{
	if (!scan->known)
		scan->event = source_run_event(&scan->run, scan->at - 1);
	scan->known = true;
	return &scan->event;
}

static const struct task_who *who_of(struct query_scan *scan)
{
	const struct decode_event *event = event_of(scan);

	return scan->who ? who_find(scan->who, event->pid, event->ts) : NULL;
}

static bool is_pid(const int32_t *pids, size_t n, int32_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* By what only the event itself tells: 1, 0, or -ENOMEM */
static int is_row_wanted(struct query_scan *scan)
{
	const struct event_filter *filter = scan->query->config.filter;
	const struct query_want *want = scan->want;

	if (want->has_pids && !is_pid(want->pids, want->n_pids, event_of(scan)->pid))
		return 0;
	if (filter->has_pids && !is_pid(filter->pids, filter->n_pids, event_of(scan)->pid))
		return 0;
	if (event_filter_has_places(filter)) {
		const struct task_who *who = who_of(scan);

		if (!who || !who->place || !who->place->wanted)
			return 0;
	}
	if (scan->query->config.task) {
		const struct task_name *name = tasks_find(scan->run.tasks, event_of(scan)->pid);

		if (!name)
			return -ENOMEM;
		return name->known && fnmatch(scan->query->config.task, name->text, 0) == 0;
	}
	return 1;
}

static void count_run(struct spans_totals *read, const struct event_run *run)
{
	if (read->events == 0)
		read->from = run->events[0].ts;
	read->to = MAX(read->to, run->events[run->n - 1].ts);
	read->events += run->n;
	read->gaps += run->missed != 0;
}

/* Go to a run that has an event: 1, 0 the end, or an error */
static int next_run(struct query_scan *scan, struct fault *why)
{
	int r = sources_next(scan->sources, &scan->run, why);

	scan->at = 0;
	if (r <= 0) {
		scan->run.events.n = 0;
		return r;
	}
	scan->file = scan->files[scan->run.source];
	count_run(&scan->read, &scan->run.events);
	scan->unasked += (unsigned)scan->run.events.n;
	if (scan->unasked >= STOP_EVENTS) {
		scan->unasked = 0;
		if (!query_goes_on(scan->query, scan->sources))
			return SCAN_E_STOPPED;
	}
	return 1;
}

/* The names that the row's event told of hold from the next one on */
static int leave_row(struct query_scan *scan)
{
	struct decode_event *event;

	if (!scan->comm || scan->at == 0)
		return 0;
	if (!(scan->file->good_for[event_run_id(&scan->run.events, scan->at - 1)] & TELLS_NAMES))
		return 0;
	(void)event_of(scan);
	event = &scan->event;
	return decoder_task(scan->run.decoder, scan->run.tasks, event);
}

/* 1 if this event is a row */
static int enter_row(struct query_scan *scan)
{
	const uint16_t id = event_run_id(&scan->run.events, scan->at - 1);
	const uint8_t good_for = scan->file->good_for[id];

	if (scan->who && who_event(scan->who, scan->run.who, event_of(scan)) < 0)
		return -ENOMEM;
	if (!(good_for & IS_WANTED))
		return 0;
	return is_row_wanted(scan);
}

static int next_row(struct query_scan *scan, struct fault *why)
{
	int r;

	for (;;) {
		r = leave_row(scan);
		if (r < 0)
			break;
		if (scan->at == scan->run.events.n) {
			r = next_run(scan, why);
			if (r != 1)
				return r;
		}
		scan->at++;
		scan->known = false;
		if (scan->all)
			return 1;
		r = enter_row(scan);
		if (r != 0)
			break;
	}
	return r < 0 ? fault_errno(why, r, "cannot query") : 1;
}

static int64_t row_number(const struct query_scan *scan)
{
	const struct event_run *run = &scan->run.events;
	const uint64_t inside = (uint64_t)(run->events[scan->at - 1].data - run->events[0].data);

	return (int64_t)(scan->run.source << 44 | (run->offset + inside));
}

/* --- values */

static struct value text_value(const char *text)
{
	return text ? (struct value){.kind = VALUE_TEXT, .text = text, .size = strlen(text)}
		    : (struct value){};
}

static int comm_value(struct query_scan *scan, struct value *ret)
{
	const struct task_name *name = tasks_find(scan->run.tasks, event_of(scan)->pid);

	if (!name)
		return -ENOMEM;
	if (name->known)
		*ret = (struct value){.kind = VALUE_TEXT, .text = name->text, .size = name->size};
	return 0;
}

static int fields_value(struct query_scan *scan, struct value *ret)
{
	struct open_file *file = scan->files[scan->run.source];
	int r = file->printer ? 0 : json_printer_new_fields(file->decoder, &file->printer);

	scan->text.size = 0;
	if (r >= 0)
		r = json_printer_fields(file->printer, event_of(scan), &scan->text);
	if (r >= 0)
		*ret = (struct value){
			.kind = VALUE_TEXT, .text = scan->text.bytes, .size = scan->text.size};
	return r;
}

/* Of a column of "events" */
static int common_value(struct query_scan *scan, unsigned column, struct value *ret)
{
	const struct event_run *run = &scan->run.events;
	const struct trace_dat *dat = decoder_dat(scan->run.decoder);
	const struct task_who *who;
	int32_t format;

	switch (column) {
	case COLUMN_TS:
		*ret = value_number((int64_t)run->events[scan->at - 1].ts);
		return 0;
	case COLUMN_CPU:
		*ret = value_number(run->cpu);
		return 0;
	case COLUMN_PID:
		*ret = value_number(event_of(scan)->pid);
		return 0;
	case COLUMN_COMM:
		return comm_value(scan, ret);
	case COLUMN_UNIT:
	case COLUMN_EVENTS_CONTAINER:
		who = who_of(scan);
		if (who && who->place)
			*ret = text_value(column == COLUMN_UNIT ? who->place->names.unit
								: who->place->names.container);
		return 0;
	case COLUMN_EVENTS_TGID:
		who = who_of(scan);
		if (who && who->tgid > 0)
			*ret = value_number(who->tgid);
		return 0;
	case COLUMN_SYSTEM:
	case COLUMN_NAME:
		format = decoder_find(scan->run.decoder, event_run_id(run, scan->at - 1));
		if (format >= 0)
			*ret = text_value(column == COLUMN_NAME
						  ? decoder_name(scan->run.decoder, (size_t)format)
						  : dat->systems[dat->formats[format].system]);
		return 0;
	case COLUMN_LOST_BEFORE:
		if (scan->at > 1)
			*ret = value_number(0);
		else if (run->missed >= 0)
			*ret = value_number(run->missed);
		return 0;
	case COLUMN_FIELDS:
		return fields_value(scan, ret);
	case COLUMN_EVENTS_BUFFER:
		*ret = text_value(dat->buffers[run->buffer].name);
		return 0;
	default:
		return 0;
	}
}

/* Arrays as JSON has them, without the quotes that it would put around a list of CPUs */
static int field_value(struct query_scan *scan, const struct field_value *field, struct value *ret)
{
	const struct decode_event *event = event_of(scan);
	const uint8_t *bytes;
	uint32_t size;
	bool quoted;

	switch (field->kind) {
	case VALUE_NUMBER:
		*ret = value_number(field_signed(&field->at, event));
		return 0;
	case VALUE_BOOL:
		*ret = value_number(field_number(&field->at, event) != 0);
		return 0;
	case VALUE_STRING:
		bytes = field_value_bytes(field, event, &size);
		*ret = (struct value){.kind = VALUE_TEXT,
				      .text = (const char *)bytes,
				      .size = strnlen((const char *)bytes, size)};
		return 0;
	case VALUE_NUMBERS:
	case VALUE_CPUS:
		break;
	}
	quoted = field->kind == VALUE_CPUS;
	scan->text.size = 0;
	json_printer_value(field, event, &scan->text);
	if (scan->text.no_memory)
		return -ENOMEM;
	*ret = (struct value){.kind = VALUE_TEXT,
			      .text = scan->text.bytes + quoted,
			      .size = scan->text.size - 2 * quoted};
	return 0;
}

static int name_value(struct query_scan *scan, size_t name, struct value *ret)
{
	scan->text.size = 0;
	field_names_put(scan->file->names, name, event_of(scan), &scan->text);
	if (scan->text.no_memory)
		return -ENOMEM;
	*ret = (struct value){
		.kind = VALUE_TEXT,
		.text = scan->text.size > 0 ? scan->text.bytes : "",
		.size = scan->text.size,
	};
	return 0;
}

static int column_value(struct query_scan *scan, unsigned column, struct value *ret)
{
	const struct open_file *file = scan->file;

	*ret = (struct value){};
	if (!scan->kind || column < _COLUMN_COMMON)
		return common_value(scan, column, ret);
	if (file->has_field[column])
		return field_value(scan, &file->fields[column], ret);
	if (file->name_of[column] >= 0)
		return name_value(scan, (size_t)file->name_of[column], ret);
	for (size_t i = 0; i < ARRAY_SIZE(extras); i++)
		if (strcmp(scan->table->columns[column].name, extras[i].name) == 0)
			return common_value(scan, extras[i].column, ret);
	return 0;
}

#define SCAN                                                                          \
	.ordered = true, .open = open_scan, .next = next_row, .column = column_value, \
	.row = row_number, .close = close_scan
#define GOES_BY (1U << COLUMN_TS | 1U << COLUMN_CPU | 1U << COLUMN_PID)

const struct query_table_type events_type = {SCAN, .goes_by = GOES_BY};

static const struct query_table_type all_events_type = {
	SCAN,
	.goes_by = GOES_BY | 1U << COLUMN_SYSTEM | 1U << COLUMN_NAME,
};

const struct query_table events_table = {
	.name = (char *)"events",
	.type = &all_events_type,
	.columns = events_table_columns,
	.n_columns = ARRAY_SIZE(events_table_columns),
};
