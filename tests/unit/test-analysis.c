/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is a wait and what is not, what a loss does to it, and that memory stays bounded */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/sources.h"
#include "analysis/tables.h"
#include "analysis/why.h"
#include "analysis/words.h"
#include "basic/io.h"
#include "tests/unit/analysis-fixture.h"

#define PAGE	4096
#define S	1U     /* states: asleep, */
#define D	2U     /* blocked, */
#define PREEMPT 0x100U /* and "R+" */
#define ANY_CPU -1

struct fixture {
	struct craft kind; /* byte order and size of long */
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	struct spans *spans;
	struct spans_file *file;
	char text[4096]; /* the spans */
	uint64_t n;
	int64_t missed; /* before the next event */
	uint8_t flags;	/* of the next event */
	uint32_t buffer;
};

static int on_span(void *userdata, const struct span *span)
{
	static const char *const kinds[] = {"runqueue", "blocked", "asleep",  "run",
					    "irq",	"softirq", "request", "call"};
	static const char *const wakers[] = {"", "task", "idle", "irq", "softirq"};
	struct fixture *f = userdata;
	size_t n = strlen(f->text);

	f->n++;
	(void)snprintf(f->text + n, sizeof(f->text) - n, "%s%s", n ? ", " : "", kinds[span->kind]);
	n = strlen(f->text);
	if (span->preempted)
		n += (size_t)snprintf(f->text + n, sizeof(f->text) - n, "/preempted");
	if (span->task)
		n += (size_t)snprintf(f->text + n, sizeof(f->text) - n, " %s", span->task->comm);
	if (span->label)
		n += (size_t)snprintf(f->text + n, sizeof(f->text) - n, " %s",
				      span->label->text ? span->label->text : "-");
	n += (size_t)snprintf(f->text + n, sizeof(f->text) - n, " %" PRIu64 "-%" PRIu64 "@%u",
			      span->from, span->to, span->cpu);
	if (span->waker)
		(void)snprintf(f->text + n, sizeof(f->text) - n, " by %s%s", wakers[span->waker],
			       span->waker_task ? span->waker_task->comm : "");
	return 0;
}

static void open_file(struct fixture *f, const struct craft_file *file)
{
	struct craft c = {.big_endian = f->kind.big_endian, .commit_size = f->kind.commit_size};

	craft_file(&c, file);
	craft_open(&c, &f->fd, &f->dat, &f->decoder);
}

static void setup_kind(struct fixture *f, unsigned kinds, const struct craft *kind)
{
	const struct craft_file file = {
		.formats = fixture_formats,
		.n_formats = FIXTURE_FORMATS,
		.kallsyms = "0000000000001000 t schedule\n0000000000002000 t io_schedule\n"
			    "0000000000003000 t end\n",
	};
	const struct spans_config config = {
		.kinds = kinds,
		.stacks = true,
		.on_span = on_span,
		.userdata = f,
	};

	*f = (struct fixture){.kind = *kind};
	open_file(f, &file);
	f->dat->n_cpus = 4; /* whose regions nobody reads here */
	assert_int_equal(spans_new(&config, &f->spans), 0);
	assert_int_equal(spans_file_new(f->spans, f->decoder, &f->file, NULL), 0);
}

static void setup(struct fixture *f, unsigned kinds)
{
	setup_kind(f, kinds, &craft_kinds[0]);
}

static void teardown(struct fixture *f)
{
	f->dat->n_cpus = 1;
	spans_file_free(f->file);
	spans_free(f->spans);
	craft_close(f->fd, f->dat, f->decoder);
}

/* The event in @c happens; frees it */
static void happens(struct fixture *f, uint64_t ts, uint32_t cpu, struct craft *c)
{
	struct decode_event event = {
		.ts = ts,
		.cpu = cpu,
		.data = c->bytes,
		.size = (uint32_t)c->size,
		.missed = f->missed,
		.buffer = f->buffer,
	};

	fixture_flags(c, 0, f->flags);
	decoder_identify(f->decoder, &event);
	assert_int_equal(spans_event(f->spans, f->file, &event), 0);
	f->missed = 0;
	f->flags = 0;
	craft_done(c);
}

static void switches(struct fixture *f, uint64_t ts, uint32_t cpu, int prev, uint64_t state,
		     int next)
{
	struct craft c = f->kind;

	fixture_switch(&c, prev, state, next);
	happens(f, ts, cpu, &c);
}

static void wakes(struct fixture *f, uint64_t ts, uint32_t cpu, unsigned id, int by, int pid,
		  int target)
{
	struct craft c = f->kind;

	fixture_wake(&c, id, by, pid, target);
	happens(f, ts, cpu, &c);
}

static void numbers(struct fixture *f, uint64_t ts, uint32_t cpu, unsigned id, int by, uint32_t a,
		    uint32_t b, uint32_t c)
{
	struct craft bytes = f->kind;

	fixture_numbers(&bytes, id, by, (const uint32_t[]){a, b, c}, 3);
	happens(f, ts, cpu, &bytes);
}

/* Since the last call these spans came */
static void expect(struct fixture *f, const char *text)
{
	assert_string_equal(f->text, text);
	f->text[0] = '\0';
}

static const unsigned wait_kinds = SPAN_BIT(SPAN_RUNQUEUE) | SPAN_BIT(SPAN_BLOCKED);

static void test_waits(void **state)
{
	FOR_EACH_CRAFT(kind)
	{
		struct fixture f;

		setup_kind(&f, wait_kinds | SPAN_BIT(SPAN_ASLEEP) | SPAN_BIT(SPAN_RUN), &kind);
		/* what was before is not known */
		switches(&f, 100, 0, 5, S, 6);
		expect(&f, "");
		assert_int_equal(spans_totals(f.spans)->unknown, 1);
		/* woken by t6; then t6 has to leave, and comes back */
		wakes(&f, 110, 0, ID_WAKING, 6, 5, 0);
		expect(&f, "asleep t5 100-110@0 by taskt6");
		switches(&f, 130, 0, 6, PREEMPT, 5);
		expect(&f, "run t6 100-130@0, runqueue t5 110-130@0 by taskt6");
		switches(&f, 150, 0, 5, D, 6);
		expect(&f, "run t5 130-150@0, runqueue/preempted t6 130-150@0");
		/* on another CPU, from an interrupt */
		f.flags = 0x08;
		wakes(&f, 190, 1, ID_WAKING, 0, 5, 1);
		expect(&f, "blocked t5 150-190@1 by irq");
		switches(&f, 200, 1, 0, 0, 5);
		expect(&f, "runqueue t5 190-200@1 by irq");
		/* other states than D */
		switches(&f, 210, 1, 5, 0x80, 0);
		f.flags = 0x10;
		wakes(&f, 220, 1, ID_WAKING, 0, 5, 1);
		switches(&f, 230, 1, 0, 0, 5);
		expect(&f, "run t5 200-210@1, asleep t5 210-220@1 by softirq, run 210-230@1, "
			   "runqueue t5 220-230@1 by softirq");
		/* idle threads of kernels before 4.14 */
		switches(&f, 240, 1, 5, 0x402, 0);
		wakes(&f, 250, 1, ID_WAKING, 0, 5, 1);
		expect(&f, "run t5 230-240@1, asleep t5 240-250@1 by idle");
		teardown(&f);
	}
}

/* sched_waking counts where there is one, else sched_wakeup */
static void test_wakeups(void **state)
{
	struct fixture f;

	setup(&f, wait_kinds);
	switches(&f, 100, 0, 5, S, 0);
	wakes(&f, 110, 0, ID_WAKING, 0, 5, 0);
	wakes(&f, 113, 0, ID_WAKEUP, 0, 5, 0);
	switches(&f, 120, 0, 0, 0, 5);
	expect(&f, "runqueue t5 110-120@0 by idle");
	switches(&f, 130, 0, 5, S, 0);
	wakes(&f, 140, 0, ID_WAKEUP, 0, 5, 0);
	switches(&f, 150, 0, 0, 0, 5);
	expect(&f, "runqueue t5 140-150@0 by idle");
	/* it is woken while it is on its way to sleep: that it can run is known from wakeup on */
	wakes(&f, 155, 1, ID_WAKING, 9, 5, 0);
	switches(&f, 160, 0, 5, S, 0);
	wakes(&f, 163, 1, ID_WAKEUP, 9, 5, 0);
	switches(&f, 170, 0, 0, 0, 5);
	expect(&f, "runqueue t5 163-170@0 by task");
	/* a new task, with the pid of one that slept */
	switches(&f, 180, 0, 5, D, 0);
	wakes(&f, 200, 0, ID_WAKEUP_NEW, 9, 5, 0);
	switches(&f, 210, 0, 0, 0, 5);
	expect(&f, "runqueue t5 200-210@0 by task");
	/* asleep and yet there: nobody knows since when */
	switches(&f, 220, 0, 5, S, 0);
	switches(&f, 230, 0, 0, 0, 5);
	expect(&f, "");
	teardown(&f);
}

/* Some kernels do not record each switch; then only who is woken twice must have run in between */
static void test_hidden_switches(void **state)
{
	struct fixture f;

	setup(&f, wait_kinds);
	switches(&f, 100, 0, 5, S, 0);
	wakes(&f, 110, 0, ID_WAKING, 0, 5, 0);
	wakes(&f, 112, 0, ID_WAKEUP, 0, 5, 0);
	wakes(&f, 500, 0, ID_WAKING, 0, 5, 0);
	wakes(&f, 502, 0, ID_WAKEUP, 0, 5, 0);
	switches(&f, 510, 0, 0, 0, 5);
	expect(&f, "runqueue t5 500-510@0 by idle");
	assert_int_equal(spans_totals(f.spans)->hidden, 1);
	/* the same without sched_waking */
	switches(&f, 600, 0, 5, S, 0);
	wakes(&f, 610, 0, ID_WAKEUP, 0, 5, 0);
	wakes(&f, 700, 0, ID_WAKEUP, 0, 5, 0);
	switches(&f, 710, 0, 0, 0, 5);
	expect(&f, "runqueue t5 700-710@0 by idle");
	/* who is preempted on the way to sleep may be woken: no proof */
	switches(&f, 720, 0, 5, PREEMPT, 6);
	wakes(&f, 730, 0, ID_WAKING, 6, 5, 0);
	switches(&f, 740, 0, 6, S, 5);
	expect(&f, "runqueue/preempted t5 720-740@0");
	/* who left of its own accord was running in all respects */
	switches(&f, 750, 0, 5, 0, 7);
	wakes(&f, 760, 0, ID_WAKING, 7, 5, 0);
	switches(&f, 770, 0, 7, S, 5);
	expect(&f, "runqueue t5 760-770@0 by taskt7");
	/* it waits, is switched out: when it came is not known */
	switches(&f, 780, 0, 5, PREEMPT, 0);
	switches(&f, 900, 0, 5, D, 0);
	wakes(&f, 910, 0, ID_WAKING, 0, 5, 0);
	expect(&f, "blocked t5 900-910@0 by idle");
	teardown(&f);
}

/* Who was switched in is not known: then its own events tell, those since the last switch */
static void test_hidden_runs(void **state)
{
	struct fixture f;

	setup(&f, SPAN_BIT(SPAN_RUN));
	switches(&f, 100, 0, 5, S, 6);
	wakes(&f, 110, 0, ID_WAKING, 6, 9, 1);
	switches(&f, 120, 0, 6, S, 7);
	expect(&f, "run t6 100-120@0");
	/* from 7 back to 6, and no event in between */
	switches(&f, 200, 0, 6, S, 7);
	expect(&f, "");
	wakes(&f, 250, 0, ID_WAKING, 6, 9, 1);
	switches(&f, 300, 0, 6, S, 7);
	expect(&f, "run t6 250-300@0");
	teardown(&f);
}

static void test_loss(void **state)
{
	struct fixture f;

	setup(&f, wait_kinds | SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_IRQ));
	/* t5 waits on CPU 0, t6 on CPU 1, t8 was moved away from CPU 0 in time */
	switches(&f, 100, 0, 5, PREEMPT, 7);
	switches(&f, 100, 1, 6, PREEMPT, 9);
	wakes(&f, 105, 0, ID_WAKEUP_NEW, 7, 8, 0);
	numbers(&f, 110, 0, ID_MIGRATE, 7, 8, 0, 1);
	numbers(&f, 115, 0, ID_IRQ_ENTRY, 7, 3, 0, 0);
	f.missed = -1;
	numbers(&f, 120, 0, ID_IRQ_EXIT, 7, 3, 0, 0);
	expect(&f, "");
	/* that it runs its events tell */
	switches(&f, 130, 0, 7, S, 5);
	expect(&f, "run t7 120-130@0");
	switches(&f, 140, 1, 9, S, 6);
	expect(&f, "run t9 100-140@1, runqueue/preempted t6 100-140@1");
	switches(&f, 150, 1, 6, S, 8);
	expect(&f, "run t6 140-150@1, runqueue t8 105-150@1 by taskt7");
	assert_int_equal(spans_totals(f.spans)->gaps, 1);
	assert_int_equal(spans_totals(f.spans)->ended, 1);
	/* from when it is seen again all is known */
	switches(&f, 160, 0, 5, PREEMPT, 0);
	f.missed = 7;
	switches(&f, 170, 2, 0, 0, 0);
	switches(&f, 180, 0, 0, 0, 5);
	expect(&f, "run t5 130-160@0, run 160-180@0, runqueue/preempted t5 160-180@0");
	assert_int_equal(spans_totals(f.spans)->lost, 7);
	/* who sleeps may have been woken where events were lost, and sleep again; who waits for a
	 * CPU was not on it */
	switches(&f, 200, 0, 5, D, 6);
	switches(&f, 200, 1, 8, PREEMPT, 9);
	expect(&f, "run t5 180-200@0, run t8 150-200@1");
	f.missed = 1;
	switches(&f, 210, 2, 0, 0, 7);
	wakes(&f, 220, 0, ID_WAKING, 6, 5, 0);
	switches(&f, 230, 1, 9, S, 8);
	expect(&f, "run t9 200-230@1, runqueue/preempted t8 200-230@1");
	assert_int_equal(spans_totals(f.spans)->ended, 2);
	teardown(&f);
}

static void test_stack(void **state)
{
	FOR_EACH_CRAFT(kind)
	{
		const uint64_t callers[] = {0x2010, 0x1004, 0xffffffffffffffff};
		struct craft c = {.big_endian = kind.big_endian};
		struct fixture f;

		setup_kind(&f, SPAN_BIT(SPAN_BLOCKED), &kind);
		switches(&f, 100, 0, 5, D, 0);
		fixture_numbers(&c, ID_STACK, 5, (const uint32_t[]){2, 0}, 2);
		for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
			craft_number(&c, f.dat->long_size, callers[i]);
		happens(&f, 101, 0, &c);
		wakes(&f, 110, 0, ID_WAKING, 0, 5, 0);
		expect(&f, "blocked t5 schedule;io_schedule 100-110@0 by idle");
		/* the next one has none; one of another task is not its own */
		switches(&f, 120, 0, 0, 0, 5);
		switches(&f, 130, 0, 5, D, 0);
		fixture_numbers(&c, ID_STACK, 6, (const uint32_t[]){2, 0, 1, 1, 1, 1}, 6);
		happens(&f, 131, 0, &c);
		wakes(&f, 140, 0, ID_WAKING, 0, 5, 0);
		expect(&f, "blocked t5 130-140@0 by idle");
		teardown(&f);
	}
}

static void test_interrupts(void **state)
{
	struct craft c;
	struct fixture f;

	setup(&f, SPAN_BIT(SPAN_IRQ) | SPAN_BIT(SPAN_SOFTIRQ));
	c = f.kind;
	fixture_numbers(&c, ID_IRQ_ENTRY, 0, (const uint32_t[]){9, 4U << 16 | 16}, 2);
	craft_text(&c, "eth");
	happens(&f, 100, 1, &c);
	numbers(&f, 130, 1, ID_IRQ_EXIT, 0, 9, 1, 0);
	expect(&f, "irq eth 100-130@1");
	/* an interrupt in the middle of a softirq; another CPU is another matter */
	numbers(&f, 200, 1, ID_SOFTIRQ_ENTRY, 0, 3, 0, 0);
	numbers(&f, 205, 0, ID_SOFTIRQ_EXIT, 0, 3, 0, 0);
	numbers(&f, 210, 1, ID_IRQ_ENTRY, 0, 9, 0, 0);
	numbers(&f, 220, 1, ID_IRQ_EXIT, 0, 9, 0, 0);
	numbers(&f, 230, 1, ID_SOFTIRQ_EXIT, 0, 3, 0, 0);
	expect(&f, "irq eth 210-220@1, softirq NET_RX 200-230@1");
	/* not the end of this one */
	numbers(&f, 240, 1, ID_IRQ_ENTRY, 0, 9, 0, 0);
	numbers(&f, 250, 1, ID_IRQ_EXIT, 0, 8, 0, 0);
	expect(&f, "");
	teardown(&f);
}

static void request(struct fixture *f, uint64_t ts, unsigned id, uint32_t sector, const char *kind)
{
	struct craft c = f->kind;

	fixture_numbers(&c, id, 5, (const uint32_t[]){8U << 20 | 1, sector, 8}, 3);
	craft_bytes(&c, kind, 4);
	happens(f, ts, 0, &c);
}

static void test_requests(void **state)
{
	struct fixture f;

	setup(&f, SPAN_BIT(SPAN_BLOCK));
	request(&f, 100, ID_ISSUE, 1000, "WS\0");
	request(&f, 110, ID_ISSUE, 2000, "R\0\0");
	request(&f, 120, ID_COMPLETE, 1000, "WS\0");
	request(&f, 130, ID_COMPLETE, 2000, "R\0\0");
	expect(&f, "request write 100-120@0, request read 110-130@0");
	request(&f, 140, ID_COMPLETE, 2000, "R\0\0");
	expect(&f, "");
	/* put back and issued again */
	request(&f, 150, ID_ISSUE, 0, "FF\0");
	request(&f, 160, ID_ISSUE, 0, "FF\0");
	request(&f, 170, ID_COMPLETE, 0, "FF\0");
	expect(&f, "request flush 160-170@0");
	/* more of them than are kept, none of which ends */
	for (uint32_t i = 0; i < 100000; i++)
		request(&f, 200 + i, ID_ISSUE, 8 * i, "R\0\0");
	assert_true(spans_totals(f.spans)->left_out > 0);
	request(&f, 200000, ID_COMPLETE, 8 * 99999, "R\0\0");
	expect(&f, "request read 100199-200000@0");
	teardown(&f);
}

static void test_calls(void **state)
{
	struct fixture f;

	setup(&f, SPAN_BIT(SPAN_SYSCALL));
	numbers(&f, 100, 0, ID_CALL_ENTER, 5, 0, 0, 0);
	numbers(&f, 110, 1, ID_CALL_EXIT, 5, 0, 0, 0);
	expect(&f, "call  read 100-110@1"); /* nothing has told a name */
	/* both kinds are recorded: one call it is */
	numbers(&f, 200, 0, ID_RAW_ENTER, 5, 0, 0, 0);
	numbers(&f, 202, 0, ID_CALL_ENTER, 5, 0, 0, 0);
	numbers(&f, 208, 0, ID_CALL_EXIT, 5, 0, 0, 0);
	numbers(&f, 210, 0, ID_RAW_EXIT, 5, 0, 0, 0);
	/* as exit() has it */
	numbers(&f, 300, 0, ID_RAW_ENTER, 5, 60, 0, 0);
	numbers(&f, 310, 0, ID_RAW_EXIT, 5, 7, 0, 0);
	expect(&f, "call  read 200-210@0");
	teardown(&f);
}

/* What takes an event that was not recorded for a while does not go across that time */
static void test_not_recorded(void **state)
{
	/* without one of these it is as long as it looks */
	static const char run[] = "run t7 100-200@0, ",
			  wait[] = "runqueue/preempted t5 100-200@0, ",
			  irq[] = "irq t5 - 110-210@0, ", block[] = "request read 120-220@0, ",
			  call[] = "call t7 - 130-230@0, ";
	static const struct {
		const char *event, *spans[5];
	} cases[] = {
		{"oom:mark_victim", {run, wait, irq, block, call}},
		{"none:such", {run, wait, irq, block, call}},
		{"raw_syscalls:sys_exit", {run, wait, irq, block}},
		{"sched:sched_waking", {run, irq, block, call}},
		{"sched:sched_switch", {irq, block, call}},
		{"irq:irq_handler_entry", {run, wait, block, call}},
		{"block:block_rq_issue", {run, wait, irq, call}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char expected[400] = "";
		struct fixture f;

		setup(&f, wait_kinds | SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_IRQ) |
				  SPAN_BIT(SPAN_BLOCK) | SPAN_BIT(SPAN_SYSCALL));
		switches(&f, 100, 0, 5, PREEMPT, 7);
		numbers(&f, 110, 0, ID_IRQ_ENTRY, 7, 3, 0, 0);
		request(&f, 120, ID_ISSUE, 1000, "R\0\0");
		numbers(&f, 130, 0, ID_RAW_ENTER, 7, 0, 0, 0);
		f.text[0] = '\0';
		spans_not_recorded(f.spans, cases[i].event);
		switches(&f, 200, 0, 7, PREEMPT, 5);
		numbers(&f, 210, 0, ID_IRQ_EXIT, 5, 3, 0, 0);
		request(&f, 220, ID_COMPLETE, 1000, "R\0\0");
		numbers(&f, 230, 0, ID_RAW_EXIT, 7, 0, 0, 0);
		for (size_t n = 0; n < ARRAY_SIZE(cases[i].spans) && cases[i].spans[n]; n++)
			(void)strcat(expected, cases[i].spans[n]);
		(void)strcat(f.text, ", ");
		expect(&f, expected);
		teardown(&f);
	}
}

/* Two ring buffers may have recorded the same */
static void test_two_buffers(void **state)
{
	struct fixture f;

	setup(&f, wait_kinds);
	f.dat->n_buffers = 2;
	switches(&f, 100, 0, 5, PREEMPT, 6);
	f.buffer = 1;
	switches(&f, 101, 0, 5, PREEMPT, 6);
	f.buffer = 0;
	switches(&f, 110, 0, 6, S, 5);
	f.buffer = 1;
	switches(&f, 111, 0, 6, S, 5);
	wakes(&f, 120, 0, ID_WAKING, 5, 6, 0);
	/* what the second one has lost of that is no matter */
	f.buffer = 0;
	switches(&f, 130, 0, 5, S, 6);
	expect(&f, "runqueue/preempted t5 100-110@0, runqueue t6 120-130@0 by taskt5");
	f.dat->n_buffers = 1;
	teardown(&f);
}

static void test_quantiles(void **state)
{
	struct measure m = {};
	uint64_t p50, p99;

	assert_int_equal(measure_quantile(&m, 500), 0);
	assert_int_equal(measure_add(&m, 10, 10), 0);
	assert_int_equal(measure_quantile(&m, 990), 0);
	/* of two each is known */
	assert_int_equal(measure_add(&m, 10, 13), 0);
	assert_int_equal(measure_quantile(&m, 500), 0);
	assert_int_equal(measure_quantile(&m, 510), 3);
	for (uint64_t i = 1; i <= 1000; i++)
		assert_int_equal(measure_add(&m, 7 * i, 7 * i + 1000 * i), 0);
	assert_int_equal(m.count, 1002);
	assert_int_equal(m.total, 500500003);
	assert_int_equal(m.max, 1000000);
	assert_int_equal(m.max_at, 7000);
	/* a quarter too much at most, never too little */
	p50 = measure_quantile(&m, 500);
	p99 = measure_quantile(&m, 990);
	assert_in_range(p50, 500000, 625000);
	assert_in_range(p99, 990000, 1000000);
	assert_int_equal(measure_add(&m, 0, UINT64_MAX), 0);
	assert_true(measure_quantile(&m, 1000) == UINT64_MAX);
	measure_done(&m);
}

static void test_bad_numbers(void **state)
{
	struct craft c;
	struct fixture f;

	setup(&f, wait_kinds);
	wakes(&f, 100, 0, ID_WAKING, 0, -1, 0);
	wakes(&f, 100, 0, ID_WAKING, 0, INT32_MAX, 0);
	wakes(&f, 100, 0, ID_WAKING, -5, 5, INT32_MAX);
	wakes(&f, 100, 0, ID_WAKING, 0, 5, ANY_CPU);
	switches(&f, 110, 0, INT32_MIN, UINT64_MAX, 5);
	numbers(&f, 120, 0, ID_MIGRATE, 0, 5, 0, 77);
	/* too short for its fields */
	c = f.kind;
	fixture_numbers(&c, ID_SWITCH, 0, NULL, 0);
	happens(&f, 130, 0, &c);
	/* time runs backwards */
	switches(&f, 90, 0, 5, PREEMPT, 0);
	switches(&f, 80, 0, 0, 0, 5);
	expect(&f, "runqueue t5 100-110@0 by idle");
	teardown(&f);
}

/* --- tables, from files */

static void close_input(struct fixture *f)
{
	craft_close(f->fd, f->dat, f->decoder);
}

/* A file of one CPU with a page of events at these times: t5 and t6 take turns */
static void make_turns_shed(struct fixture *f, uint64_t begin, unsigned n, uint32_t step, bool odd,
			    const char *sheds)
{
	struct craft pages = craft_kinds[0];
	const struct craft_file file = {
		.formats = fixture_formats,
		.n_formats = FIXTURE_FORMATS,
		.sheds = sheds,
		.pages = &pages,
	};
	size_t page = craft_page_begin(&pages, begin);

	for (unsigned i = 0; i < n; i++) {
		struct craft event = craft_kinds[0];

		if ((i % 2 == 0) == odd)
			fixture_switch(&event, 6, PREEMPT, 5);
		else
			fixture_switch(&event, 5, PREEMPT, 6);
		fixture_put(&pages, i ? step : 0, &event);
		craft_done(&event);
	}
	craft_page_end(&pages, page, PAGE, 0);
	*f = (struct fixture){.kind = craft_kinds[0]};
	open_file(f, &file);
	craft_done(&pages);
}

static void make_turns(struct fixture *f, uint64_t begin, unsigned n, uint32_t step, bool odd)
{
	make_turns_shed(f, begin, n, step, odd, NULL);
}

static void run_tables(const struct source *sources, size_t n, const struct tables_config *config,
		       uint64_t last, struct tables **ret)
{
	const struct event_filter filter = {};
	struct sources_facts facts;
	struct fault why = {};

	assert_int_equal(tables_new(config, ret), 0);
	if (sources_run(&(struct sources_config){.sources = sources,
						 .n = n,
						 .filter = &filter,
						 .last = last,
						 .spans = tables_spans(*ret),
						 .on_count = tables_count,
						 .userdata = *ret},
			&facts, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(facts.n_faults, 0);
}

static struct table_row *rows_of(struct tables *tables, size_t wanted)
{
	struct table_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(tables_rows(tables, &rows, &n), 0);
	assert_int_equal(n, wanted);
	return rows;
}

/* Files given in any order are one recording, also where they overlap */
static void test_several_files(void **state)
{
	const struct tables_config config = {.view = VIEW_RUNQUEUE};
	struct fixture a, b, c;
	struct table_row *rows;
	struct tables *tables;

	make_turns(&a, 1000, 10, 10, true); /* 1000 … 1090: 5 comes at 1000, 6 at 1090 */
	make_turns(&b, 1100, 10, 10, true); /* 5 comes at 1100, 6 at 1190 */
	make_turns(&c, 1085, 1, 10, true);  /* in between */
	run_tables((const struct source[]){{"b", b.fd}, {"a", a.fd}}, 2, &config, 0, &tables);
	assert_int_equal(tables_totals(tables)->from, 1000);
	assert_int_equal(tables_totals(tables)->to, 1190);
	assert_int_equal(tables_totals(tables)->events, 20);
	rows = rows_of(tables, 2);
	assert_int_equal(rows[0].count + rows[1].count, 19);
	assert_int_equal(rows[0].total + rows[1].total, 190);
	assert_int_equal(rows[0].runqueue.preempted, rows[0].total);
	free(rows);
	tables_free(tables);

	run_tables((const struct source[]){{"c", c.fd}, {"a", a.fd}}, 2, &config, 0, &tables);
	assert_int_equal(tables_totals(tables)->events, 11);
	assert_int_equal(tables_totals(tables)->to, 1090);
	tables_free(tables);

	/* the last 45 ns of both */
	run_tables((const struct source[]){{"a", a.fd}, {"b", b.fd}}, 2, &config, 45, &tables);
	assert_int_equal(tables_totals(tables)->from, 1150);
	tables_free(tables);
	close_input(&a);
	close_input(&b);
	close_input(&c);
}

/* Of what the first file does not know the end of, the second one may; what does not come back ends
 * with the last event. In the second round the first file has no event that is wanted; what it says
 * was not recorded counts all the same. */
static void test_files_not_recorded(void **state)
{
	const struct event_filter filter = {};
	struct fixture a, b;

	make_turns_shed(&a, 1000, 10, 10, true, /* to 1090 */
			"1035\t18446744073709551615\tsched:sched_switch\n"
			"1080\t18446744073709551615\tirq:irq_handler_entry\n");
	make_turns_shed(&b, 1100, 10, 10, true, /* to 1190 */
			"1035\t1145\tsched:sched_switch\n1200\t1300\tblock:block_rq_issue\n");
	for (unsigned i = 0; i < 2; i++) {
		const struct tables_config config = {.view = VIEW_RUNQUEUE};
		_cleanup_own_sheds_ struct own_sheds sheds = {};
		const struct source sources[] = {{"b", b.fd, 0}, {"a", a.fd, 0}};
		struct sources_facts facts;
		struct table_row *rows;
		struct tables *tables;
		struct fault why = {};

		assert_int_equal(tables_new(&config, &tables), 0);
		if (sources_run(&(struct sources_config){.sources = sources,
							 .n = 2,
							 .filter = &filter,
							 .last = i == 0 ? 0 : 50,
							 .spans = tables_spans(tables),
							 .sheds = &sheds},
				&facts, &why) < 0)
			fail_msg("%s", why.text);
		/* of nineteen, or of five, all but the one that went on at 1145 */
		rows = rows_of(tables, 2);
		assert_int_equal(rows[0].count + rows[1].count, i == 0 ? 18 : 4);
		assert_int_equal(rows[0].total + rows[1].total, i == 0 ? 180 : 40);
		assert_int_equal(sheds.n, 2);
		assert_string_equal(sheds.list[0].event, "sched:sched_switch");
		assert_int_equal(sheds.list[0].from, i == 0 ? 1035 : 1140);
		assert_int_equal(sheds.list[0].to, 1145);
		assert_string_equal(sheds.list[1].event, "irq:irq_handler_entry");
		assert_int_equal(sheds.list[1].from, i == 0 ? 1080 : 1140);
		assert_int_equal(sheds.list[1].to, 1190);
		free(rows);
		tables_free(tables);
	}
	close_input(&a);
	close_input(&b);
}

static void tell(struct who *who, int32_t pid, const char *cgroup)
{
	assert_int_equal(who_tell(who, &(struct own_task){pid, pid, 1, "n", cgroup}, 0), 0);
}

/* Tasks by their units: two in one, each in its own, one of which nobody knows; and --unit= */
static void test_units(void **state)
{
	char *const units[] = {(char *)"a.service", NULL};
	struct fixture f;

	make_turns(&f, 1000, 11, 10, true); /* 5 and 6 take turns of 10 from 1000 to 1100 */
	for (unsigned i = 0; i < 3; i++) {
		struct tables_config config = {.view = VIEW_UNITS};
		struct table_row *rows;
		struct tables *tables;
		struct who *who;

		assert_int_equal(who_new(units, NULL, false, &who), 0);
		config.who = who;
		tell(who, 5, "/a.slice/a.service");
		if (i < 2)
			tell(who, 6, i == 0 ? "/a.slice/a.service/sub" : "/b.service");
		config.filter.places = i == 1;
		run_tables(&(struct source){"f", f.fd}, 1, &config, 0, &tables);
		rows = rows_of(tables, i == 2 ? 2 : 1);
		if (i == 2) /* as much, and the first by its name */
			assert_null(rows[0].unit->place);
		assert_string_equal(rows[i / 2].unit->place->names.unit, "a.service");
		assert_int_equal(rows[i / 2].unit->tasks, i == 0 ? 2 : 1);
		assert_int_equal(rows[i / 2].tasks.run, i == 0 ? 100 : 50);
		assert_int_equal(rows[i / 2].tasks.runqueue, i == 0 ? 100 : 50);
		free(rows);
		tables_free(tables);

		config.view = VIEW_PREEMPTORS;
		config.filter.places = true; /* victims */
		run_tables(&(struct source){"f", f.fd}, 1, &config, 0, &tables);
		rows = rows_of(tables, i == 0 ? 2 : 1);
		if (i > 0)
			assert_int_equal(rows[0].task->pid, 6);
		assert_string_equal(rows[0].other_who->place->names.unit, "a.service");
		assert_int_equal(rows[0].who == NULL, i == 2);
		free(rows);
		tables_free(tables);
		who_free(who);
	}
	close_input(&f);
}

static void test_views(void **state)
{
	struct tables_config config = {.view = VIEW_TASKS};
	struct fixture f;
	struct source source;
	struct table_row *rows;
	struct tables *tables;
	const char *missing[_KNOWN_MAX];

	make_turns(&f, 1000, 11, 10, true);
	source = (struct source){"f", f.fd};
	run_tables(&source, 1, &config, 0, &tables);
	rows = rows_of(tables, 2);
	assert_int_equal(rows[0].task->pid, 5);
	assert_int_equal(rows[0].tasks.run, 50);
	assert_int_equal(rows[0].tasks.runqueue, 50);
	assert_int_equal(rows[1].tasks.run, 50);
	assert_int_equal(rows[1].tasks.runqueue, 50);
	assert_int_equal(tables_missing(tables, missing), 1);
	assert_string_equal(missing[0], "sched:sched_waking");
	free(rows);
	tables_free(tables);

	/* t6 ran while t5 waited, and the other way round */
	config.view = VIEW_PREEMPTORS;
	run_tables(&source, 1, &config, 0, &tables);
	rows = rows_of(tables, 2);
	assert_int_equal(rows[0].task->pid, 5);
	assert_int_equal(rows[0].other->pid, 6);
	assert_int_equal(rows[0].total, 50);
	assert_int_equal(rows[0].count, 5);
	assert_int_equal(rows[1].total, 50);
	free(rows);
	tables_free(tables);

	config.view = VIEW_EVENTS;
	run_tables(&source, 1, &config, 0, &tables);
	rows = rows_of(tables, 1);
	assert_string_equal(rows[0].text, "sched:sched_switch");
	assert_int_equal(rows[0].count, 11);
	assert_int_equal(rows[0].bytes, 11 * 64);
	free(rows);
	tables_free(tables);

	config = (struct tables_config){.view = VIEW_RUNQUEUE, .filter.pid = 6};
	run_tables(&source, 1, &config, 0, &tables);
	rows = rows_of(tables, 1);
	assert_int_equal(rows[0].task->pid, 6);
	free(rows);
	tables_free(tables);
	config = (struct tables_config){.view = VIEW_RUNQUEUE, .filter.task = "t[!6]"};
	run_tables(&source, 1, &config, 0, &tables);
	rows = rows_of(tables, 1);
	assert_int_equal(rows[0].task->pid, 5);
	free(rows);
	tables_free(tables);
	close_input(&f);
}

static void read_why(int fd, const struct why_config *config, struct why **ret)
{
	const struct event_filter filter = {};
	const struct source source = {"f", fd};
	struct sources_facts facts;
	struct fault fault = {};

	assert_int_equal(why_new(config, ret), 0);
	if (sources_run(&(struct sources_config){.sources = &source,
						 .n = 1,
						 .filter = &filter,
						 .spans = why_spans(*ret)},
			&facts, &fault) < 0)
		fail_msg("%s", fault.text);
}

static void test_words(void **state)
{
	static const struct {
		uint64_t nsec;
		const char *text;
	} rows[] = {
		{0, "0ns"},
		{999, "999ns"},
		{1000, "1.000us"},
		{9999, "9.999us"},
		{9999600, "10.00ms"},
		{99994000, "99.99ms"},
		{99996000, "100.0ms"},
		{999940000, "999.9ms"},
		{999960000, "1.000s"},
		{123456000000, "123.5s"},
	};
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		text = analysis_nsec(rows[i].nsec);
		assert_string_equal(text, rows[i].text);
		free(text);
	}
	text = analysis_prio(-1);
	assert_string_equal(text, "deadline");
	free(text);
	text = analysis_prio(49);
	assert_string_equal(text, "rt 50");
	free(text);
}

static void test_why(void **state)
{
	const uint64_t at = 1015;
	struct why_config config = {.task = "t5", .top = 3};
	struct why_wait *const *waits;
	struct fixture f;
	struct why *why;

	make_turns(&f, 1000, 11, 10, true);
	read_why(f.fd, &config, &why);
	assert_int_equal(why_waits(why, &waits), 3);
	/* of equal ones the first */
	assert_int_equal(waits[0]->span.from, 1010);
	assert_int_equal(waits[0]->span.to, 1020);
	assert_int_equal(waits[0]->n, 1);
	assert_string_equal(waits[0]->slices[0].task->comm, "t6");
	assert_int_equal(waits[0]->slices[0].from, 1010);
	assert_int_equal(waits[0]->slices[0].to, 1020);
	assert_int_equal(waits[0]->slices[0].prio, 120);
	assert_int_equal(waits[0]->shares.n, 1);
	assert_string_equal(waits[0]->shares.list[0].task->comm, "t6");
	assert_int_equal(waits[0]->shares.list[0].nsec, 10);
	assert_int_equal(waits[0]->shares.list[0].runs, 1);
	assert_int_equal(waits[0]->before.kind, SPAN_RUN);
	assert_int_equal(waits[0]->before.from, 1000);
	assert_int_equal(waits[0]->after, 10);
	assert_int_equal(waits[2]->span.from, 1050);
	why_free(why);

	/* of whom it is known whose they are */
	for (unsigned unit = 0; unit < 2; unit++) {
		char *const units[] = {(char *)(unit ? "a" : "b"), NULL};
		struct who *who;

		assert_int_equal(who_new(units, NULL, false, &who), 0);
		tell(who, 5, "/a.service");
		config = (struct why_config){.task = "t*", .top = 20, .places = true, .who = who};
		read_why(f.fd, &config, &why);
		assert_int_equal(why_waits(why, &waits), unit ? 5 : 0);
		assert_int_equal(why_knows(why), unit);
		why_free(why);
		who_free(who);
	}

	/* the one at a time, of a pid; it began less than a microsecond later, as times are shown
	 */
	config = (struct why_config){.pid = 6, .top = 20, .at = &at};
	read_why(f.fd, &config, &why);
	assert_int_equal(why_waits(why, &waits), 4);
	why_free(why);
	config = (struct why_config){.task = "t[!56]", .top = 3};
	read_why(f.fd, &config, &why);
	assert_int_equal(why_waits(why, &waits), 0);
	assert_false(why_knows(why));
	why_free(why);
	close_input(&f);
}

/* Who ran is known of the last runs; all of these are in the sums, and the longest ones in the list
 */
static void test_many_runs(void **state)
{
	const struct why_config config = {.task = "t5", .top = 1};
	struct why_wait *const *waits;
	const struct why_wait *wait;
	const struct run_slice *first;
	struct fixture f;
	struct why *why;
	uint64_t ts = 100;

	setup(&f, 0);
	spans_free(f.spans);
	spans_file_free(f.file);
	assert_int_equal(why_new(&config, &why), 0);
	f.spans = why_spans(why);
	assert_int_equal(spans_file_new(f.spans, f.decoder, &f.file, NULL), 0);
	switches(&f, ts, 0, 5, PREEMPT, 6);
	for (unsigned i = 0; i < 5000; i++) {
		/* a long one of t6, and the idle task in between */
		ts += i == 2000 ? 20000 : 10;
		switches(&f, ts, 0, i % 2 ? 0 : 6, S, i % 2 ? 6 : 0);
	}
	switches(&f, ts + 10, 0, 6, S, 5);
	assert_int_equal(why_waits(why, &waits), 1);
	wait = waits[0];
	assert_int_equal(wait->span.to - wait->span.from, 50010 + 19990);
	assert_int_equal(wait->shares.n, 2);
	assert_string_equal(wait->shares.list[0].task->comm, "t6");
	assert_int_equal(wait->shares.list[0].nsec, RUN_HISTORY_SLICES / 2 * 10 + 19990);
	assert_int_equal(wait->shares.list[0].runs, RUN_HISTORY_SLICES / 2);
	assert_null(wait->shares.list[1].task);
	assert_int_equal(wait->shares.list[1].nsec, RUN_HISTORY_SLICES / 2 * 10);
	assert_int_equal(wait->shares.others, 0);
	assert_int_equal(wait->n, WHY_SLICES);
	first = &wait->slices[WHY_SLICES - 1];
	assert_int_equal(first->to - first->from, 20000);
	assert_int_equal(wait->slices[0].to, wait->span.to);
	assert_int_equal(wait->shorter, 10 * (RUN_HISTORY_SLICES - WHY_SLICES));
	/* 9050 of 70010 are too long ago */
	assert_memory_equal(wait->line, ".......", 7);
	assert_int_equal(strlen(wait->line), WHY_LINE);
	for (unsigned k = 8; k < WHY_LINE; k++)
		assert_true(wait->line[k] == 'A' || wait->line[k] == '-');
	assert_memory_equal(wait->line + 18, "AAAAAAAAAAAAAAA", 15);
	assert_int_equal(why_letter(wait, wait->shares.list[0].task), 'A');
	assert_int_equal(why_letter(wait, NULL), '-');
	assert_int_equal(why_letter(wait, wait->span.task), '+');
	why_free(why);
	f.spans = NULL;
	teardown(&f);
}

/* Append the event in @c to a page, 10 ns after the one before; frees it */
static void put(struct craft *page, struct craft *c)
{
	fixture_put(page, 10, c);
	craft_done(c);
}

static void put_numbers(struct craft *page, const struct craft *kind, unsigned id, int by,
			const uint32_t *numbers, size_t n, const void *text, size_t size)
{
	struct craft c = {.big_endian = kind->big_endian};

	fixture_numbers(&c, id, by, numbers, n);
	craft_bytes(&c, text, size);
	put(page, &c);
}

/* A file with something for each view; also where fuzz-analysis begins */
static void craft_everything(struct craft *c, const struct craft *kind)
{
	struct craft pages = *kind, event = {.big_endian = kind->big_endian};
	const struct craft_file file = {
		.formats = fixture_formats,
		.n_formats = FIXTURE_FORMATS,
		.kallsyms = "0000000000001000 t schedule\n0000000000002000 t io_schedule\n"
			    "0000000000003000 t end\n",
		.cmdlines = "7 from-cmdlines\n",
		.pages = &pages,
	};
	size_t page = craft_page_begin(&pages, 1000);

	fixture_switch(&event, 6, PREEMPT, 5);
	put(&pages, &event);
	put_numbers(&pages, kind, ID_RAW_ENTER, 5, (const uint32_t[]){0, 0, 0}, 3, NULL, 0);
	put_numbers(&pages, kind, ID_ISSUE, 5, (const uint32_t[]){8U << 20, 64, 8}, 3, "RM\0", 4);
	fixture_switch(&event, 5, D, 6);
	put(&pages, &event);
	put_numbers(&pages, kind, ID_STACK, 5, (const uint32_t[]){1, 0, 0x1004, 0x1004}, 4, NULL,
		    0);
	put_numbers(&pages, kind, ID_IRQ_ENTRY, 6, (const uint32_t[]){9, 4U << 16 | 16}, 2, "ahci",
		    4);
	put_numbers(&pages, kind, ID_IRQ_EXIT, 6, (const uint32_t[]){9, 1}, 2, NULL, 0);
	put_numbers(&pages, kind, ID_SOFTIRQ_ENTRY, 6, (const uint32_t[]){4}, 1, NULL, 0);
	put_numbers(&pages, kind, ID_COMPLETE, 6, (const uint32_t[]){8U << 20, 64, 8}, 3, "RM\0",
		    4);
	fixture_wake(&event, ID_WAKING, 6, 5, 0);
	fixture_flags(&event, 0, 0x10);
	put(&pages, &event);
	put_numbers(&pages, kind, ID_SOFTIRQ_EXIT, 6, (const uint32_t[]){4}, 1, NULL, 0);
	fixture_wake(&event, ID_WAKEUP, 6, 5, 0);
	put(&pages, &event);
	fixture_switch(&event, 6, PREEMPT, 5);
	put(&pages, &event);
	put_numbers(&pages, kind, ID_RAW_EXIT, 5, (const uint32_t[]){0, 0, 0}, 3, NULL, 0);
	put_numbers(&pages, kind, ID_RAW_ENTER, 7, (const uint32_t[]){1, 0, 0}, 3, NULL, 0);
	fixture_switch(&event, 5, 0, 6);
	put(&pages, &event);
	craft_page_end(&pages, page, PAGE, 0);
	/* and a page before which something was lost */
	page = craft_page_begin(&pages, 2000);
	fixture_switch(&event, 6, 0, 5);
	put(&pages, &event);
	craft_page_end_missed(&pages, page, PAGE, 3);
	craft_file(c, &file);
	craft_done(&pages);
}

static void test_everything(void **state)
{
	static const size_t n_rows[_VIEW_MAX] = {
		[VIEW_TASKS] = 2,    [VIEW_RUNQUEUE] = 2, [VIEW_BLOCKED] = 1, [VIEW_PREEMPTORS] = 2,
		[VIEW_WAKERS] = 1,   [VIEW_IRQ] = 1,	  [VIEW_SOFTIRQ] = 1, [VIEW_BLOCK] = 1,
		[VIEW_SYSCALLS] = 1, [VIEW_EVENTS] = 12,  [VIEW_UNITS] = 1,
	};

	FOR_EACH_CRAFT(kind)
	{
		struct fixture f = {.kind = kind};
		struct craft c = kind;

		craft_everything(&c, &kind);
		f.fd = craft_fd(&c);
		for (unsigned view = 0; view < _VIEW_MAX; view++) {
			const struct tables_config config = {.view = (enum table_view)view};
			const struct source source = {"f", f.fd};
			struct tables *tables;

			run_tables(&source, 1, &config, 0, &tables);
			free(rows_of(tables, n_rows[view]));
			assert_int_equal(tables_totals(tables)->lost, 3);
			tables_free(tables);
		}
		close(f.fd);
	}
}

/* For fuzz-analysis: a file of each byte order and size of long */
static int write_seeds(const char *directory)
{
	for (size_t i = 0; i < CRAFT_KINDS; i++) {
		struct craft c = craft_kinds[i];
		char path[4096];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/%s-%u", directory,
			       c.big_endian ? "big" : "little", 8 * c.commit_size);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		craft_everything(&c, &craft_kinds[i]);
		if (fd < 0 || io_write_all(fd, (const char *)c.bytes, c.size) < 0) {
			perror(path);
			return 1;
		}
		close(fd);
		craft_done(&c);
	}
	return 0;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Bytes that are really there: the table of all pids is mostly not */
static size_t in_use(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	size_t all, resident;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu %zu", &all, &resident), 2);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* 100,000 tasks, each with waits of many lengths */
static void test_memory(void **state)
{
	const struct tables_config config = {.view = VIEW_RUNQUEUE};
	struct spans_file *file;
	struct tables *tables;
	struct fixture f;
	size_t before;

	setup(&f, wait_kinds);
	before = in_use();
	assert_int_equal(tables_new(&config, &tables), 0);
	assert_int_equal(spans_file_new(tables_spans(tables), f.decoder, &file, NULL), 0);
	for (uint64_t round = 0; round < 8; round++)
		for (int pid = 1; pid <= 100000; pid++) {
			struct craft c = f.kind;
			struct decode_event event = {
				.ts = round << 34 | ((uint64_t)pid * (uint64_t)pid),
			};

			if (round % 2 == 0)
				fixture_wake(&c, ID_WAKING, 0, pid, 0);
			else
				fixture_switch(&c, pid - 1, S, pid);
			event.data = c.bytes;
			event.size = (uint32_t)c.size;
			decoder_identify(f.decoder, &event);
			assert_int_equal(spans_event(tables_spans(tables), file, &event), 0);
			craft_done(&c);
		}
	printf("100000 tasks: %zu bytes\n", in_use() - before);
	assert_true(in_use() - before <= 64 * MIB);
	assert_int_equal(tables_totals(tables)->left_out, 0);
	spans_file_free(file);
	tables_free(tables);
	teardown(&f);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_wakeups),
		cmocka_unit_test(test_hidden_switches),
		cmocka_unit_test(test_hidden_runs),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_not_recorded),
		cmocka_unit_test(test_two_buffers),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_several_files),
		cmocka_unit_test(test_files_not_recorded),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_why),
		cmocka_unit_test(test_many_runs),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_units),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(test_memory),
#endif
	};

	if (argc == 2 && strncmp(argv[1], "--write-seeds=", 14) == 0)
		return write_seeds(argv[1] + 14);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
