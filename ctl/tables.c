/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl view: tables of what a recording says. The recordings are read, and the tables made and
 * printed, by a process that has given up its rights.
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/tables.h"
#include "basic/escape.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/analysis.h"
#include "ctl/output.h"

#define TOP_DEFAULT 10

/* --- columns */

enum cell {
	CELL_TASK,
	CELL_WAKER,
	CELL_PID,
	CELL_UNIT,
	CELL_CONTAINER,
	CELL_OF_UNIT, /* VIEW_UNITS */
	CELL_MANAGER,
	CELL_SLICE,
	CELL_TASKS,
	CELL_LABEL, /* name of an interrupt, vector or system call; its number without one */
	CELL_LABEL_NUMBER,
	CELL_DEVICE,
	CELL_OPERATION,
	CELL_TEXT,
	CELL_COUNT,
	CELL_NSEC,
	CELL_AT,
	CELL_BYTES,
	CELL_SHARE,
};

struct column {
	const char *heading; /* NULL: in JSON only */
	const char *key;     /* NULL: in tables only */
	enum cell cell;
	size_t offset; /* of a uint64_t in struct table_row; of a task: of the pointer to it */
};

#define F(member) offsetof(struct table_row, member)
/* clang-format off */
#define PID_UNIT {"PID", "pid", CELL_PID, F(task)}, {"UNIT", "unit", CELL_UNIT, F(who)}, \
		{NULL, "container", CELL_CONTAINER, F(who)}
#define TASK	{"TASK", "task", CELL_TASK, F(task)}, PID_UNIT
#define COUNT	{"COUNT", "count", CELL_COUNT, F(count)}, {"TOTAL", "total_nsec", CELL_NSEC, F(total)}
#define QUANTILES {"P50", "p50_nsec", CELL_NSEC, F(p50)}, {"P99", "p99_nsec", CELL_NSEC, F(p99)}
#define WORST	{"MAX", "max_nsec", CELL_NSEC, F(max)}, {"AT", "max_at_usec", CELL_AT, F(max_at)}
#define TIMES	{"RUNS", "count", CELL_COUNT, F(count)}, \
	{"RUN", "run_nsec", CELL_NSEC, F(tasks.run)}, \
	{"RUNQUEUE", "runqueue_nsec", CELL_NSEC, F(tasks.runqueue)}, \
	{"MAX", "runqueue_max_nsec", CELL_NSEC, F(tasks.runqueue_max)}, \
	{"BLOCKED", "blocked_nsec", CELL_NSEC, F(tasks.blocked)}, \
	{"MAX", "blocked_max_nsec", CELL_NSEC, F(tasks.blocked_max)}, \
	{"ASLEEP", "asleep_nsec", CELL_NSEC, F(tasks.asleep)}
#define OTHER(what, key) {what, key, CELL_TASK, F(other)}, {"PID", key "_pid", CELL_PID, F(other)}, \
		{"UNIT", key "_unit", CELL_UNIT, F(other_who)}

static const struct column tasks_columns[] = {
	TASK, TIMES, {},
};

static const struct column units_columns[] = {
	{"UNIT", "unit", CELL_OF_UNIT, F(unit)}, {NULL, "manager", CELL_MANAGER, F(unit)},
	{NULL, "slice", CELL_SLICE, F(unit)}, {NULL, "container", CELL_CONTAINER, F(unit)},
	{"TASKS", "tasks", CELL_TASKS, 0}, TIMES, {},
};

static const struct column runqueue_columns[] = {
	TASK, COUNT, QUANTILES, WORST,
	{"WAKEUP", "wakeup_nsec", CELL_NSEC, F(runqueue.wakeup)},
	{NULL, "wakeup_max_nsec", CELL_NSEC, F(runqueue.wakeup_max)},
	{"PREEMPTED", "preempted_nsec", CELL_NSEC, F(runqueue.preempted)},
	{NULL, "preempted_max_nsec", CELL_NSEC, F(runqueue.preempted_max)},
	{},
};

static const struct column blocked_columns[] = {
	TASK, COUNT, QUANTILES, WORST,
	{"STACK", "stack", CELL_TEXT, F(text)},
	{},
};

static const struct column preemptors_columns[] = {
	TASK, OTHER("VICTIM", "victim"), COUNT, WORST, {},
};

static const struct column preemptor_units_columns[] = {
	{"UNIT", "unit", CELL_OF_UNIT, F(unit)}, {NULL, "container", CELL_CONTAINER, F(unit)},
	{"VICTIM", "victim_unit", CELL_OF_UNIT, F(other_unit)},
	{NULL, "victim_container", CELL_CONTAINER, F(other_unit)},
	COUNT, WORST, {},
};

static const struct column wakers_columns[] = {
	{"TASK", "task", CELL_WAKER, 0}, PID_UNIT, OTHER("WOKEN", "woken"), COUNT, WORST, {},
};

static const struct column irq_columns[] = {
	{"IRQ", "irq", CELL_LABEL_NUMBER, 0}, {"NAME", "name", CELL_LABEL, 0},
	COUNT, QUANTILES, WORST, {},
};

static const struct column softirq_columns[] = {
	{"SOFTIRQ", "softirq", CELL_LABEL, 0}, {NULL, "vector", CELL_LABEL_NUMBER, 0},
	COUNT, QUANTILES, WORST, {},
};

static const struct column block_columns[] = {
	{"DEVICE", "device", CELL_DEVICE, 0}, {"OPERATION", "operation", CELL_OPERATION, 0},
	{"BYTES", "bytes", CELL_BYTES, F(bytes)},
	COUNT, QUANTILES, WORST, {},
};

static const struct column syscalls_columns[] = {
	{"SYSCALL", "syscall", CELL_LABEL, 0}, {NULL, "number", CELL_LABEL_NUMBER, 0},
	COUNT, QUANTILES, WORST, {},
};

static const struct column events_columns[] = {
	{"EVENT", "event", CELL_TEXT, F(text)}, {"COUNT", "count", CELL_COUNT, F(count)},
	{"BYTES", "bytes", CELL_BYTES, F(bytes)}, {"SHARE", "share_percent", CELL_SHARE, F(bytes)},
	{},
};
/* clang-format on */
#undef F

static const struct view_columns {
	const struct column *columns;
	const char *help;
} views[_VIEW_MAX] = {
	[VIEW_TASKS] = {tasks_columns, "where each task's time went"},
	[VIEW_UNITS] = {units_columns, "where the time of each unit's tasks went"},
	[VIEW_RUNQUEUE] = {runqueue_columns, "how long tasks waited for a CPU"},
	[VIEW_BLOCKED] = {blocked_columns, "how long tasks slept uninterruptibly (D)"},
	[VIEW_PREEMPTORS] = {preemptors_columns, "who ran while others waited for the CPU"},
	[VIEW_WAKERS] = {wakers_columns, "who woke whom, and how long that one waited then"},
	[VIEW_IRQ] = {irq_columns, "handlers of interrupts"},
	[VIEW_SOFTIRQ] = {softirq_columns, "softirqs"},
	[VIEW_BLOCK] = {block_columns, "requests of block devices"},
	[VIEW_SYSCALLS] = {syscalls_columns, "system calls"},
	[VIEW_EVENTS] = {events_columns, "what fills the buffer"},
};

/* --- what is shown */

struct shown {
	struct analysis a;
	enum table_view view;
	const struct column *columns;
	struct tables_filter filter;
	struct tables *tables;
	struct table_row *rows;
	size_t n_rows;
	uint64_t sum; /* bytes of all rows */
};

static const void *member(const struct table_row *row, const struct column *column)
{
	return (const char *)row + column->offset;
}

static const struct span_task *task_of(const struct table_row *row, const struct column *column)
{
	return *(const struct span_task *const *)member(row, column);
}

/* NULL: not known */
static const struct cgroup_names *names_of(const struct table_row *row, const struct column *column)
{
	const struct task_who *who;
	const struct table_unit *unit;

	if (row->unit || row->other_unit) {
		unit = *(const struct table_unit *const *)member(row, column);
		return unit && unit->place ? &unit->place->names : NULL;
	}
	who = *(const struct task_who *const *)member(row, column);
	return who && who->place ? &who->place->names : NULL;
}

/* NULL: none, or not known */
static const char *name_of(const struct table_row *row, const struct column *column)
{
	const struct cgroup_names *names = names_of(row, column);

	if (!names)
		return NULL;
	switch (column->cell) {
	case CELL_MANAGER:
		return names->manager;
	case CELL_SLICE:
		return names->slice;
	case CELL_CONTAINER:
		return names->container;
	default:
		return names->unit;
	}
}

/* Who is in a container and no unit has that at least */
static char *unit_text(const struct table_row *row, const struct column *column)
{
	const struct cgroup_names *names = names_of(row, column);

	if (!*(const struct table_unit *const *)member(row, column))
		return strdup("<idle>");
	if (!names)
		return strdup("<...>");
	return strdup(names->unit ? names->unit : names->container ? names->container : "-");
}

static uint64_t number_of(const struct table_row *row, const struct column *column)
{
	return *(const uint64_t *)member(row, column);
}

/* --- a table */

static char *cell_text(const struct shown *shown, const struct table_row *row,
		       const struct column *column)
{
	const struct span_task *task;
	const char *text;

	switch (column->cell) {
	case CELL_TASK:
		return strdup(analysis_task(task_of(row, column)));
	case CELL_WAKER:
		return strdup(analysis_waker(row->waker, row->task));
	case CELL_PID:
		task = task_of(row, column);
		return task ? strf("%d", task->pid) : strdup("-");
	case CELL_OF_UNIT:
		return unit_text(row, column);
	case CELL_UNIT:
	case CELL_CONTAINER:
	case CELL_MANAGER:
	case CELL_SLICE:
		text = name_of(row, column);
		return strdup(text ? text : "-");
	case CELL_TASKS:
		return strf("%" PRIu64, row->unit->tasks);
	case CELL_LABEL:
		return analysis_label(&shown->a.facts, row->label);
	case CELL_LABEL_NUMBER:
		return strf("%" PRIu64, row->label->number);
	case CELL_DEVICE:
		return analysis_device(row->label->number);
	case CELL_OPERATION:
		return strdup(row->label->text);
	case CELL_TEXT:
		text = *(const char *const *)member(row, column);
		return strdup(text ? text : "-");
	case CELL_COUNT:
		return strf("%" PRIu64, number_of(row, column));
	case CELL_NSEC:
		return analysis_nsec(number_of(row, column));
	case CELL_AT:
		return analysis_at(&shown->a.facts, number_of(row, column));
	case CELL_BYTES:
		return format_bytes(number_of(row, column));
	case CELL_SHARE:
		return strf("%.1f%%", 100.0 * (double)number_of(row, column) /
					      (double)MAX(shown->sum, UINT64_C(1)));
	}
	return NULL;
}

static bool is_shown(const struct shown *shown, const struct column *column)
{
	if (!column->heading)
		return false;
	if (column->cell != CELL_UNIT)
		return true;
	for (size_t i = 0; i < shown->n_rows; i++)
		if (name_of(&shown->rows[i], column))
			return true;
	return false;
}

static struct table make_table(const struct shown *shown, size_t n_rows)
{
	const struct column *columns = shown->columns;
	struct table t = {};

	for (const struct column *c = columns; c->heading || c->key; c++) {
		if (!is_shown(shown, c))
			continue;
		if (c->cell == CELL_TEXT)
			t.tails |= 1U << t.n_columns;
		else if (c->cell != CELL_TASK && c->cell != CELL_WAKER && c->cell != CELL_UNIT &&
			 c->cell != CELL_OF_UNIT && c->cell != CELL_LABEL &&
			 c->cell != CELL_OPERATION)
			t.numbers |= 1U << t.n_columns;
		t.headings[t.n_columns++] = c->heading;
	}
	for (size_t i = 0; i < n_rows; i++)
		for (const struct column *c = columns; c->heading || c->key; c++)
			if (is_shown(shown, c))
				table_add(&t, cell_text(shown, &shown->rows[i], c));
	return t;
}

static void print_notes(const struct shown *shown)
{
	const char *missing[_KNOWN_MAX];
	size_t n = tables_missing(shown->tables, missing);

	for (size_t i = 0; i < n; i++)
		log_notice("view: not recorded: %s", missing[i]);
	analysis_notes(&shown->a, tables_totals(shown->tables));
}

/* --- JSON */

static struct json_object *cell_json(const struct shown *shown, const struct table_row *row,
				     const struct column *column)
{
	_cleanup_free_ char *text = NULL;
	const struct span_task *task;
	const char *unit;

	switch (column->cell) {
	case CELL_PID:
		task = task_of(row, column);
		return json_number(task ? (uint64_t)task->pid : 0);
	case CELL_OF_UNIT:
		if (!names_of(row, column)) {
			text = unit_text(row, column);
			return json_text(text);
		}
		unit = name_of(row, column);
		return unit ? json_text(unit) : NULL;
	case CELL_UNIT:
	case CELL_CONTAINER:
	case CELL_MANAGER:
	case CELL_SLICE:
		unit = name_of(row, column);
		return unit ? json_text(unit) : NULL;
	case CELL_TASKS:
		return json_number(row->unit->tasks);
	case CELL_LABEL_NUMBER:
		return json_number(row->label->number);
	case CELL_COUNT:
	case CELL_NSEC:
	case CELL_BYTES:
		return json_number(number_of(row, column));
	case CELL_AT:
		return json_number(analysis_usec(&shown->a.facts, number_of(row, column)));
	case CELL_SHARE:
		return json_object_new_double(100.0 * (double)number_of(row, column) /
					      (double)MAX(shown->sum, UINT64_C(1)));
	case CELL_TEXT:
		unit = *(const char *const *)member(row, column);
		return unit ? json_text(unit) : NULL;
	case CELL_TASK:
	case CELL_WAKER:
	case CELL_LABEL:
	case CELL_DEVICE:
	case CELL_OPERATION:
		text = cell_text(shown, row, column);
		return json_text(text);
	}
	return NULL;
}

static struct json_object *row_json(const struct shown *shown, const struct table_row *row)
{
	struct json_object *o = json_object_new_object();

	for (const struct column *c = shown->columns; c->heading || c->key; c++)
		if (c->key)
			json_add(o, c->key, cell_json(shown, row, c));
	return o;
}

static enum ctl_status show_json(const struct shown *shown, size_t n_rows)
{
	const struct spans_totals *totals = tables_totals(shown->tables);
	struct json_object *o = json_object_new_object(), *array = json_object_new_array();
	struct json_object *words = json_object_new_array();
	const char *missing[_KNOWN_MAX];
	size_t n = tables_missing(shown->tables, missing);

	for (size_t i = 0; i < n; i++)
		json_append(words, json_text(missing[i]));
	for (size_t i = 0; i < n_rows; i++)
		json_append(array, row_json(shown, &shown->rows[i]));
	json_add(o, "view", json_text(table_view_name(shown->view)));
	json_add(o, "from_usec", json_number(analysis_usec(&shown->a.facts, totals->from)));
	json_add(o, "to_usec", json_number(analysis_usec(&shown->a.facts, totals->to)));
	json_add(o, "events", json_number(totals->events));
	json_add(o, "lost_events", json_number(totals->lost));
	json_add(o, "gaps", json_number(totals->gaps));
	json_add(o, "cut_by_gaps", json_number(totals->ended));
	json_add(o, "begun_before", json_number(totals->unknown));
	json_add(o, "left_out", json_number(totals->left_out));
	json_add(o, "missing", words);
	analysis_sheds_json(&shown->a, o);
	json_add(o, "rows", array);
	return print_json(o);
}

/* --- the verb */

static int put_folded(void *userdata, const struct span_task *task, const char *stack,
		      uint64_t nsec)
{
	_cleanup_free_ char *line = strf("%s;%s", analysis_task(task), stack);

	(void)userdata;
	if (!line || escape_replace(&line) < 0)
		return -ENOMEM;
	printf("%s %" PRIu64 "\n", line, nsec / NSEC_PER_USEC);
	return 0;
}

static int list_rows(struct shown *shown)
{
	int r = tables_rows(shown->tables, &shown->rows, &shown->n_rows);

	for (size_t i = 0; i < shown->n_rows && r >= 0; i++)
		shown->sum += shown->rows[i].bytes;
	return r;
}

static enum ctl_status show(struct shown *shown)
{
	struct table t;
	size_t n;
	int r = list_rows(shown);

	if (r >= 0 && shown->a.ctl->folded)
		r = tables_folded(shown->tables, put_folded, shown);
	if (r >= 0 && !shown->a.ctl->folded) {
		n = shown->a.top ? MIN(shown->n_rows, (size_t)shown->a.top) : shown->n_rows;
		if (shown->a.ctl->json)
			return show_json(shown, n);
		t = make_table(shown, n);
		r = table_print(&t);
	}
	if (r < 0) {
		(void)log_error_errno(r, "view: %m");
		return CTL_FAILED;
	}
	if (!shown->a.ctl->json)
		print_notes(shown);
	return CTL_DONE;
}

/* Does the view show who tasks are, or is that asked for? */
static bool asks_who(const struct shown *shown)
{
	const struct column *c = shown->columns;

	while ((c->heading || c->key) && c->cell != CELL_UNIT && c->cell != CELL_OF_UNIT)
		c++;
	return c->heading || c->key || shown->filter.places;
}

static int read_tables(struct shown *shown)
{
	struct tables_config tables = {
		.view = shown->view,
		.by_unit = shown->columns == preemptor_units_columns,
		.filter = shown->filter,
	};
	struct sources_config sources = {.machine = shown->view == VIEW_SYSCALLS};
	int r = asks_who(shown) ? analysis_ask_who(&shown->a) : 0;

	tables.who = shown->a.who;
	if (r >= 0)
		r = tables_new(&tables, &shown->tables);
	if (r < 0)
		return log_error_errno(r, "%s: %m", shown->a.ctl->verb);
	sources.spans = tables_spans(shown->tables);
	sources.userdata = shown->tables;
	sources.on_count = shown->view == VIEW_EVENTS ? tables_count : NULL;
	return analysis_read(&shown->a, &sources);
}

static void shown_done(struct shown *shown)
{
	free(shown->rows);
	tables_free(shown->tables);
	who_free(shown->a.who);
}

/* Without rights */
static int view_confined(void *userdata)
{
	struct shown *shown = userdata;
	enum ctl_status status = read_tables(shown) >= 0 ? show(shown) : CTL_FAILED;

	shown_done(shown);
	return (int)(shown->a.facts.n_faults > 0 ? CTL_FAILED : status);
}

const char *analysis_table_title(enum table_view view)
{
	return views[view].help;
}

int analysis_table(const struct analysis *analysis, enum table_view view, size_t top,
		   struct table *ret, size_t *ret_rows)
{
	struct shown shown = {.a = *analysis, .view = view, .columns = views[view].columns};
	int r;

	shown.a.who = NULL;
	r = read_tables(&shown);

	if (r >= 0) {
		r = list_rows(&shown);
		if (r < 0)
			(void)log_error_errno(r, "%s: %m", analysis->ctl->verb);
	}
	if (r >= 0) {
		*ret = make_table(&shown, top ? MIN(shown.n_rows, top) : shown.n_rows);
		*ret_rows = shown.n_rows;
	}
	shown_done(&shown);
	return r;
}

/* Events have a pid, not a name */
static bool choose_rows(struct shown *shown, struct cpu_list *cpus)
{
	const struct ctl *ctl = shown->a.ctl;

	shown->filter.places = event_filter_has_places(&shown->a.filter);
	if (shown->view == VIEW_EVENTS) {
		if (!ctl->task || event_filter_pids(&shown->a.filter, ctl->task) >= 0)
			return true;
		(void)ctl_complain(ctl, "--task=: of events, only a pid is possible: \"%s\"",
				   ctl->task);
		return false;
	}
	analysis_filter(&shown->a, &shown->filter, cpus);
	return true;
}

static bool choose_columns(struct shown *shown)
{
	const struct ctl *ctl = shown->a.ctl;
	const bool by_unit = ctl->by && strcmp(ctl->by, "unit") == 0;

	shown->columns = by_unit ? preemptor_units_columns : views[shown->view].columns;
	if (!ctl->by ||
	    (shown->view == VIEW_PREEMPTORS && (by_unit || strcmp(ctl->by, "task") == 0)))
		return true;
	(void)ctl_complain(ctl,
			   shown->view == VIEW_PREEMPTORS ? "--by=: \"%s\" is none of task, unit"
							  : "--by=%s is an option of preemptors",
			   ctl->by);
	return false;
}

static enum ctl_status list_views(const struct ctl *ctl)
{
	struct json_object *array = ctl->json ? json_object_new_array() : NULL;
	struct table t = {.headings = {"NAME", "SHOWS"}, .n_columns = 2};

	for (unsigned i = 0; i < _VIEW_MAX; i++) {
		if (ctl->json) {
			json_append(array, json_text(table_view_name((enum table_view)i)));
			continue;
		}
		table_add_text(&t, table_view_name((enum table_view)i));
		table_add_text(&t, views[i].help);
	}
	if (ctl->json)
		return print_json_member("views", array);
	output_begin(ctl);
	(void)table_print(&t);
	return output_end();
}

enum ctl_status verb_view(struct ctl *ctl, int argc, char **argv)
{
	struct shown shown = {.a.ctl = ctl};
	struct cpu_list cpus;

	if (argc == 1)
		return list_views(ctl);
	if (!table_view_find(argv[1], &shown.view))
		return ctl_complain(ctl, "unknown table \"%s\"; flyrecctl view lists them",
				    argv[1]);
	if (argc == 2)
		return ctl_complain(ctl, "a SOURCE is missing: a trace.dat file or a session");
	if (ctl->folded && (shown.view != VIEW_BLOCKED || ctl->json))
		return ctl_complain(ctl, "--folded is an option of blocked, without --json");
	if (!choose_columns(&shown))
		return CTL_USAGE;
	if (!analysis_options(&shown.a, TOP_DEFAULT) || !choose_rows(&shown, &cpus)) {
		analysis_done(&shown.a);
		return CTL_USAGE;
	}
	return analysis_run(&shown.a, argv + 2, view_confined, &shown);
}
