/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/timeline.h"

#define ITEM_BYTES  7U	/* about so many does one take */
#define TASK_BYTES  40U /* and what else is to be said of a task */
#define GRAIN_FIRST 1000U
#define GRAIN_PARTS 64U /* the coarsest picture has so many parts */
#define FULL	    255U

struct item {
	uint64_t from, to;
	uint64_t busy;	/* of it */
	uint64_t count; /* 1: as it was; of a loss: events */
	uint32_t row;
	uint32_t waker; /* as in the picture, plus 1; 0: unknown */
	uint32_t cpu;
	uint8_t kind; /* enum timeline_kind */
	bool exact;   /* stays as it is */
};

struct timeline {
	struct timeline_config config;
	struct timeline_window *windows; /* in which items are exact */
	size_t n_windows;
	struct spans *spans;
	struct item *items;
	size_t n_items, room; /* n_items never reaches room */
	uint64_t grain, left_out;
	char (*before)[16];		  /* first names, by the index of the task */
	const struct span_label **labels; /* by their index; NULL: not drawn */
	uint64_t rate[TIMELINE_BINS];
	struct measure measures[_SPAN_MAX];
};

/* --- when there are too many */

static int by_row(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static uint64_t length_of(const struct item *item)
{
	return item->to - item->from;
}

/* Requests overlap: only those of which nothing would be seen are one */
static bool is_near(const struct item *item, const struct item *next, uint64_t grain)
{
	if (item->kind != next->kind || item->row != next->row || item->cpu != next->cpu ||
	    item->exact || next->exact || next->from >= item->to + grain)
		return false;
	return item->kind != TIMELINE_REQUEST ||
	       (length_of(item) < grain && length_of(next) < grain);
}

static void merge(struct timeline *t)
{
	size_t n = 0;

	if (t->n_items == 0)
		return;
	qsort(t->items, t->n_items, sizeof(*t->items), by_row);
	for (size_t i = 1; i < t->n_items; i++) {
		struct item *last = &t->items[n];
		const struct item *next = &t->items[i];

		if (!is_near(last, next, t->grain)) {
			t->items[++n] = *next;
			continue;
		}
		last->to = MAX(last->to, next->to);
		last->busy += next->busy;
		last->count += next->count;
		last->waker = 0;
	}
	t->n_items = n + 1;
}

/* Runs of which nothing would be seen are nobody's in particular; such waits are left out */
static void drop_short(struct timeline *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_items; i++) {
		struct item *item = &t->items[i];
		const bool is_short = !item->exact && length_of(item) < t->grain;

		if (is_short && item->kind == TIMELINE_RUN)
			item->row = 0;
		if (is_short && (item->kind == TIMELINE_WAIT || item->kind == TIMELINE_BLOCKED))
			t->left_out += item->count;
		else
			t->items[n++] = *item;
	}
	t->n_items = n;
}

static void merge_all(struct timeline *t)
{
	if (t->grain == 0)
		return;
	merge(t);
	drop_short(t);
	merge(t);
}

static bool is_exact(const struct timeline *t, const struct item *item)
{
	for (size_t i = 0; i < t->n_windows; i++)
		if (item->from <= t->windows[i].to && item->to >= t->windows[i].from)
			return true;
	return false;
}

/* The longest one takes most room */
static void drop_window(struct timeline *t)
{
	size_t longest = 0;

	for (size_t i = 1; i < t->n_windows; i++)
		if (t->windows[i].to - t->windows[i].from >
		    t->windows[longest].to - t->windows[longest].from)
			longest = i;
	t->windows[longest] = t->windows[--t->n_windows];
	for (size_t i = 0; i < t->n_items; i++)
		t->items[i].exact = t->items[i].exact && is_exact(t, &t->items[i]);
}

static size_t count_exact(const struct timeline *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_items; i++)
		n += t->items[i].exact;
	return n;
}

/* Make @most of them, or as few as there can be */
static void coarsen(struct timeline *t, size_t most)
{
	const uint64_t coarsest = (t->config.to - t->config.from) / GRAIN_PARTS;

	/* what has come since the last time first */
	merge_all(t);
	while (t->n_items > most) {
		/* half of the room is for what is beside the windows */
		if (t->n_windows > 0 && (t->grain > coarsest || count_exact(t) > most / 2))
			drop_window(t);
		else if (t->grain <= coarsest)
			t->grain = MAX(2 * t->grain, (uint64_t)GRAIN_FIRST);
		else
			return;
		merge_all(t);
	}
}

/* --- what comes */

static uint32_t waker_of(const struct span *span)
{
	switch (span->waker) {
	case SPAN_WAKER_IDLE:
		return 1;
	case SPAN_WAKER_IRQ:
		return 2;
	case SPAN_WAKER_SOFTIRQ:
		return 3;
	case SPAN_WAKER_TASK:
		return span->waker_task ? span->waker_task->index + 4 : 0;
	case SPAN_WAKER_UNKNOWN:
		break;
	}
	return 0;
}

static void add(struct timeline *t, const struct span *span, enum timeline_kind kind, uint32_t row)
{
	struct item *item;

	if (t->n_items + 1 == t->room)
		coarsen(t, t->room / 2);
	if (t->n_items + 1 == t->room)
		return; /* as many CPUs and labels as that: nobody has them */
	item = &t->items[t->n_items++];
	*item = (struct item){
		.from = MAX(span->from, t->config.from),
		.to = span->to,
		.count = kind == TIMELINE_LOSS ? span->bytes : 1,
		.row = row,
		.waker = kind == TIMELINE_WAIT || kind == TIMELINE_BLOCKED ? waker_of(span) : 0,
		.cpu = span->cpu,
		.kind = (uint8_t)kind,
	};
	item->to = MAX(item->to, item->from);
	item->busy = length_of(item);
	item->exact = is_exact(t, item);
}

static void on_task(struct timeline *t, const struct span *span, enum timeline_kind kind)
{
	char *before;

	if (!span->task)
		return;
	before = t->before[span->task->index];
	if (before[0] == '\0')
		memcpy(before, span->task->comm, sizeof(span->task->comm));
	add(t, span, kind, span->task->index + 1);
}

static void on_label(struct timeline *t, const struct span *span, enum timeline_kind kind)
{
	if (!span->label)
		return;
	t->labels[span->label->index] = span->label;
	add(t, span, kind, span->label->index);
}

static int on_span(void *userdata, const struct span *span)
{
	struct timeline *t = userdata;

	if (!span->open && !(span->kind == SPAN_RUN && !span->task) &&
	    measure_add(&t->measures[span->kind], span->from, span->to) < 0)
		return -ENOMEM;
	switch (span->kind) {
	case SPAN_RUN:
		on_task(t, span, TIMELINE_RUN);
		break;
	case SPAN_RUNQUEUE:
		on_task(t, span, TIMELINE_WAIT);
		break;
	case SPAN_BLOCKED:
		on_task(t, span, TIMELINE_BLOCKED);
		break;
	case SPAN_IRQ:
		on_label(t, span, TIMELINE_IRQ);
		break;
	case SPAN_SOFTIRQ:
		on_label(t, span, TIMELINE_SOFTIRQ);
		break;
	case SPAN_BLOCK:
		on_label(t, span, TIMELINE_REQUEST);
		break;
	case SPAN_LOSS:
		/* what was overwritten before the recording begins is none */
		if (span->to > span->from)
			add(t, span, TIMELINE_LOSS, span->cpu);
		break;
	case SPAN_ASLEEP:
	case SPAN_SYSCALL:
	case SPAN_OOM:
	case SPAN_PAIR:
	case _SPAN_MAX:
		break;
	}
	return 0;
}

static size_t bin_of(const struct timeline *t, uint64_t ts)
{
	const unsigned __int128 whole = (unsigned __int128)(t->config.to - t->config.from) + 1;
	const uint64_t at = MIN(MAX(ts, t->config.from), t->config.to) - t->config.from;

	return (size_t)((unsigned __int128)at * TIMELINE_BINS / whole);
}

void timeline_count(void *timeline, const struct event_run *run)
{
	struct timeline *t = timeline;
	const size_t first = bin_of(t, run->events[0].ts);

	if (first == bin_of(t, run->events[run->n - 1].ts)) {
		t->rate[first] += run->n;
		return;
	}
	for (size_t i = 0; i < run->n; i++)
		t->rate[bin_of(t, run->events[i].ts)]++;
}

int timeline_new(const struct timeline_config *config, struct timeline **ret)
{
	_cleanup_(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
	const struct spans_config spans = {
		.kinds = SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_RUNQUEUE) | SPAN_BIT(SPAN_BLOCKED) |
			 SPAN_BIT(SPAN_IRQ) | SPAN_BIT(SPAN_SOFTIRQ) | SPAN_BIT(SPAN_BLOCK) |
			 SPAN_BIT(SPAN_SYSCALL) | SPAN_BIT(SPAN_LOSS),
		.on_span = on_span,
		.userdata = t,
	};

	if (!t)
		return -ENOMEM;
	t->config = *config;
	t->room = 2 * config->room / ITEM_BYTES + 64;
	t->items = calloc(t->room, sizeof(*t->items));
	t->windows = calloc(config->n_windows + 1, sizeof(*t->windows));
	/* only those pages of them are taken that are in use */
	t->before = calloc(SPANS_TASKS_MAX, sizeof(*t->before));
	t->labels = calloc(SPANS_LABELS_MAX, sizeof(struct span_label *));
	if (!t->items || !t->windows || !t->before || !t->labels ||
	    spans_new(&spans, &t->spans) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_windows; i++)
		t->windows[t->n_windows++] = config->windows[i];
	*ret = TAKE_PTR(t);
	return 0;
}

struct timeline *timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return NULL;
	for (unsigned kind = 0; kind < _SPAN_MAX; kind++)
		measure_done(&timeline->measures[kind]);
	spans_free(timeline->spans);
	free(timeline->items);
	free(timeline->windows);
	free(timeline->before);
	free(timeline->labels);
	free(timeline);
	return NULL;
}

struct spans *timeline_spans(struct timeline *timeline)
{
	return timeline->spans;
}

const uint64_t *timeline_rate(const struct timeline *timeline)
{
	return timeline->rate;
}

const struct measure *timeline_measure(const struct timeline *timeline, enum span_kind kind)
{
	return &timeline->measures[kind];
}

/* --- the picture */

struct bytes {
	uint8_t *p;
	size_t n, room;
	bool no_memory;
};

static void put(struct bytes *bytes, uint64_t number)
{
	if (bytes->room - bytes->n < 10) {
		size_t room = 2 * bytes->room + 4096;
		uint8_t *more = realloc(bytes->p, room);

		if (!more) {
			bytes->no_memory = true;
			return;
		}
		bytes->p = more;
		bytes->room = room;
	}
	for (; number > 0x7f; number >>= 7)
		bytes->p[bytes->n++] = (uint8_t)(number | 0x80);
	bytes->p[bytes->n++] = (uint8_t)number;
}

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static bool is_of_tasks(const struct item *item)
{
	return item->kind <= TIMELINE_BLOCKED;
}

/* Where a task, or a label, is in the picture: a new one at its end */
static uint32_t place_of(uint32_t *places, uint32_t index, size_t *n)
{
	if (places[index] == 0)
		places[index] = (uint32_t)++ * n;
	return places[index];
}

struct places {
	uint32_t *tasks, *labels; /* by index: place plus 1 */
	size_t n_tasks, n_labels;
};

static void put_item(const struct item *item, const struct item *before, uint64_t from,
		     struct places *places, struct bytes *bytes)
{
	const bool loss = item->kind == TIMELINE_LOSS;
	const bool merged = item->count > 1 || loss;
	uint32_t waker = item->waker;

	if (waker > 3)
		waker = place_of(places->tasks, waker - 4, &places->n_tasks) + 3;
	put(bytes, item->from - (before ? before->from : from));
	put(bytes, length_of(item));
	put(bytes, (uint64_t)item->cpu << 2 | (merged ? TIMELINE_MERGED : 0U) |
			   (waker ? TIMELINE_WOKEN : 0U));
	if (merged) {
		put(bytes, item->count);
		put(bytes, length_of(item) > 0 && !loss
				   ? (uint64_t)(MIN(item->busy, length_of(item)) *
						(unsigned __int128)FULL / length_of(item))
				   : FULL);
	}
	if (waker)
		put(bytes, waker - 1);
}

static void put_items(struct timeline *t, struct places *places, struct bytes *bytes,
		      size_t *ret_groups)
{
	size_t end;

	*ret_groups = 0;
	for (size_t i = 0; i < t->n_items; i = end) {
		const struct item *first = &t->items[i];

		for (end = i; end < t->n_items && t->items[end].kind == first->kind &&
			      t->items[end].row == first->row;)
			end++;
		put(bytes, first->kind);
		if (is_of_tasks(first))
			put(bytes, first->row > 0 ? place_of(places->tasks, first->row - 1,
							     &places->n_tasks)
						  : 0);
		else if (first->kind == TIMELINE_LOSS)
			put(bytes, first->row);
		else
			put(bytes, place_of(places->labels, first->row, &places->n_labels) - 1);
		put(bytes, end - i);
		for (size_t k = i; k < end; k++)
			put_item(&t->items[k], k > i ? &t->items[k - 1] : NULL, t->config.from,
				 places, bytes);
		++*ret_groups;
	}
}

static int list_places(struct timeline *t, const struct places *places,
		       struct timeline_picture *picture)
{
	picture->tasks = calloc(places->n_tasks + 1, sizeof(*picture->tasks));
	picture->labels = calloc(places->n_labels + 1, sizeof(struct span_label *));
	if (!picture->tasks || !picture->labels)
		return -ENOMEM;
	picture->n_tasks = places->n_tasks;
	picture->n_labels = places->n_labels;
	for (uint32_t i = 0; i < spans_tasks(t->spans); i++) {
		struct timeline_task *task;

		if (places->tasks[i] == 0)
			continue;
		task = &picture->tasks[places->tasks[i] - 1];
		task->task = spans_task(t->spans, i);
		if (strcmp(t->before[i], task->task->comm) != 0)
			memcpy(task->before, t->before[i], sizeof(task->before));
	}
	for (size_t i = 0; i < SPANS_LABELS_MAX; i++)
		if (places->labels[i] > 0)
			picture->labels[places->labels[i] - 1] = t->labels[i];
	return 0;
}

/* Return: 1: it takes more room than there is; else as timeline_draw() */
static int draw(struct timeline *t, struct timeline_picture *picture)
{
	struct places places = {
		.tasks = calloc(spans_tasks(t->spans) + (size_t)1, sizeof(*places.tasks)),
		.labels = calloc(SPANS_LABELS_MAX, sizeof(*places.labels)),
	};
	struct bytes bytes = {};
	int r = -ENOMEM;

	if (places.tasks && places.labels) {
		if (t->n_items > 0)
			qsort(t->items, t->n_items, sizeof(*t->items), by_time);
		put_items(t, &places, &bytes, &picture->n_groups);
		r = bytes.no_memory ? -ENOMEM : 0;
	}
	if (r == 0 && bytes.n + places.n_tasks * TASK_BYTES > t->config.room)
		r = 1;
	if (r == 0)
		r = list_places(t, &places, picture);
	if (r == 0) {
		picture->bytes = TAKE_PTR(bytes.p);
		picture->size = bytes.n;
	}
	free(bytes.p);
	free(places.tasks);
	free(places.labels);
	return r;
}

int timeline_draw(struct timeline *timeline, struct timeline_picture *ret)
{
	struct timeline *t = timeline;
	struct timeline_picture picture = {};
	int r = spans_end(t->spans);

	merge_all(t);
	while (r >= 0 && (r = draw(t, &picture)) > 0) {
		size_t before = t->n_items;

		coarsen(t, before / 4 * 3);
		if (t->n_items == before)
			t->config.room = SIZE_MAX; /* nothing is left to be merged */
	}
	if (r < 0) {
		timeline_picture_done(&picture);
		return r;
	}
	picture.n_items = t->n_items;
	picture.grain = t->grain;
	picture.left_out = t->left_out;
	picture.n_exact = t->n_windows;
	*ret = picture;
	return 0;
}

void timeline_picture_done(struct timeline_picture *picture)
{
	free(picture->bytes);
	free(picture->tasks);
	free(picture->labels);
	*picture = (struct timeline_picture){};
}
