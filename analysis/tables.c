/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <search.h>
#include <string.h>

#include "analysis/run-history.h"
#include "analysis/tables.h"
#include "basic/array-room.h"
#include "basic/strv.h"

#define PAIRS_MAX (UINT32_C(1) << 17)

/* Of a task, by its index */
struct of_task {
	struct measure measure; /* of the view's spans */
	union {
		struct {
			uint64_t wakeup, wakeup_max, preempted, preempted_max;
		} runqueue;
		struct table_times tasks;
		const struct span_label *stack; /* of the longest; VIEW_BLOCKED */
		struct {
			const struct task_place *place; /* of its last span */
			struct of_unit *unit;		/* likewise; NULL: there was none */
		} units;
	};
};

/* VIEW_UNITS, and by_unit */
struct of_unit {
	struct table_unit unit; /* first: pairs have it */
	uint64_t runs;
	struct table_times times;
};

/* Of two things: preemptor and victim, waker and who was woken, task and stack */
struct pair {
	const void *first, *second;
	enum span_waker waker;
	uint64_t count, total, max, max_at; /* count 0: free */
};

/* Of a label, by its index */
struct of_label {
	const struct span_label *label;
	struct measure measure;
	uint64_t bytes;
};

/* Of a kind of event */
struct of_event {
	char *name;
	uint64_t count, bytes;
};

struct tables {
	struct tables_config config;
	struct spans *spans;

	struct of_task *tasks;
	size_t n_tasks;
	struct of_label *labels;
	size_t n_labels;
	struct pair *pairs; /* open-addressed */
	size_t n_pairs, pairs_room;
	struct run_history *history; /* VIEW_PREEMPTORS */
	uint64_t left_out;

	struct of_event *events;
	size_t n_events;
	struct of_unit **units;
	size_t n_units;
	void *by_unit; /* tree of them */
};

static const struct view {
	const char *name;
	unsigned kinds; /* of spans */
	/* events without which it has nothing to say, or not all */
	enum known_event needs[5];
} views[_VIEW_MAX] = {
	[VIEW_TASKS] = {"tasks",
			SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_RUNQUEUE) | SPAN_BIT(SPAN_BLOCKED) |
				SPAN_BIT(SPAN_ASLEEP),
			{KNOWN_SWITCH, KNOWN_WAKING}},
	[VIEW_UNITS] = {"units",
			SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_RUNQUEUE) | SPAN_BIT(SPAN_BLOCKED) |
				SPAN_BIT(SPAN_ASLEEP),
			{KNOWN_SWITCH, KNOWN_WAKING}},
	[VIEW_RUNQUEUE] = {"runqueue", SPAN_BIT(SPAN_RUNQUEUE), {KNOWN_SWITCH, KNOWN_WAKING}},
	[VIEW_BLOCKED] = {"blocked",
			  SPAN_BIT(SPAN_BLOCKED),
			  {KNOWN_SWITCH, KNOWN_WAKING, KNOWN_STACK}},
	[VIEW_PREEMPTORS] = {"preemptors",
			     SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_RUNQUEUE),
			     {KNOWN_SWITCH, KNOWN_WAKING}},
	[VIEW_WAKERS] = {"wakers", SPAN_BIT(SPAN_RUNQUEUE), {KNOWN_SWITCH, KNOWN_WAKING}},
	[VIEW_IRQ] = {"irq", SPAN_BIT(SPAN_IRQ), {KNOWN_IRQ_ENTRY, KNOWN_IRQ_EXIT}},
	[VIEW_SOFTIRQ] = {"softirq",
			  SPAN_BIT(SPAN_SOFTIRQ),
			  {KNOWN_SOFTIRQ_ENTRY, KNOWN_SOFTIRQ_EXIT}},
	[VIEW_BLOCK] = {"block", SPAN_BIT(SPAN_BLOCK), {KNOWN_BLOCK_ISSUE, KNOWN_BLOCK_COMPLETE}},
	[VIEW_SYSCALLS] = {"syscalls", SPAN_BIT(SPAN_SYSCALL), {KNOWN_RAW_ENTER, KNOWN_RAW_EXIT}},
	[VIEW_EVENTS] = {"events", 0, {}},
};

bool table_view_find(const char *name, enum table_view *ret)
{
	for (unsigned i = 0; i < _VIEW_MAX; i++)
		if (strcmp(views[i].name, name) == 0) {
			*ret = (enum table_view)i;
			return true;
		}
	return false;
}

const char *table_view_name(enum table_view view)
{
	return views[view].name;
}

size_t tables_missing(const struct tables *tables, const char **ret)
{
	const struct spans_totals *totals = tables_totals(tables);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(views[0].needs); i++) {
		enum known_event event = views[tables->config.view].needs[i];

		if (event != KNOWN_NOT && !spans_totals_saw(totals, event))
			ret[n++] = known_events_name(event);
	}
	return n;
}

const struct spans_totals *tables_totals(const struct tables *tables)
{
	return spans_totals(tables->spans);
}

/* --- adding up */

static struct pair *find_pair(const struct tables *t, const void *first, const void *second,
			      enum span_waker waker)
{
	uint64_t hash = ((uintptr_t)first * UINT64_C(0x9e3779b97f4a7c15)) ^
			((uintptr_t)second * UINT64_C(0xc2b2ae3d27d4eb4f)) ^ waker;
	size_t i = (hash ^ hash >> 32) & (t->pairs_room - 1);

	while (t->pairs[i].count > 0 &&
	       (t->pairs[i].first != first || t->pairs[i].second != second ||
		t->pairs[i].waker != waker))
		i = (i + 1) & (t->pairs_room - 1);
	return &t->pairs[i];
}

static int grow_pairs(struct tables *t)
{
	struct pair *old = t->pairs;
	size_t room = t->pairs_room;

	t->pairs_room = MAX(2 * room, (size_t)256);
	t->pairs = calloc(t->pairs_room, sizeof(*t->pairs));
	if (!t->pairs) {
		t->pairs = old;
		t->pairs_room = room;
		return -ENOMEM;
	}
	for (size_t i = 0; i < room; i++)
		if (old[i].count > 0)
			*find_pair(t, old[i].first, old[i].second, old[i].waker) = old[i];
	free(old);
	return 0;
}

static int add_pair(struct tables *t, const void *first, const void *second, enum span_waker waker,
		    uint64_t nsec, uint64_t at)
{
	struct pair *pair;

	if (2 * (t->n_pairs + 1) > t->pairs_room && grow_pairs(t) < 0)
		return -ENOMEM;
	pair = find_pair(t, first, second, waker);
	if (pair->count == 0) {
		if (t->n_pairs == PAIRS_MAX) {
			t->left_out++;
			return 0;
		}
		t->n_pairs++;
		*pair = (struct pair){.first = first, .second = second, .waker = waker};
	}
	if (pair->count++ == 0 || nsec > pair->max) {
		pair->max = nsec;
		pair->max_at = at;
	}
	pair->total += nsec;
	return 0;
}

static void add_times(struct table_times *to, const struct span *span)
{
	uint64_t nsec = span->to - span->from;

	switch (span->kind) {
	case SPAN_RUN:
		to->run += nsec;
		break;
	case SPAN_RUNQUEUE:
		to->runqueue += nsec;
		to->runqueue_max = MAX(to->runqueue_max, nsec);
		break;
	case SPAN_BLOCKED:
		to->blocked += nsec;
		to->blocked_max = MAX(to->blocked_max, nsec);
		break;
	case SPAN_ASLEEP:
		to->asleep += nsec;
		break;
	default:
		break;
	}
}

/* NULL before all others */
static int compare_text(const char *a, const char *b)
{
	return !a || !b ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

/* A unit has several control groups, and what is in none its own */
static int by_unit(const void *a, const void *b)
{
	const struct task_place *x = ((const struct of_unit *)a)->unit.place;
	const struct task_place *y = ((const struct of_unit *)b)->unit.place;
	int r;

	if (!x || !y || x == y)
		return x == y ? 0 : (x != NULL) - (y != NULL);
	r = compare_text(x->names.unit, y->names.unit);
	if (r == 0)
		r = compare_text(x->names.manager, y->names.manager);
	return r != 0 ? r : compare_text(x->names.container, y->names.container);
}

/* NULL without memory */
static struct of_unit *get_unit(struct tables *t, const struct task_place *place)
{
	const struct of_unit like = {.unit = {.place = place}};
	struct of_unit **found = tfind(&like, &t->by_unit, by_unit), *unit;

	if (found)
		return *found;
	unit = calloc(1, sizeof(*unit));
	if (unit)
		unit->unit.place = place;
	if (!unit || array_grow(&t->units, t->n_units, sizeof(struct of_unit *)) < 0 ||
	    !tsearch(unit, &t->by_unit, by_unit)) {
		free(unit);
		return NULL;
	}
	t->units[t->n_units++] = unit;
	return unit;
}

static const struct task_place *place_of(const struct tables *t, const struct span_task *task,
					 uint64_t at)
{
	const struct task_who *who = t->config.who ? who_find(t->config.who, task->pid, at) : NULL;

	return who ? who->place : NULL;
}

static int add_to_unit(struct tables *t, struct of_task *of, const struct span *span)
{
	const struct task_place *place = place_of(t, span->task, span->to);

	if (!of->units.unit || of->units.place != place) {
		struct of_unit *unit = get_unit(t, place);

		if (!unit)
			return -ENOMEM;
		unit->unit.tasks += of->units.unit != unit;
		of->units.unit = unit;
		of->units.place = place;
	}
	of->units.unit->runs += span->kind == SPAN_RUN;
	add_times(&of->units.unit->times, span);
	return 0;
}

static int add_runqueue(struct of_task *to, const struct span *span)
{
	uint64_t nsec = span->to - span->from;

	if (span->preempted) {
		to->runqueue.preempted += nsec;
		to->runqueue.preempted_max = MAX(to->runqueue.preempted_max, nsec);
	} else {
		to->runqueue.wakeup += nsec;
		to->runqueue.wakeup_max = MAX(to->runqueue.wakeup_max, nsec);
	}
	return measure_add(&to->measure, span->from, span->to);
}

static int add_blocked(struct tables *t, struct of_task *to, const struct span *span)
{
	int r = measure_add(&to->measure, span->from, span->to);

	if (r >= 0 && to->measure.max_at == span->from)
		to->stack = span->label;
	return r < 0 || !span->label
		       ? r
		       : add_pair(t, span->task, span->label, 0, span->to - span->from, span->from);
}

static int add_preemptor(struct tables *t, const struct span_task *task, const struct span *victim,
			 uint64_t from, uint64_t to)
{
	struct of_unit *unit = NULL, *other;

	if (!t->config.by_unit)
		return add_pair(t, task, victim->task, 0, to - from, from);
	other = get_unit(t, place_of(t, victim->task, victim->to));
	if (task)
		unit = get_unit(t, place_of(t, task, to));
	if (!other || (task && !unit))
		return -ENOMEM;
	return add_pair(t, unit, other, 0, to - from, from);
}

/* All that ran meanwhile on the CPU where the wait ended */
static int add_preemptors(struct tables *t, const struct span *span)
{
	struct run_slice slice;
	size_t i = 0;
	int r = 0;

	while (r >= 0 && run_history_next(t->history, span->cpu, span->from, &i, &slice)) {
		uint64_t from = MAX(slice.from, span->from), to = MIN(slice.to, span->to);

		if (to > from)
			r = add_preemptor(t, slice.task, span, from, to);
	}
	return r;
}

static int add_label(struct tables *t, const struct span *span)
{
	struct of_label *to;

	if (!span->label)
		return 0;
	if (array_room(&t->labels, &t->n_labels, span->label->index, sizeof(*to)) < 0)
		return -ENOMEM;
	to = &t->labels[span->label->index];
	to->label = span->label;
	to->bytes += span->bytes;
	return measure_add(&to->measure, span->from, span->to);
}

bool tables_filter_wants(const struct tables_filter *filter, const struct who *who,
			 const struct span *span)
{
	if (filter->cpus && !cpu_list_has(filter->cpus, span->cpu))
		return false;
	if (filter->places) {
		const struct task_who *of =
			who && span->task ? who_find(who, span->task->pid, span->to) : NULL;

		if (!of || !of->place || !of->place->wanted)
			return false;
	}
	if (filter->pid)
		return span->task && span->task->pid == filter->pid;
	return !filter->task || (span->task && fnmatch(filter->task, span->task->comm, 0) == 0);
}

static int on_span(void *userdata, const struct span *span)
{
	struct tables *t = userdata;
	struct of_task *to = NULL;

	if (t->history && span->kind == SPAN_RUN)
		return run_history_add(t->history, span);
	if (!tables_filter_wants(&t->config.filter, t->config.who, span))
		return 0;
	if (span->task) {
		if (array_room(&t->tasks, &t->n_tasks, span->task->index, sizeof(*to)) < 0)
			return -ENOMEM;
		to = &t->tasks[span->task->index];
	}
	switch (t->config.view) {
	case VIEW_TASKS:
		if (to) {
			to->measure.count += span->kind == SPAN_RUN;
			add_times(&to->tasks, span);
		}
		return 0;
	case VIEW_UNITS:
		return to ? add_to_unit(t, to, span) : 0;
	case VIEW_RUNQUEUE:
		return add_runqueue(to, span);
	case VIEW_BLOCKED:
		return add_blocked(t, to, span);
	case VIEW_PREEMPTORS:
		return add_preemptors(t, span);
	case VIEW_WAKERS:
		return span->preempted ? 0
				       : add_pair(t, span->waker_task, span->task, span->waker,
						  span->to - span->from, span->from);
	case VIEW_IRQ:
	case VIEW_SOFTIRQ:
	case VIEW_BLOCK:
	case VIEW_SYSCALLS:
		return add_label(t, span);
	case VIEW_EVENTS:
	case _VIEW_MAX:
		break;
	}
	return 0;
}

/* --- tables */

int tables_new(const struct tables_config *config, struct tables **ret)
{
	_cleanup_(tables_freep) struct tables *t = calloc(1, sizeof(*t));
	struct spans_config spans = {
		.kinds = views[config->view].kinds,
		.stacks = config->view == VIEW_BLOCKED,
		.on_span = on_span,
		.userdata = t,
	};

	if (!t)
		return -ENOMEM;
	t->config = *config;
	if (spans_new(&spans, &t->spans) < 0)
		return -ENOMEM;
	if (config->view == VIEW_PREEMPTORS && run_history_new(&t->history) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(t);
	return 0;
}

struct tables *tables_free(struct tables *tables)
{
	if (!tables)
		return NULL;
	for (size_t i = 0; i < tables->n_tasks; i++)
		measure_done(&tables->tasks[i].measure);
	for (size_t i = 0; i < tables->n_labels; i++)
		measure_done(&tables->labels[i].measure);
	for (size_t i = 0; i < tables->n_events; i++)
		free(tables->events[i].name);
	tdestroy(tables->by_unit, free); /* the list has them, too */
	free(tables->units);
	free(tables->tasks);
	free(tables->labels);
	free(tables->pairs);
	free(tables->events);
	run_history_free(tables->history);
	spans_free(tables->spans);
	free(tables);
	return NULL;
}

struct spans *tables_spans(struct tables *tables)
{
	return tables->spans;
}

int tables_count(void *tables, const char *name, uint64_t count, uint64_t bytes)
{
	struct tables *t = tables;
	size_t i = 0;

	while (i < t->n_events && strcmp(t->events[i].name, name) != 0)
		i++;
	if (i == t->n_events) {
		char *copy = strdup(name);

		if (!copy || array_grow(&t->events, t->n_events, sizeof(*t->events)) < 0) {
			free(copy);
			return -ENOMEM;
		}
		t->events[t->n_events++] = (struct of_event){.name = copy};
	}
	t->events[i].count += count;
	t->events[i].bytes += bytes;
	return 0;
}

/* --- rows */

struct rows {
	struct table_row *rows;
	size_t n;
};

static struct table_row *add_row(struct rows *rows)
{
	if (array_grow(&rows->rows, rows->n, sizeof(*rows->rows)) < 0)
		return NULL;
	rows->rows[rows->n] = (struct table_row){};
	return &rows->rows[rows->n++];
}

static void fill_measure(struct table_row *row, const struct measure *measure)
{
	row->count = measure->count;
	row->total = measure->total;
	row->p50 = measure_quantile(measure, 500);
	row->p99 = measure_quantile(measure, 990);
	row->max = measure->max;
	row->max_at = measure->max_at;
}

static int task_rows(const struct tables *t, struct rows *rows)
{
	for (uint32_t i = 0; i < MIN(t->n_tasks, (size_t)spans_tasks(t->spans)); i++) {
		const struct of_task *of = &t->tasks[i];
		struct table_row *row;

		if (of->measure.count == 0 &&
		    (t->config.view != VIEW_TASKS || of->tasks.runqueue + of->tasks.blocked == 0))
			continue;
		row = add_row(rows);
		if (!row)
			return -ENOMEM;
		row->task = spans_task(t->spans, i);
		fill_measure(row, &of->measure);
		if (t->config.view == VIEW_RUNQUEUE) {
			row->runqueue.wakeup = of->runqueue.wakeup;
			row->runqueue.wakeup_max = of->runqueue.wakeup_max;
			row->runqueue.preempted = of->runqueue.preempted;
			row->runqueue.preempted_max = of->runqueue.preempted_max;
		} else if (t->config.view == VIEW_BLOCKED) {
			row->text = of->stack ? of->stack->text : NULL;
		} else {
			row->tasks = of->tasks;
		}
	}
	return 0;
}

static int pair_rows(const struct tables *t, struct rows *rows)
{
	for (size_t i = 0; i < t->pairs_room; i++) {
		const struct pair *pair = &t->pairs[i];
		struct table_row *row;

		if (pair->count == 0)
			continue;
		row = add_row(rows);
		if (!row)
			return -ENOMEM;
		if (t->config.by_unit) {
			row->unit = pair->first;
			row->other_unit = pair->second;
		} else {
			row->task = pair->first;
			row->other = pair->second;
		}
		row->waker = pair->waker;
		row->count = pair->count;
		row->total = pair->total;
		row->max = pair->max;
		row->max_at = pair->max_at;
	}
	return 0;
}

static int label_rows(const struct tables *t, struct rows *rows)
{
	for (size_t i = 0; i < t->n_labels; i++) {
		struct table_row *row;

		if (!t->labels[i].label)
			continue;
		row = add_row(rows);
		if (!row)
			return -ENOMEM;
		row->label = t->labels[i].label;
		row->bytes = t->labels[i].bytes;
		fill_measure(row, &t->labels[i].measure);
	}
	return 0;
}

static int unit_rows(const struct tables *t, struct rows *rows)
{
	for (size_t i = 0; i < t->n_units; i++) {
		struct table_row *row = add_row(rows);

		if (!row)
			return -ENOMEM;
		row->unit = &t->units[i]->unit;
		row->count = t->units[i]->runs;
		row->tasks = t->units[i]->times;
	}
	return 0;
}

static int event_rows(const struct tables *t, struct rows *rows)
{
	for (size_t i = 0; i < t->n_events; i++) {
		struct table_row *row = add_row(rows);

		if (!row)
			return -ENOMEM;
		row->text = t->events[i].name;
		row->count = t->events[i].count;
		row->bytes = t->events[i].bytes;
	}
	return 0;
}

/* By what the view is about; then by what does not change from run to run */
static uint64_t weight(const struct table_row *row, enum table_view view)
{
	switch (view) {
	case VIEW_TASKS:
	case VIEW_UNITS:
		return row->tasks.run;
	case VIEW_RUNQUEUE:
	case VIEW_BLOCKED:
		return row->max;
	case VIEW_WAKERS:
		return row->count;
	case VIEW_EVENTS:
		return row->bytes;
	case VIEW_PREEMPTORS:
	case VIEW_IRQ:
	case VIEW_SOFTIRQ:
	case VIEW_BLOCK:
	case VIEW_SYSCALLS:
	case _VIEW_MAX:
		break;
	}
	return row->total;
}

static uint64_t place(const struct table_row *row)
{
	return row->label ? row->label->index : 0;
}

static const char *path_of(const struct table_unit *unit)
{
	return unit && unit->place ? unit->place->path : "";
}

static int pid_of(const struct span_task *task)
{
	return task ? task->pid : 0;
}

#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

static int by_weight(const void *a, const void *b, void *view)
{
	const struct table_row *x = a, *y = b;
	const enum table_view *v = view;
	int r = COMPARE(weight(y, *v), weight(x, *v));

	if (r == 0)
		r = COMPARE(pid_of(x->task), pid_of(y->task));
	if (r == 0)
		r = COMPARE(pid_of(x->other), pid_of(y->other));
	if (r == 0)
		r = COMPARE((int)x->waker, (int)y->waker);
	if (r == 0)
		r = COMPARE(place(x), place(y));
	if (r == 0)
		r = strcmp(path_of(x->unit), path_of(y->unit));
	if (r == 0)
		r = strcmp(path_of(x->other_unit), path_of(y->other_unit));
	return r == 0 && x->text && y->text ? strcmp(x->text, y->text) : r;
}

static const struct task_who *identify(const struct tables *t, const struct span_task *task)
{
	return task && t->config.who ? who_find(t->config.who, task->pid, UINT64_MAX) : NULL;
}

int tables_rows(struct tables *tables, struct table_row **ret, size_t *ret_n)
{
	struct rows rows = {};
	enum table_view view = tables->config.view;
	int r;

	if (view == VIEW_EVENTS)
		r = event_rows(tables, &rows);
	else if (view == VIEW_UNITS)
		r = unit_rows(tables, &rows);
	else if (view == VIEW_PREEMPTORS || view == VIEW_WAKERS)
		r = pair_rows(tables, &rows);
	else if (view == VIEW_TASKS || view == VIEW_RUNQUEUE || view == VIEW_BLOCKED)
		r = task_rows(tables, &rows);
	else
		r = label_rows(tables, &rows);
	if (r < 0) {
		free(rows.rows);
		return r;
	}
	for (size_t i = 0; i < rows.n; i++) {
		rows.rows[i].who = identify(tables, rows.rows[i].task);
		rows.rows[i].other_who = identify(tables, rows.rows[i].other);
	}
	if (rows.n > 0)
		qsort_r(rows.rows, rows.n, sizeof(*rows.rows), by_weight, &view);
	*ret = rows.rows;
	*ret_n = rows.n;
	return 0;
}

int tables_folded(struct tables *tables,
		  int (*put)(void *userdata, const struct span_task *task, const char *stack,
			     uint64_t nsec),
		  void *userdata)
{
	int r = 0;

	for (size_t i = 0; i < tables->pairs_room && r >= 0; i++) {
		const struct pair *pair = &tables->pairs[i];
		const struct span_label *stack = pair->second;

		if (pair->count > 0)
			r = put(userdata, pair->first, stack->text, pair->total);
	}
	return r;
}
