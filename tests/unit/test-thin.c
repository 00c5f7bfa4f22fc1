/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever tasks do on several CPUs: the events that are kept have the same long waits as all
 * events */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/latency.h"
#include "config/latency.h"
#include "tests/unit/analysis-fixture.h"

#define LIMIT	  (NSEC_PER_SEC / 1000)
#define CPUS	  3U
#define TASKS	  12U
#define EVENTS	  40000U
#define TOGETHER  64U /* events that are read at a time */
#define TICKS	  (2 * LIMIT)
#define HITS_MAX  4096U
#define PREEMPTED 0x100U

enum state { ASLEEP, BLOCKED, WAITING, RUNNING };

struct happened {
	uint64_t ts;
	uint32_t cpu;
	bool left; /* by thin_events() */
	struct craft bytes;
};

/* The long waits in all events, or in those that are kept */
struct look {
	struct latency_config conditions[2];
	struct sources_facts facts;
	struct latency *latency;
	struct spans_file *file;
	struct hit {
		size_t condition;
		int32_t pid, waker_pid;
		uint32_t cpu;
		uint64_t from, to;
		bool open, preempted;
		enum span_waker waker;
	} hits[HITS_MAX];
	size_t n;
};

struct world {
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	unsigned seed;
	uint64_t now;
	enum state states[TASKS];
	uint64_t stays[TASKS];	   /* so long it will wait, or be blocked, at least */
	unsigned running[CPUS];	   /* which task; TASKS: none */
	struct happened *happened; /* [EVENTS] */
	size_t n;
};

static unsigned some(struct world *w, unsigned n)
{
	return (unsigned)rand_r(&w->seed) % n;
}

/* A third of them share a place in the table */
static int pid_of(unsigned task)
{
	return task == TASKS ? 0 : (int)(10 + (task % 4 == 1 ? THIN_TASKS : 1) * task);
}

static struct craft *happens(struct world *w, uint32_t cpu)
{
	struct happened *h = &w->happened[w->n++];

	w->now += 200 + some(w, 3000);
	*h = (struct happened){.ts = w->now, .cpu = cpu, .bytes = craft_kinds[0]};
	return &h->bytes;
}

/* Most waits are short, some take about as long as the limit, or longer */
static void stay(struct world *w, unsigned task)
{
	w->stays[task] = w->now;
	if (some(w, 12) == 0)
		w->stays[task] += LIMIT / 2 + some(w, 2 * LIMIT);
}

static void wake(struct world *w, uint32_t cpu)
{
	const unsigned task = some(w, TASKS);
	struct craft *c;

	/* one that waits or runs already may be woken again, for which it need not have slept */
	if (w->states[task] < WAITING ? w->now < w->stays[task] : some(w, 4) > 0)
		return;
	c = happens(w, cpu);
	fixture_wake(c, some(w, 16) ? ID_WAKING : ID_WAKEUP, pid_of(w->running[cpu]), pid_of(task),
		     (int)some(w, CPUS));
	fixture_flags(c, 0, some(w, 4) ? 0 : 8);
	if (w->states[task] >= WAITING)
		return;
	w->states[task] = WAITING;
	stay(w, task);
}

static void reschedule(struct world *w, uint32_t cpu)
{
	static const uint64_t bits[] = {1, 1, 1, 2, 2, 0, PREEMPTED, PREEMPTED};
	const unsigned prev = w->running[cpu], kind = some(w, ARRAY_SIZE(bits));
	unsigned next = some(w, TASKS);

	if (w->states[next] != WAITING || w->now < w->stays[next])
		next = TASKS;
	if (next == prev)
		return;
	fixture_switch(happens(w, cpu), pid_of(prev), prev == TASKS ? 0 : bits[kind], pid_of(next));
	if (prev < TASKS) {
		w->states[prev] = bits[kind] == 1 ? ASLEEP : bits[kind] == 2 ? BLOCKED : WAITING;
		stay(w, prev);
	}
	if (next < TASKS)
		w->states[next] = RUNNING;
	w->running[cpu] = next;
}

/* Events that are always kept */
static void other(struct world *w, uint32_t cpu)
{
	const unsigned task = some(w, TASKS);
	const uint32_t numbers[] = {(uint32_t)pid_of(task), 1, some(w, CPUS)};

	fixture_numbers(happens(w, cpu), some(w, 2) ? ID_OTHER : ID_MIGRATE,
			pid_of(w->running[cpu]), numbers, 3);
}

static void live(struct world *w)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		w->running[cpu] = TASKS;
	w->now = NSEC_PER_SEC;
	while (w->n < EVENTS) {
		const unsigned cpu = some(w, CPUS), what = some(w, 32);

		w->now += 50;
		if (what == 0)
			other(w, cpu);
		else if (what < 16)
			wake(w, cpu);
		else
			reschedule(w, cpu);
		if (some(w, 5000) == 0) /* and for a while nothing happens */
			w->now += some(w, 3 * LIMIT);
	}
}

static int on_hit(void *userdata, size_t condition, const struct span *span)
{
	struct look *look = userdata;

	assert_true(look->n < HITS_MAX);
	look->hits[look->n++] = (struct hit){
		.condition = condition,
		.pid = span->task->pid,
		.waker_pid = span->waker_task ? span->waker_task->pid : -1,
		.cpu = span->cpu,
		.from = span->from,
		.to = span->to,
		.open = span->open,
		.preempted = span->preempted,
		.waker = span->waker,
	};
	return 0;
}

static void look_begin(struct look *look, const struct world *w)
{
	struct latency_setup setup = {.n = 2, .on_hit = on_hit, .userdata = look};
	struct fault why;

	*look = (struct look){.facts.machine = MACHINE_X86_64};
	assert_int_equal(latency_parse("runqueue 1ms", true, &look->conditions[0], &why), 0);
	assert_int_equal(latency_parse("blocked 1ms", true, &look->conditions[1], &why), 0);
	setup.conditions = look->conditions;
	setup.facts = &look->facts;
	assert_int_equal(latency_new(&setup, &look->latency), 0);
	assert_int_equal(
		spans_file_new(latency_spans(look->latency), w->decoder, &look->file, &why), 0);
}

static void look_done(struct look *look)
{
	spans_file_free(look->file);
	latency_free(look->latency);
	for (size_t i = 0; i < 2; i++)
		latency_done(&look->conditions[i]);
}

/* Every now and then asks for open waits too, wherever that falls among events read together */
static void look_at(struct look *look, const struct world *w, bool all)
{
	uint64_t tick = w->happened[0].ts;

	for (size_t i = 0; i < w->n; i++) {
		const struct happened *h = &w->happened[i];
		const struct subbuf_event event = {
			.ts = h->ts, .data = h->bytes.bytes, .size = (uint32_t)h->bytes.size};
		const struct event_run run = {.events = &event, .n = 1, .cpu = h->cpu};

		for (; tick < h->ts; tick += TICKS)
			assert_int_equal(latency_tick(look->latency, tick), 0);
		if (all || h->left)
			assert_int_equal(spans_run(latency_spans(look->latency), look->file, &run),
					 0);
	}
}

/* As a CPU's events are read: up to 64 together, fewer at the end of a sub-buffer */
static size_t thin_out(struct world *w, struct thin *thin, uint32_t cpu)
{
	struct subbuf_event events[TOGETHER];
	size_t left = 0, i = 0;

	while (i < w->n) {
		const unsigned most = 1 + (some(w, 4) ? TOGETHER - 1 : some(w, TOGETHER));
		unsigned n = 0;

		for (; i < w->n && n < most; i++) {
			const struct happened *h = &w->happened[i];

			if (h->cpu == cpu) /* by its offset it is found again */
				events[n++] = (struct subbuf_event){
					.ts = h->ts,
					.offset = (uint32_t)i,
					.data = h->bytes.bytes,
					.size = (uint32_t)h->bytes.size,
				};
		}
		n = thin_events(thin, events, n);
		for (unsigned k = 0; k < n; k++)
			w->happened[events[k].offset].left = true;
		left += n;
	}
	return left;
}

static void world_new(struct world *w, unsigned seed)
{
	const struct craft_file file = {.formats = fixture_formats, .n_formats = FIXTURE_FORMATS};
	struct craft c = craft_kinds[0];

	*w = (struct world){.seed = seed, .happened = calloc(EVENTS, sizeof(*w->happened))};
	assert_non_null(w->happened);
	craft_file(&c, &file);
	craft_open(&c, &w->fd, &w->dat, &w->decoder);
	w->dat->n_cpus = CPUS; /* whose regions nobody reads here */
}

static void world_free(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		craft_done(&w->happened[i].bytes);
	free(w->happened);
	w->dat->n_cpus = 1;
	craft_close(w->fd, w->dat, w->decoder);
}

static void assert_same(const struct look *all, const struct look *left)
{
	for (size_t i = 0; i < MIN(all->n, left->n); i++) {
		const struct hit *a = &all->hits[i], *b = &left->hits[i];

		assert_int_equal(a->condition, b->condition);
		assert_int_equal(a->pid, b->pid);
		assert_int_equal(a->from, b->from);
		assert_int_equal(a->to, b->to);
		assert_int_equal(a->open, b->open);
		assert_int_equal(a->cpu, b->cpu);
		assert_int_equal(a->preempted, b->preempted);
		assert_int_equal(a->waker, b->waker);
		assert_int_equal(a->waker_pid, b->waker_pid);
	}
	assert_int_equal(all->n, left->n);
}

static void test_long_waits(void **state)
{
	static struct look all, left;
	size_t hits = 0, kept = 0;

	for (unsigned seed = 1; seed <= 20; seed++) {
		struct thin thin;
		struct world w;

		world_new(&w, seed);
		live(&w);
		look_begin(&all, &w);
		look_begin(&left, &w);
		latency_thin(left.latency, left.file, &thin);
		assert_int_equal(thin.nsec, LIMIT);
		for (uint32_t cpu = 0; cpu < CPUS; cpu++)
			kept += thin_out(&w, &thin, cpu);
		look_at(&all, &w, true);
		look_at(&left, &w, false);
		assert_same(&all, &left);
		hits += all.n;
		look_done(&all);
		look_done(&left);
		world_free(&w);
	}
	print_message("%zu long waits; %zu of %u events are left\n", hits, kept, 20 * EVENTS);
	assert_true(hits > 5000);
	assert_true(kept < 20 * EVENTS * 4 / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
