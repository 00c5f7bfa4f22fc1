/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is drawn is what happened; and of what is merged for lack of room nothing gets lost but
 * waits that are said to be, nor is anything merged in the windows that matter */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/timeline.h"
#include "tests/unit/analysis-fixture.h"

#define S	1U     /* states: asleep, */
#define D	2U     /* blocked, */
#define PREEMPT 0x100U /* and "R+" */
#define ROOM	(1U << 20)

struct fixture {
	struct craft kind;
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	struct timeline *timeline;
	struct spans_file *file;
	struct timeline_picture picture;
	int64_t missed;
};

static void setup(struct fixture *f, const struct timeline_config *config)
{
	const struct craft_file file = {.formats = fixture_formats, .n_formats = FIXTURE_FORMATS};
	struct craft c = craft_kinds[0];

	*f = (struct fixture){.kind = craft_kinds[0]};
	craft_file(&c, &file);
	craft_open(&c, &f->fd, &f->dat, &f->decoder);
	f->dat->n_cpus = 2; /* whose regions nobody reads here */
	assert_int_equal(timeline_new(config, &f->timeline), 0);
	assert_int_equal(spans_file_new(timeline_spans(f->timeline), f->decoder, &f->file, NULL),
			 0);
}

static void teardown(struct fixture *f)
{
	f->dat->n_cpus = 1;
	timeline_picture_done(&f->picture);
	spans_file_free(f->file);
	timeline_free(f->timeline);
	craft_close(f->fd, f->dat, f->decoder);
}

static void happens(struct fixture *f, uint64_t ts, uint32_t cpu, struct craft *c)
{
	const struct subbuf_event event = {.ts = ts, .data = c->bytes, .size = (uint32_t)c->size};
	const struct event_run run = {.events = &event, .n = 1, .cpu = cpu, .missed = f->missed};

	assert_int_equal(spans_run(timeline_spans(f->timeline), f->file, &run), 0);
	timeline_count(f->timeline, &run);
	f->missed = 0;
	craft_done(c);
}

static void switches(struct fixture *f, uint64_t ts, uint32_t cpu, int prev, uint64_t state,
		     int next)
{
	struct craft c = f->kind;

	fixture_switch(&c, prev, state, next);
	happens(f, ts, cpu, &c);
}

static void wakes(struct fixture *f, uint64_t ts, uint32_t cpu, int by, int pid)
{
	struct craft c = f->kind;

	fixture_wake(&c, ID_WAKING, by, pid, (int)cpu);
	happens(f, ts, cpu, &c);
}

static void numbers(struct fixture *f, uint64_t ts, uint32_t cpu, unsigned id, uint32_t number)
{
	struct craft c = f->kind;

	fixture_numbers(&c, id, 5, (const uint32_t[]){number, 0, 0}, 3);
	happens(f, ts, cpu, &c);
}

/* --- the picture, by its description */

struct decoded {
	uint64_t kind, row, from, length, cpu, count, busy;
	int64_t waker; /* -1: none */
};

static uint64_t take(const uint8_t **p)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		value |= (uint64_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return value;
	}
}

static void decode(const struct fixture *f, void (*on_item)(void *, const struct decoded *),
		   void *userdata)
{
	const uint8_t *p = f->picture.bytes;
	size_t n_items = 0;

	for (size_t group = 0; group < f->picture.n_groups; group++) {
		struct decoded item = {.kind = take(&p), .row = take(&p)};

		for (uint64_t n = take(&p); n > 0; n--, n_items++) {
			uint64_t flags;

			item.from += take(&p);
			item.length = take(&p);
			flags = take(&p);
			item.cpu = flags >> 2;
			item.count = flags & TIMELINE_MERGED ? take(&p) : 1;
			item.busy = flags & TIMELINE_MERGED ? take(&p) : 255;
			item.waker = flags & TIMELINE_WOKEN ? (int64_t)take(&p) : -1;
			on_item(userdata, &item);
		}
	}
	assert_ptr_equal(p, f->picture.bytes + f->picture.size);
	assert_int_equal(n_items, f->picture.n_items);
}

static void draw(struct fixture *f)
{
	assert_int_equal(timeline_draw(f->timeline, &f->picture), 0);
}

struct shown {
	const struct fixture *f;
	char text[4096];
};

static void show(void *userdata, const struct decoded *item)
{
	static const char *const kinds[] = {"run",     "wait",	  "blocked", "irq",
					    "softirq", "request", "loss"};
	struct shown *shown = userdata;
	size_t n = strlen(shown->text);
	const bool task = item->kind <= TIMELINE_BLOCKED;
	const int pid = task && item->row > 0 ? shown->f->picture.tasks[item->row - 1].task->pid
					      : (int)item->row;

	n += (size_t)snprintf(shown->text + n, sizeof(shown->text) - n,
			      "%s%s %d %" PRIu64 "+%" PRIu64 "@%" PRIu64, n ? ", " : "",
			      kinds[item->kind], pid, item->from, item->length, item->cpu);
	if (item->count != 1)
		n += (size_t)snprintf(shown->text + n, sizeof(shown->text) - n, " x%" PRIu64,
				      item->count);
	if (item->waker >= 3)
		(void)snprintf(shown->text + n, sizeof(shown->text) - n, " by %d",
			       shown->f->picture.tasks[item->waker - 3].task->pid);
	else if (item->waker >= 0)
		(void)snprintf(shown->text + n, sizeof(shown->text) - n, " by -%" PRId64,
			       item->waker);
}

static void test_items(void **state)
{
	const struct timeline_config config = {.from = 1000, .to = 9000, .room = ROOM};
	struct shown shown = {};
	struct fixture f;
	uint64_t events = 0;

	setup(&f, &config);
	switches(&f, 1000, 0, 0, 0, 5);
	switches(&f, 2000, 0, 5, D, 6);
	numbers(&f, 2100, 0, ID_IRQ_ENTRY, 7);
	numbers(&f, 2200, 0, ID_IRQ_EXIT, 7);
	wakes(&f, 2500, 0, 6, 5);
	switches(&f, 3000, 0, 6, PREEMPT, 5);
	switches(&f, 4000, 0, 5, S, 6);
	switches(&f, 5000, 0, 6, S, 0);
	switches(&f, 6000, 1, 0, 0, 7);
	f.missed = 3;
	switches(&f, 7000, 1, 7, S, 8);
	switches(&f, 9000, 1, 8, S, 0);
	draw(&f);
	shown.f = &f;
	decode(&f, show, &shown);
	assert_string_equal(shown.text, "run 5 0+1000@0, run 5 2000+1000@0, run 6 1000+1000@0, "
					"run 6 3000+1000@0, run 8 6000+2000@1, "
					"wait 5 1500+500@0 by 6, wait 6 2000+1000@0, "
					"blocked 5 1000+500@0 by 6, irq 0 1100+100@0, "
					"loss 1 5000+1000@1 x3");
	assert_int_equal(f.picture.grain, 0);
	assert_int_equal(f.picture.left_out, 0);
	for (size_t i = 0; i < TIMELINE_BINS; i++)
		events += timeline_rate(f.timeline)[i];
	assert_int_equal(events, 11);
	assert_int_equal(timeline_rate(f.timeline)[0], 1);
	assert_int_equal(timeline_measure(f.timeline, SPAN_RUNQUEUE)->count, 2);
	assert_int_equal(timeline_measure(f.timeline, SPAN_RUNQUEUE)->max, 1000);
	teardown(&f);
	(void)state;
}

/* --- 20,000 turns of two tasks, of 1 us each, and a third one that runs now and then for 10 us */

#define TURNS 20000U
#define STEP  UINT64_C(1000)
#define LONG  UINT64_C(10000)

static uint64_t make_turns(struct fixture *f)
{
	uint64_t ts = 0;
	int now = 5;

	switches(f, ts, 0, 0, 0, now);
	for (unsigned i = 0; i < TURNS; i++) {
		const int next = i % 100 == 99 ? 9 : now == 5 ? 6 : 5;

		ts += now == 9 ? LONG : STEP;
		switches(f, ts, 0, now, PREEMPT, next);
		now = next;
	}
	return ts;
}

struct sums {
	uint64_t busy, others, exact, inside;
	struct timeline_window window;
};

static void add_up(void *userdata, const struct decoded *item)
{
	struct sums *sums = userdata;

	if (item->kind != TIMELINE_RUN)
		return;
	sums->busy += item->length * item->busy / 255;
	sums->others += item->row == 0 ? item->length * item->busy / 255 : 0;
	if (item->from > sums->window.to || item->from + item->length < sums->window.from)
		return;
	sums->inside++;
	sums->exact += item->count == 1 && (item->length == STEP || item->length == LONG);
}

static void test_room(void **state)
{
	const struct timeline_window windows[] = {{0, UINT64_C(1) << 40}, {4000000, 4400000}};
	const struct timeline_config config = {
		.from = 0, .to = 22000000, .windows = windows, .n_windows = 2, .room = 20000};
	struct sums sums = {.window = windows[1]};
	struct fixture f;
	uint64_t end;

	setup(&f, &config);
	end = make_turns(&f);
	assert_in_range(end, 21000000, config.to);
	draw(&f);
	assert_true(f.picture.size <= config.room);
	/* room that is there is used */
	assert_true(f.picture.size >= config.room / 8);
	assert_true(f.picture.grain > 0);
	/* the longest window takes too much */
	assert_int_equal(f.picture.n_exact, 1);
	decode(&f, add_up, &sums);
	/* no time of a CPU gets lost, but by rounding */
	assert_in_range(sums.busy, end / 100 * 98, end);
	assert_in_range(sums.inside, 300, 420);
	assert_int_equal(sums.exact, sums.inside);
	teardown(&f);
	(void)state;
}

/* A hundred thousand tasks that run once: none is worth a row of its own */
static void test_many_tasks(void **state)
{
	const struct timeline_config config = {.from = 0, .to = 100000 * STEP, .room = 20000};
	struct sums sums = {};
	struct fixture f;

	setup(&f, &config);
	for (uint32_t i = 0; i < 100000; i++)
		switches(&f, (i + 1) * STEP, 0, (int)(i + 10), S, (int)(i + 11));
	draw(&f);
	assert_true(f.picture.size + f.picture.n_tasks * 40 <= config.room);
	decode(&f, add_up, &sums);
	assert_in_range(sums.busy, 99000 * STEP, 100000 * STEP);
	assert_in_range(sums.others, 90000 * STEP, 100000 * STEP);
	teardown(&f);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_items),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_many_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
