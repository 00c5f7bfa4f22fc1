/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "basic/strv.h"
#include "convert/clickhouse/clickhouse-events.h"
#include "convert/clickhouse/clickhouse-order.h"
#include "decode/event-batches.h"
#include "decode/field-value.h"
#include "decode/json-printer.h"
#include "decode/who.h"

#define FIELDS_MAX 8U

/* Those of fields, as schema.sql has them */
static const struct column {
	const char *name, *type;
	uint8_t size; /* of a number; 0: it is none */
} columns[] = {
	{"prev_comm", NATIVE_WORD, 0}, {"prev_pid", NATIVE_I32, 4},
	{"prev_prio", NATIVE_I32, 4},  {"prev_state", NATIVE_I64, 8},
	{"next_comm", NATIVE_WORD, 0}, {"next_pid", NATIVE_I32, 4},
	{"next_prio", NATIVE_I32, 4},  {"target_comm", NATIVE_WORD, 0},
	{"target_pid", NATIVE_I32, 4}, {"target_prio", NATIVE_I32, 4},
	{"target_cpu", NATIVE_I32, 4}, {"irq", NATIVE_I32, 4},
	{"irq_name", NATIVE_WORD, 0},  {"vec", NATIVE_U32, 4},
	{"dev", NATIVE_U32, 4},	       {"sector", NATIVE_U64, 8},
	{"nr_sector", NATIVE_U32, 4},  {"rwbs", NATIVE_WORD, 0},
	{"nr", NATIVE_I64, 8},	       {"ret", NATIVE_I64, 8},
	{"args", NATIVE_NUMBERS, 0},
};

/*
 * Whose fields have columns, "FIELD=COLUMN" where that has another name: what the queries ask for,
 * and what there may be most of. An event with any other field has all of them in "fields".
 */
static const struct known {
	const char *system, *name, *fields;
} known[] = {
	{"sched", "sched_switch",
	 "prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio"},
	{"sched", "sched_waking", "comm=target_comm pid=target_pid prio=target_prio target_cpu"},
	{"sched", "sched_wakeup", "comm=target_comm pid=target_pid prio=target_prio target_cpu"},
	{"sched", "sched_wakeup_new",
	 "comm=target_comm pid=target_pid prio=target_prio target_cpu"},
	{"irq", "irq_handler_entry", "irq name=irq_name"},
	{"irq", "irq_handler_exit", "irq ret"},
	{"irq", "softirq_raise", "vec"},
	{"irq", "softirq_entry", "vec"},
	{"irq", "softirq_exit", "vec"},
	{"block", "block_rq_issue", "dev sector nr_sector rwbs"},
	{"block", "block_rq_complete", "dev sector nr_sector rwbs"},
	{"raw_syscalls", "sys_enter", "id=nr args"},
	{"raw_syscalls", "sys_exit", "id=nr ret"},
};

/* A kind of event */
struct plan {
	const char *system, *name;
	struct plan_field {
		const struct column *column;
		struct field_value value;
	} fields[FIELDS_MAX];
	size_t n;
	bool rest; /* not all of its fields have columns */
};

struct clickhouse_events {
	const struct decoder *decoder;
	struct clickhouse_labels labels;
	struct plan **plans; /* by format and 1; 0: of no format; NULL: not met yet */
	struct json_printer *json;
	struct native_words words;
	struct text text;

	/* of a batch */
	uint32_t *counts; /* of each kind; 0 between batches */
	uint32_t *kinds;  /* that are in it, in the order of their first events */
	uint32_t *kind_of;
	const struct decode_event **events; /* kind by kind */
	size_t room;
	struct text blocks; /* likewise, and where they end: */
	size_t *ends;
};

/* The events that a block is of */
struct rows {
	struct clickhouse_events *maker;
	const struct plan *plan;
	const struct decode_event *const *events;
	size_t n;
	struct native_block block;
};

/* --- kinds */

static const struct column *find_column(const char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (strlen(columns[i].name) == size && memcmp(columns[i].name, name, size) == 0)
			return &columns[i];
	return NULL;
}

static bool fits(const struct column *column, const struct field_value *value)
{
	if (column->size)
		return value->kind == VALUE_NUMBER && value->at.element <= column->size;
	return value->kind ==
	       (strcmp(column->type, NATIVE_WORD) == 0 ? VALUE_STRING : VALUE_NUMBERS);
}

/* Which column a field goes to; NULL: none */
static const struct column *column_of(const struct known *row, const char *field)
{
	const size_t size = strlen(field);

	for (const char *p = row->fields; *p; p += strspn(p, " ")) {
		const size_t word = strcspn(p, " "), name = strcspn(p, "= ");
		const size_t skip = name < word ? name + 1 : 0;

		if (name == size && memcmp(p, field, size) == 0)
			return find_column(p + skip, word - skip);
		p += word;
	}
	return NULL;
}

static const struct known *find_known(const struct plan *plan)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(plan->system, known[i].system) == 0 &&
		    strcmp(plan->name, known[i].name) == 0)
			return &known[i];
	return NULL;
}

static void plan_fields(const struct decoder *decoder, size_t format, struct plan *plan)
{
	const struct known *row = find_known(plan);
	const struct field *fields;
	size_t n = 0;

	fields = decoder_fields(decoder, format, &n);
	for (size_t i = 0; fields && i < n; i++) {
		const struct column *column = row ? column_of(row, fields[i].name) : NULL;
		struct plan_field *f = &plan->fields[plan->n];

		if (column && plan->n < FIELDS_MAX) {
			field_value_init(&f->value, plan->name, decoder_dat(decoder)->long_size,
					 &fields[i]);
			f->column = column;
		}
		if (column && plan->n < FIELDS_MAX && fits(column, &f->value))
			plan->n++;
		else
			plan->rest = true;
	}
}

static struct plan *get_plan(struct clickhouse_events *maker, uint32_t kind)
{
	const struct trace_dat *dat = decoder_dat(maker->decoder);
	struct plan *plan = maker->plans[kind];

	if (plan)
		return plan;
	plan = maker->plans[kind] = calloc(1, sizeof(*plan));
	if (!plan)
		return NULL;
	plan->system = plan->name = "";
	if (kind == 0)
		return plan;
	plan->system = dat->systems[dat->formats[kind - 1].system];
	plan->name = decoder_name(maker->decoder, kind - 1);
	plan_fields(maker->decoder, kind - 1, plan);
	return plan;
}

/* --- columns that all events have */

static inline void put_numbers(struct rows *rows, const char *name, const char *type, size_t size,
			       uint64_t (*get)(const struct decode_event *event))
{
	struct native_numbers to;

	native_column(&rows->block, name, type);
	to = native_numbers_begin(rows->block.out, rows->n, size);
	for (size_t i = 0; i < rows->n; i++)
		native_numbers_next(&to, get(rows->events[i]));
}

static uint64_t get_ts(const struct decode_event *event)
{
	return event->ts;
}

static uint64_t get_cpu(const struct decode_event *event)
{
	return event->cpu;
}

static uint64_t get_pid(const struct decode_event *event)
{
	return (uint64_t)event->pid;
}

static uint64_t get_tgid(const struct decode_event *event)
{
	return event->who ? (uint64_t)event->who->tgid : 0;
}

static uint64_t get_missed(const struct decode_event *event)
{
	return (uint64_t)event->missed;
}

/* Words that are the same as long as what they are of is */
static void put_words(struct rows *rows, const char *name,
		      const void *(*of)(const struct decode_event *event),
		      const char *(*word)(const void *of))
{
	struct native_words *words = &rows->maker->words;
	const void *last = NULL;

	native_words_begin(words, rows->n);
	for (size_t i = 0; i < rows->n; i++) {
		const void *is = of(rows->events[i]);
		const char *text = is && is != last ? word(is) : NULL;

		if (is == last)
			native_words_again(words);
		else
			native_words_add(words, text ? text : "", text ? strlen(text) : 0);
		last = is;
	}
	native_words_put(words, &rows->block, name);
}

static const void *get_task(const struct decode_event *event)
{
	return event->task;
}

static const char *get_comm(const void *task)
{
	const struct task_name *name = task;

	return name->known ? name->text : NULL;
}

static const void *get_place(const struct decode_event *event)
{
	return event->who ? event->who->place : NULL;
}

static const char *get_unit(const void *place)
{
	return ((const struct task_place *)place)->names.unit;
}

static const char *get_container(const void *place)
{
	return ((const struct task_place *)place)->names.container;
}

/* A buffer of a file of several sessions has its session's name */
static void put_session(struct rows *rows)
{
	const struct clickhouse_events *maker = rows->maker;
	const struct trace_dat *dat = decoder_dat(maker->decoder);
	struct native_words *words = &rows->maker->words;

	if (dat->n_buffers <= 1) {
		native_word(&rows->block, "session", maker->labels.session);
		return;
	}
	native_words_begin(words, rows->n);
	for (size_t i = 0; i < rows->n; i++) {
		const char *name = dat->buffers[rows->events[i]->buffer].name;

		if (!*name)
			name = maker->labels.session;
		native_words_add(words, name, strlen(name));
	}
	native_words_put(words, &rows->block, "session");
}

static bool any_missed(const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->events[i]->missed)
			return true;
	return false;
}

static void put_common(struct rows *rows)
{
	const struct clickhouse_labels *labels = &rows->maker->labels;
	struct native_block *block = &rows->block;

	native_word(block, "host", labels->host);
	native_word(block, "boot_id", labels->boot_id);
	put_session(rows);
	native_word(block, "file", labels->file);
	put_numbers(rows, "ts", NATIVE_TIME, 8, get_ts);
	put_numbers(rows, "cpu", NATIVE_U16, 2, get_cpu);
	put_numbers(rows, "pid", NATIVE_I32, 4, get_pid);
	put_numbers(rows, "tgid", NATIVE_I32, 4, get_tgid);
	put_words(rows, "comm", get_task, get_comm);
	put_words(rows, "unit", get_place, get_unit);
	put_words(rows, "container", get_place, get_container);
	native_word(block, "system", rows->plan->system);
	native_word(block, "name", rows->plan->name);
	if (any_missed(rows))
		put_numbers(rows, "lost_before", NATIVE_I64, 8, get_missed);
}

/* --- columns of fields */

static void put_strings(struct rows *rows, const struct plan_field *f)
{
	struct native_words *words = &rows->maker->words;

	native_words_begin(words, rows->n);
	for (size_t i = 0; i < rows->n; i++) {
		uint32_t size;
		const uint8_t *bytes = field_value_bytes(&f->value, rows->events[i], &size);

		native_words_add(words, bytes, strnlen((const char *)bytes, size));
	}
	native_words_put(words, &rows->block, f->column->name);
}

static void put_arrays(struct rows *rows, const struct plan_field *f)
{
	struct text *numbers = &rows->maker->text;
	uint64_t total = 0;

	native_column(&rows->block, f->column->name, f->column->type);
	numbers->size = 0;
	for (size_t i = 0; i < rows->n; i++) {
		uint32_t at = 0;
		uint64_t number;

		for (; field_value_next(&f->value, rows->events[i], &at, &number); total++)
			native_number(numbers, number, 8);
		native_number(rows->block.out, total, 8);
	}
	text_bytes(rows->block.out, numbers->bytes, numbers->size);
}

static void put_field(struct rows *rows, const struct plan_field *f)
{
	const struct column *column = f->column;
	struct native_numbers to;

	if (column->size) {
		native_column(&rows->block, column->name, column->type);
		to = native_numbers_begin(rows->block.out, rows->n, column->size);
		for (size_t i = 0; i < rows->n; i++)
			native_numbers_next(&to,
					    (uint64_t)field_signed(&f->value.at, rows->events[i]));
	} else if (f->value.kind == VALUE_STRING) {
		put_strings(rows, f);
	} else {
		put_arrays(rows, f);
	}
}

static int put_rest(struct rows *rows)
{
	struct text *json = &rows->maker->text;
	int r = 0;

	native_column(&rows->block, "fields", NATIVE_STRING);
	for (size_t i = 0; i < rows->n && r >= 0; i++) {
		json->size = 0;
		r = json_printer_fields(rows->maker->json, rows->events[i], json);
		native_string(rows->block.out, json->bytes, json->size);
	}
	return r;
}

/* --- batches */

static int put_block(struct rows *rows, struct text *out)
{
	int r = 0;

	native_begin(&rows->block, out, rows->n);
	put_common(rows);
	for (size_t i = 0; i < rows->plan->n; i++)
		put_field(rows, &rows->plan->fields[i]);
	if (rows->plan->rest)
		r = put_rest(rows);
	return r < 0 || out->no_memory || rows->maker->text.no_memory ? -ENOMEM : 0;
}

static int make_room(struct clickhouse_events *maker, size_t n)
{
	if (n <= maker->room)
		return 0;
	free(maker->kind_of);
	free(maker->events);
	maker->kind_of = malloc(n * sizeof(*maker->kind_of));
	maker->events = malloc(n * sizeof(*maker->events));
	maker->room = maker->kind_of && maker->events ? n : 0;
	return maker->room ? 0 : -ENOMEM;
}

/* Which kinds there are, and how many of each; Return: of kinds */
static size_t count_kinds(struct clickhouse_events *maker, const struct decode_event *list,
			  size_t n)
{
	size_t n_kinds = 0;

	for (size_t i = 0; i < n; i++) {
		const uint32_t kind = (uint32_t)(decoder_find(maker->decoder, list[i].id) + 1);

		maker->kind_of[i] = kind;
		if (maker->counts[kind]++ == 0)
			maker->kinds[n_kinds++] = kind;
	}
	return n_kinds;
}

/* counts[] become where each kind's events end */
static void sort_events(struct clickhouse_events *maker, size_t n_kinds,
			const struct decode_event *list, size_t n)
{
	uint32_t at = 0;

	for (size_t i = 0; i < n_kinds; i++) {
		const uint32_t count = maker->counts[maker->kinds[i]];

		maker->counts[maker->kinds[i]] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		maker->events[maker->counts[maker->kind_of[i]]++] = &list[i];
}

static int put_blocks(struct clickhouse_events *maker, size_t n_kinds)
{
	uint32_t begin = 0;
	int r = 0;

	maker->blocks.size = 0;
	for (size_t i = 0; i < n_kinds; i++) {
		const uint32_t end = maker->counts[maker->kinds[i]];
		struct rows rows = {
			.maker = maker,
			.plan = get_plan(maker, maker->kinds[i]),
			.events = maker->events + begin,
			.n = end - begin,
		};

		if (r >= 0)
			r = rows.plan ? put_block(&rows, &maker->blocks) : -ENOMEM;
		maker->ends[i] = maker->blocks.size;
		maker->counts[maker->kinds[i]] = end - begin;
		begin = end;
	}
	return r;
}

int clickhouse_events_put(struct clickhouse_events *maker, const struct decode_event *list,
			  size_t n, const struct event_turn *turn, struct clickhouse_order *order)
{
	size_t n_kinds = 0, begin = 0;
	int r = make_room(maker, n);

	if (r >= 0) {
		n_kinds = count_kinds(maker, list, n);
		sort_events(maker, n_kinds, list, n);
		r = put_blocks(maker, n_kinds);
	}
	event_turn_wait(turn);
	for (size_t i = 0; i < n_kinds; i++) {
		const uint32_t kind = maker->kinds[i];

		if (r >= 0)
			r = clickhouse_order_add(order, kind, maker->blocks.bytes + begin,
						 maker->ends[i] - begin, maker->counts[kind]);
		maker->counts[kind] = 0;
		begin = maker->ends[i];
	}
	return r < 0 ? r : clickhouse_order_flush(order, false);
}

/* --- all */

int clickhouse_events_new(const struct decoder *decoder, const struct clickhouse_labels *labels,
			  struct clickhouse_events **ret)
{
	const size_t kinds = decoder_dat(decoder)->n_formats + 1;
	struct clickhouse_events *maker = calloc(1, sizeof(*maker));
	int r;

	if (!maker)
		return -ENOMEM;
	maker->decoder = decoder;
	maker->labels = *labels;
	maker->plans = calloc(kinds, sizeof(*maker->plans));
	maker->counts = calloc(kinds, sizeof(*maker->counts));
	maker->kinds = calloc(kinds, sizeof(*maker->kinds));
	maker->ends = calloc(kinds, sizeof(*maker->ends));
	r = maker->plans && maker->counts && maker->kinds && maker->ends
		    ? json_printer_new_fields(decoder, &maker->json)
		    : -ENOMEM;
	if (r < 0)
		clickhouse_events_free(maker);
	else
		*ret = maker;
	return r;
}

struct clickhouse_events *clickhouse_events_free(struct clickhouse_events *maker)
{
	if (!maker)
		return NULL;
	for (size_t i = 0; maker->plans && i <= decoder_dat(maker->decoder)->n_formats; i++)
		free(maker->plans[i]);
	free(maker->plans);
	free(maker->counts);
	free(maker->kinds);
	free(maker->ends);
	text_done(&maker->blocks);
	free(maker->kind_of);
	free(maker->events);
	json_printer_free(maker->json);
	native_words_done(&maker->words);
	text_done(&maker->text);
	free(maker);
	return NULL;
}
