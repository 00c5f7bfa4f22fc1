/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "analysis/words.h"
#include "query/query-internal.h"
#include "query/waits.h"

#define STOP_RUNS 1024U /* runs of events from one look to the next whether to go on */

/* A span, as far as it outlives the call */
struct wait {
	enum span_kind kind;
	uint32_t cpu;
	uint64_t from, nsec, bytes;
	const struct span_task *task, *waker_task;
	const struct span_label *label, *call;
	const struct task_place *place; /* NULL: not known */
	int32_t tgid;
	int32_t prio;
	enum span_waker waker;
	bool preempted;
};

/* Which value a column has */
enum what {
	WHAT_TS,
	WHAT_CPU,
	WHAT_PID,
	WHAT_COMM,
	WHAT_UNIT,
	WHAT_NSEC,
	WHAT_PREEMPTED,
	WHAT_PRIO,
	WHAT_WAKER,
	WHAT_WAKER_PID,
	WHAT_WAKER_COMM,
	WHAT_STACK,
	WHAT_CALL,
	WHAT_KIND,
	WHAT_NUMBER,
	WHAT_NAME,
	WHAT_DEVICE,
	WHAT_OPERATION,
	WHAT_BYTES,
	WHAT_TGID,
	WHAT_CONTAINER,
};

/* A table: its columns beside these, and the spans that are its rows */
struct kind {
	unsigned spans;
	const enum what *what; /* by column */
};

struct query_scan {
	struct query *query;
	const struct kind *kind;
	struct spans *spans;
	struct event_filter filter;
	struct sources_facts facts;
	struct sources *sources;
	struct who *who;
	struct cpu_list cpus;
	const struct cpu_list *on_cpus; /* NULL: on all */

	struct wait *waits; /* that were found and are not rows yet */
	size_t n, room, at; /* at: behind the row's */
	int64_t row;
	char *text; /* of a column of the row */
};

static bool is_wanted(const struct query_scan *scan, const struct wait *w)
{
	const struct event_filter *filter = scan->query->config.filter;
	const char *task = scan->query->config.task;
	bool pid = !filter->has_pids;

	if (scan->on_cpus && !cpu_list_has(scan->on_cpus, w->cpu))
		return false;
	for (size_t i = 0; i < filter->n_pids && !pid; i++)
		pid = w->task && filter->pids[i] == w->task->pid;
	if (!pid || (task && (!w->task || fnmatch(task, w->task->comm, 0) != 0)))
		return false;
	return !event_filter_has_places(filter) || (w->place && w->place->wanted);
}

static int on_span(void *userdata, const struct span *span)
{
	struct query_scan *scan = userdata;
	const struct task_who *who =
		scan->who && span->task ? who_find(scan->who, span->task->pid, span->to) : NULL;
	const struct wait wait = {
		.kind = span->kind,
		.cpu = span->cpu,
		.from = span->from,
		.nsec = span->to - span->from,
		.bytes = span->bytes,
		.task = span->task,
		.waker_task = span->waker_task,
		.label = span->label,
		.call = span->call,
		.place = who ? who->place : NULL,
		.tgid = who ? who->tgid : 0,
		.prio = span->prio,
		.waker = span->waker,
		.preempted = span->preempted,
	};

	if (!is_wanted(scan, &wait))
		return 0;
	if (scan->n == scan->room) {
		const size_t room = MAX(2 * scan->room, (size_t)64);
		struct wait *more = reallocarray(scan->waits, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		scan->waits = more;
		scan->room = room;
	}
	scan->waits[scan->n++] = wait;
	return 0;
}

static void close_scan(struct query_scan *scan)
{
	if (!scan)
		return;
	if (scan->sources)
		scan->query->n_faults += scan->facts.n_faults;
	if (scan->sources)
		query_note(scan->query, spans_totals(scan->spans), &scan->facts, NULL, scan);
	sources_free(scan->sources);
	spans_free(scan->spans);
	who_free(scan->who);
	free(scan->waits);
	free(scan->text);
	free(scan);
}

static bool asks(const struct query_table *table, const struct query_want *want, enum what what)
{
	const struct kind *kind = table->kind;

	for (unsigned i = 0; i < table->n_columns; i++)
		if (kind->what[i] == what && query_wants(want, i))
			return true;
	return false;
}

static int open_scan(struct query *query, struct query_table *table, const struct query_want *want,
		     struct query_scan **ret, struct fault *why)
{
	struct query_scan *scan = calloc(1, sizeof(*scan));
	struct sources_config config = query_sources(query);
	struct spans_config spans = {.on_span = on_span, .userdata = scan};
	int r = scan ? 0 : -ENOMEM;

	if (r >= 0) {
		scan->query = query;
		scan->row = (int64_t)query->host << HOST_ROWS;
		scan->kind = table->kind;
		spans.kinds = scan->kind->spans;
		spans.stacks = asks(table, want, WHAT_STACK);
		r = spans_new(&spans, &scan->spans);
	}
	if (r >= 0 && (asks(table, want, WHAT_UNIT) || asks(table, want, WHAT_TGID) ||
		       asks(table, want, WHAT_CONTAINER) || event_filter_has_places(config.filter)))
		r = who_new(config.filter->units, config.filter->containers, false, &scan->who);
	if (r < 0) {
		close_scan(scan);
		return fault_errno(why, r, "cannot query");
	}
	/* events of other CPUs and tasks tell of these, too */
	scan->filter = *config.filter;
	scan->cpus = scan->filter.cpus;
	scan->on_cpus = scan->filter.has_cpus ? &scan->cpus : NULL;
	scan->filter.has_cpus = scan->filter.has_pids = false;
	config.filter = &scan->filter;
	config.spans = scan->spans;
	config.who = scan->who;
	config.machine =
		asks(table, want, WHAT_NAME) && scan->kind->spans == SPAN_BIT(SPAN_SYSCALL);
	r = sources_new(&config, &scan->facts, &scan->sources, why);
	if (r < 0) {
		close_scan(scan);
		return r;
	}
	*ret = scan;
	return 0;
}

static int next_row(struct query_scan *scan, struct fault *why)
{
	struct source_run run;

	scan->at++;
	scan->row++;
	if (scan->at <= scan->n)
		return 1;
	scan->n = 0;
	scan->at = 1;
	for (unsigned i = 1; scan->n == 0; i++) {
		int r = sources_next(scan->sources, &run, why);

		if (r <= 0)
			return r;
		if (i % STOP_RUNS == 0 && !query_goes_on(scan->query, scan->sources))
			return SCAN_E_STOPPED;
	}
	/* a scan that finds a row in each run has to ask, too */
	return scan->row % STOP_RUNS == 0 && !query_goes_on(scan->query, scan->sources)
		       ? SCAN_E_STOPPED
		       : 1;
}

static int64_t row_number(const struct query_scan *scan)
{
	return scan->row;
}

/* --- values */

static struct value text_value(const char *text)
{
	return text && *text
		       ? (struct value){.kind = VALUE_TEXT, .text = text, .size = strlen(text)}
		       : (struct value){};
}

/* Takes over @text */
static int made_value(struct query_scan *scan, char *text, struct value *ret)
{
	free(scan->text);
	scan->text = text;
	*ret = text_value(text);
	return text ? 0 : -ENOMEM;
}

static int label_value(struct query_scan *scan, const struct wait *w, enum what what,
		       struct value *ret)
{
	const struct span_label *label = what == WHAT_CALL ? w->call : w->label;

	if (!label)
		return 0;
	switch (what) {
	case WHAT_NUMBER:
		*ret = value_number((int64_t)label->number);
		return 0;
	case WHAT_DEVICE:
		return made_value(scan, analysis_device(label->number), ret);
	case WHAT_STACK:
	case WHAT_OPERATION:
		*ret = text_value(label->text);
		return 0;
	default:
		return made_value(scan, analysis_label(&scan->facts, label), ret);
	}
}

static int task_value(const struct wait *w, enum what what, struct value *ret)
{
	switch (what) {
	case WHAT_PID:
		if (w->task)
			*ret = value_number(w->task->pid);
		return 0;
	case WHAT_COMM:
		*ret = text_value(w->task ? w->task->comm : NULL);
		return 0;
	case WHAT_UNIT:
		*ret = text_value(w->place ? w->place->names.unit : NULL);
		return 0;
	case WHAT_CONTAINER:
		*ret = text_value(w->place ? w->place->names.container : NULL);
		return 0;
	case WHAT_TGID:
		if (w->tgid > 0)
			*ret = value_number(w->tgid);
		return 0;
	case WHAT_WAKER:
		*ret = text_value(analysis_waker_kind(w->waker));
		return 0;
	case WHAT_WAKER_PID:
		if (w->waker_task)
			*ret = value_number(w->waker_task->pid);
		return 0;
	case WHAT_WAKER_COMM:
		*ret = text_value(w->waker_task ? w->waker_task->comm : NULL);
		return 0;
	default:
		return 0;
	}
}

static int column_value(struct query_scan *scan, unsigned column, struct value *ret)
{
	const struct wait *w = &scan->waits[scan->at - 1];
	const enum what what = scan->kind->what[column];

	*ret = (struct value){};
	switch (what) {
	case WHAT_TS:
		*ret = value_number((int64_t)w->from);
		return 0;
	case WHAT_CPU:
		*ret = value_number(w->cpu);
		return 0;
	case WHAT_NSEC:
		*ret = value_number((int64_t)w->nsec);
		return 0;
	case WHAT_BYTES:
		*ret = value_number((int64_t)w->bytes);
		return 0;
	case WHAT_PREEMPTED:
		*ret = value_number(w->preempted);
		return 0;
	case WHAT_PRIO:
		if (w->prio >= 0)
			*ret = value_number(w->prio);
		return 0;
	case WHAT_KIND:
		*ret = text_value(w->kind == SPAN_IRQ ? "irq" : "softirq");
		return 0;
	case WHAT_STACK:
	case WHAT_CALL:
	case WHAT_NUMBER:
	case WHAT_NAME:
	case WHAT_DEVICE:
	case WHAT_OPERATION:
		return label_value(scan, w, what, ret);
	default:
		return task_value(w, what, ret);
	}
}

static const struct query_table_type type = {
	.open = open_scan,
	.next = next_row,
	.column = column_value,
	.row = row_number,
	.close = close_scan,
};

/* --- tables */

/* clang-format off */
#define COMMON_COLUMNS \
	{"ts", COLUMN_WIDE | COLUMN_SET}, {"cpu", 0}, {"pid", 0}, {"comm", COLUMN_TEXT}, {"unit", COLUMN_TEXT}, \
	{"nsec", COLUMN_WIDE | COLUMN_SET}
#define COMMON_WHAT WHAT_TS, WHAT_CPU, WHAT_PID, WHAT_COMM, WHAT_UNIT, WHAT_NSEC
#define LAST_COLUMNS {"tgid", COLUMN_HIDDEN}, {"container", COLUMN_TEXT | COLUMN_HIDDEN}
#define LAST_WHAT WHAT_TGID, WHAT_CONTAINER
#define WAKER_COLUMNS {"waker", COLUMN_TEXT}, {"waker_pid", 0}, {"waker_comm", COLUMN_TEXT}
#define WAKER_WHAT WHAT_WAKER, WHAT_WAKER_PID, WHAT_WAKER_COMM

#define TABLE(name_, columns_, what_, spans_)                            \
	const struct query_table name_##_table = {                       \
		.name = (char *)#name_,                                  \
		.type = &type,                                           \
		.kind = &(const struct kind){.spans = (spans_), .what = (what_)}, \
		.columns = (columns_),                                   \
		.n_columns = ARRAY_SIZE(columns_),                       \
	}

static struct query_column runqueue_columns[] = {
	COMMON_COLUMNS, {"preempted", 0}, {"prio", 0}, WAKER_COLUMNS, LAST_COLUMNS,
};
static const enum what runqueue_what[] = {
	COMMON_WHAT, WHAT_PREEMPTED, WHAT_PRIO, WAKER_WHAT, LAST_WHAT,
};
TABLE(runqueue, runqueue_columns, runqueue_what, SPAN_BIT(SPAN_RUNQUEUE));

static struct query_column blocked_columns[] = {
	COMMON_COLUMNS, {"stack", COLUMN_TEXT}, {"syscall", COLUMN_TEXT}, WAKER_COLUMNS, LAST_COLUMNS,
};
static const enum what blocked_what[] = {
	COMMON_WHAT, WHAT_STACK, WHAT_CALL, WAKER_WHAT, LAST_WHAT,
};
TABLE(blocked, blocked_columns, blocked_what, SPAN_BIT(SPAN_BLOCKED));

static struct query_column irqs_columns[] = {
	COMMON_COLUMNS, {"kind", COLUMN_TEXT}, {"number", 0}, {"name", COLUMN_TEXT}, LAST_COLUMNS,
};
static const enum what irqs_what[] = {
	COMMON_WHAT, WHAT_KIND, WHAT_NUMBER, WHAT_NAME, LAST_WHAT,
};
TABLE(irqs, irqs_columns, irqs_what, SPAN_BIT(SPAN_IRQ) | SPAN_BIT(SPAN_SOFTIRQ));

static struct query_column block_columns[] = {
	COMMON_COLUMNS, {"device", COLUMN_TEXT}, {"operation", COLUMN_TEXT}, {"bytes", 0}, LAST_COLUMNS,
};
static const enum what block_what[] = {
	COMMON_WHAT, WHAT_DEVICE, WHAT_OPERATION, WHAT_BYTES, LAST_WHAT,
};
TABLE(block, block_columns, block_what, SPAN_BIT(SPAN_BLOCK));

static struct query_column syscalls_columns[] = {
	COMMON_COLUMNS, {"number", 0}, {"name", COLUMN_TEXT}, LAST_COLUMNS,
};
static const enum what syscalls_what[] = {
	COMMON_WHAT, WHAT_NUMBER, WHAT_NAME, LAST_WHAT,
};
TABLE(syscalls, syscalls_columns, syscalls_what, SPAN_BIT(SPAN_SYSCALL));
/* clang-format on */
