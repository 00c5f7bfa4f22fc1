/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each rule of findings.c: it fires, not just below its threshold, and not where it is usual */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/findings.h"
#include "tests/unit/analysis-fixture.h"

#define MSEC	  UINT64_C(1000000)
#define S	  1U	 /* states: asleep, */
#define D	  2U	 /* blocked, */
#define PREEMPT	  0x100U /* and "R+" */
#define NEXT_PRIO 60	 /* where it is in sched_switch */
#define NORMAL	  120
#define BEGIN	  (1000 * MSEC)

struct fixture {
	struct craft kind;
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	struct findings *findings;
	struct spans_file *file;
	int64_t missed; /* before the next event */
	uint8_t flags;	/* of it */
	struct finding *list;
	size_t n;
};

static void setup(struct fixture *f, const struct findings_config *config)
{
	const struct craft_file file = {
		.formats = fixture_formats,
		.n_formats = FIXTURE_FORMATS,
		.kallsyms = "0000000000001000 t schedule\n0000000000002000 t mutex_lock\n"
			    "0000000000003000 t end\n",
	};
	struct craft c = craft_kinds[0];

	*f = (struct fixture){.kind = craft_kinds[0]};
	craft_file(&c, &file);
	craft_open(&c, &f->fd, &f->dat, &f->decoder);
	f->dat->n_cpus = 4; /* whose regions nobody reads here */
	assert_int_equal(findings_new(config, &f->findings), 0);
	assert_int_equal(spans_file_new(findings_spans(f->findings), f->decoder, &f->file, NULL),
			 0);
}

static void teardown(struct fixture *f)
{
	f->dat->n_cpus = 1;
	free(f->list);
	spans_file_free(f->file);
	findings_free(f->findings);
	craft_close(f->fd, f->dat, f->decoder);
}

static void happens(struct fixture *f, uint64_t ts, uint32_t cpu, struct craft *c)
{
	struct decode_event event = {.ts = ts,
				     .cpu = cpu,
				     .data = c->bytes,
				     .size = (uint32_t)c->size,
				     .missed = f->missed};

	fixture_flags(c, 0, f->flags);
	decoder_identify(f->decoder, &event);
	assert_int_equal(spans_event(findings_spans(f->findings), f->file, &event), 0);
	f->missed = 0;
	f->flags = 0;
	craft_done(c);
}

static void switches_to(struct fixture *f, uint64_t ts, uint32_t cpu, int prev, uint64_t state,
			int next, int prio)
{
	struct craft c = f->kind;

	fixture_switch(&c, prev, state, next);
	craft_set(&c, NEXT_PRIO, 4, (uint32_t)prio);
	happens(f, ts, cpu, &c);
}

static void switches(struct fixture *f, uint64_t ts, uint32_t cpu, int prev, uint64_t state,
		     int next)
{
	switches_to(f, ts, cpu, prev, state, next, NORMAL);
}

static void wakes(struct fixture *f, uint64_t ts, uint32_t cpu, int by, int pid)
{
	struct craft c = f->kind;

	fixture_wake(&c, ID_WAKING, by, pid, (int)cpu);
	happens(f, ts, cpu, &c);
}

static void numbers(struct fixture *f, uint64_t ts, uint32_t cpu, unsigned id, int by, uint32_t a,
		    uint32_t b, uint32_t c)
{
	struct craft bytes = f->kind;

	fixture_numbers(&bytes, id, by, (const uint32_t[]){a, b, c}, 3);
	happens(f, ts, cpu, &bytes);
}

static void request(struct fixture *f, uint64_t ts, unsigned id, uint32_t sector)
{
	struct craft c = f->kind;

	fixture_numbers(&c, id, 5, (const uint32_t[]){8U << 20 | 1, sector, 8}, 3);
	craft_bytes(&c, "WS\0", 4);
	happens(f, ts, 0, &c);
}

/* --- what happens, and takes @nsec */

/* t5, of CPU 0, sleeps until @ts, waits while t6 runs, and goes to sleep again */
static void waits(struct fixture *f, uint64_t ts, uint64_t nsec, int prio)
{
	switches_to(f, ts - 1000, 0, 5, S, 6, prio);
	wakes(f, ts, 0, 6, 5);
	switches(f, ts + nsec, 0, 6, PREEMPT, 5);
	switches(f, ts + nsec + 1000, 0, 5, S, 0);
}

static void play_runqueue(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	waits(f, ts, nsec, NORMAL);
}

static void play_realtime(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	waits(f, ts, nsec, 49);
}

static void play_preempted(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	switches(f, ts - 1000, 0, 0, 0, 5);
	switches(f, ts, 0, 5, PREEMPT, 6);
	switches(f, ts + nsec, 0, 6, S, 5);
	switches(f, ts + nsec + 1000, 0, 5, S, 0);
}

/* As with a CPU quota: preempted, yet nobody runs */
static void play_kept_off(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	switches(f, ts - 1000, 0, 0, 0, 5);
	switches(f, ts, 0, 5, PREEMPT, 0);
	switches(f, ts + nsec, 0, 0, 0, 5);
	switches(f, ts + nsec + 1000, 0, 5, S, 0);
}

static void play_blocked(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	switches(f, ts - 1000, 0, 0, 0, 5);
	switches(f, ts - 1000, 1, 0, 0, 7);
	switches(f, ts, 0, 5, D, 0);
	wakes(f, ts + nsec, 0, 7, 5);
	switches(f, ts + nsec + 10, 0, 0, 0, 5);
	switches(f, ts + nsec + 1000, 0, 5, S, 0);
}

/* Four tasks, the first of which is blocked for the longest */
static void play_convoy(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	switches(f, ts - 1000, 1, 0, 0, 7);
	for (int i = 0; i < 4; i++) {
		switches(f, ts + 10 * (uint64_t)i, 0, 0, 0, 11 + i);
		switches(f, ts + 10 * (uint64_t)i + 5, 0, 11 + i, D, 0);
	}
	for (int i = 0; i < 4; i++) {
		uint64_t at = ts + 10 * (uint64_t)i + 5 + nsec - (i > 0);

		wakes(f, at, 1, 7, 11 + i);
		switches(f, at, 0, 0, 0, 11 + i);
		switches(f, at, 0, 11 + i, S, 0);
	}
}

static void play_irq(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	numbers(f, ts, 1, ID_IRQ_ENTRY, 0, 9, 0, 0);
	numbers(f, ts + nsec, 1, ID_IRQ_EXIT, 0, 9, 0, 0);
}

static void play_softirq(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	numbers(f, ts, 1, ID_SOFTIRQ_ENTRY, 0, 3, 0, 0);
	numbers(f, ts + nsec, 1, ID_SOFTIRQ_EXIT, 0, 3, 0, 0);
}

/* A hundred in a window, of @nsec in all */
static void play_storm(struct fixture *f, uint64_t ts, uint64_t nsec,
		       void (*one)(struct fixture *f, uint64_t ts, uint64_t nsec))
{
	uint64_t left = nsec;

	for (unsigned i = 100; i > 0; i--) {
		uint64_t part = left / i;

		one(f, ts, part);
		left -= part;
		ts += MAX(part, MSEC / 2) + MSEC / 10;
	}
	/* by the next one it is over */
	one(f, ts + 200 * MSEC, 0);
}

static void play_irq_storm(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	play_storm(f, ts, nsec, play_irq);
}

static void play_softirq_storm(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	play_storm(f, ts, nsec, play_softirq);
}

static void play_block(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	request(f, ts, ID_ISSUE, 64);
	request(f, ts + nsec, ID_COMPLETE, 64);
}

/* It sleeps in between, which does not count */
static void play_syscall(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	switches(f, ts - 1000, 0, 0, 0, 5);
	numbers(f, ts, 0, ID_CALL_ENTER, 5, 0, 0, 0);
	switches(f, ts + 100, 0, 5, S, 0);
	wakes(f, ts + 700 * MSEC, 0, 0, 5);
	switches(f, ts + 700 * MSEC, 0, 0, 0, 5);
	numbers(f, ts + 700 * MSEC + nsec - 100, 0, ID_CALL_EXIT, 5, 0, 0, 0);
	switches(f, ts + 800 * MSEC + nsec, 0, 5, S, 0);
}

static void play_oom(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	numbers(f, ts + nsec, 0, ID_OOM, 7, 5, 0, 0);
}

static void play_loss(struct fixture *f, uint64_t ts, uint64_t nsec)
{
	numbers(f, ts, 2, ID_SOFTIRQ_ENTRY, 0, 3, 0, 0);
	f->missed = 41;
	numbers(f, ts + nsec, 2, ID_SOFTIRQ_EXIT, 0, 3, 0, 0);
}

/* The finding by this rule; NULL: there is none */
static const struct finding *find(const struct fixture *f, enum finding_rule rule)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->list[i].rule == rule)
			return &f->list[i];
	return NULL;
}

static void end(struct fixture *f)
{
	assert_int_equal(findings_list(f->findings, &f->list, &f->n), 0);
	for (size_t i = 1; i < f->n; i++)
		assert_true(f->list[i - 1].score >= f->list[i].score);
}

typedef void play_function(struct fixture *f, uint64_t ts, uint64_t nsec);

static const struct finding *play(struct fixture *f, enum finding_rule rule, play_function *what,
				  uint64_t nsec)
{
	setup(f, &(struct findings_config){});
	what(f, BEGIN, nsec);
	/* the recording is longer than that */
	numbers(f, BEGIN + 3000 * MSEC, 3, ID_SOFTIRQ_ENTRY, 0, 3, 0, 0);
	end(f);
	return find(f, rule);
}

static const struct rule {
	enum finding_rule rule;
	play_function *play;
	const char *victim, *blame; /* "": none */
	enum blame_kind kind;
} rules[] = {
	{RULE_RUNQUEUE, play_runqueue, "t5", "t6", BLAME_TASK},
	{RULE_PREEMPTED, play_preempted, "t5", "t6", BLAME_TASK},
	{RULE_REALTIME, play_realtime, "t5", "t6", BLAME_TASK},
	{RULE_KEPT_OFF, play_kept_off, "t5", "", BLAME_IDLE},
	{RULE_BLOCKED, play_blocked, "t5", "t7", BLAME_WAKER},
	{RULE_CONVOY, play_convoy, "t11", "t7", BLAME_WAKER},
	{RULE_IRQ, play_irq, "", "", BLAME_TASK},
	{RULE_IRQ_STORM, play_irq_storm, "", "", BLAME_TASK},
	{RULE_SOFTIRQ, play_softirq, "", "", BLAME_TASK},
	{RULE_SOFTIRQ_STORM, play_softirq_storm, "", "", BLAME_TASK},
	{RULE_BLOCK, play_block, "", "", BLAME_TASK},
	{RULE_SYSCALL, play_syscall, "t5", "", BLAME_TASK},
	{RULE_LOSS, play_loss, "", "", BLAME_TASK},
};

static void test_thresholds(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *rule = &rules[i];
		const struct finding_rule_facts *facts = finding_rule_facts(rule->rule);
		const struct finding *finding;
		struct fixture f;

		finding = play(&f, rule->rule, rule->play, facts->least);
		if (!finding)
			fail_msg("%s does not fire at its threshold", facts->name);
		assert_string_equal(finding->victim.comm, rule->victim);
		if (rule->blame[0] || rule->kind == BLAME_IDLE) {
			assert_true(finding->n_blames > 0);
			assert_int_equal(finding->blames[0].kind, rule->kind);
			assert_string_equal(finding->blames[0].who.comm, rule->blame);
			assert_in_range(finding->blames[0].nsec, finding->nsec * 9 / 10,
					4 * finding->nsec);
		}
		assert_non_null(facts->unknown);
		teardown(&f);

		finding = play(&f, rule->rule, rule->play, facts->least - 1);
		if (finding)
			fail_msg("%s fires just below its threshold, for %" PRIu64, facts->name,
				 finding->nsec);
		teardown(&f);
	}
}

/* What is usual in the recording is none, as long as it is not very long */
static void test_usual(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *rule = &rules[i];
		const struct finding_rule_facts *facts = finding_rule_facts(rule->rule);
		const uint64_t nsec = facts->least;
		const struct finding *finding;
		struct fixture f;

		if (facts->times == 0 || rule->rule == RULE_IRQ_STORM ||
		    rule->rule == RULE_SOFTIRQ_STORM)
			continue;
		setup(&f, &(struct findings_config){});
		for (unsigned j = 0; j < 20; j++)
			rule->play(&f, BEGIN + j * 1013 * MSEC, nsec + j);
		end(&f);
		if (find(&f, rule->rule))
			fail_msg("%s fires for what is usual", facts->name);
		teardown(&f);

		setup(&f, &(struct findings_config){});
		for (unsigned j = 0; j < 20; j++)
			rule->play(&f, BEGIN + j * 1013 * MSEC, nsec);
		rule->play(&f, BEGIN + 30000 * MSEC, FINDING_ANYWAY * nsec);
		end(&f);
		finding = find(&f, rule->rule);
		if (!finding)
			fail_msg("%s does not fire for what is long by any measure", facts->name);
		assert_in_range(finding->usual, nsec, nsec * 5 / 4 + 1000);
		teardown(&f);

		/* well below that, but so many times what is usual */
		setup(&f, &(struct findings_config){});
		for (unsigned j = 0; j < 20; j++)
			rule->play(&f, BEGIN + j * 1013 * MSEC, nsec / facts->times / 2);
		rule->play(&f, BEGIN + 30000 * MSEC, nsec);
		end(&f);
		finding = find(&f, rule->rule);
		if (!finding)
			fail_msg("%s does not fire for what is unusual", facts->name);
		assert_int_equal(
			finding->nsec - (rule->rule == RULE_SYSCALL ? 700 * MSEC - 100 : 0), nsec);
		teardown(&f);
	}
}

/* A storm counts beside the rest of the recording */
static void test_storms(void **state)
{
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	for (unsigned i = 0; i < 10; i++)
		play_irq_storm(&f, BEGIN + i * 300 * MSEC, 26 * MSEC);
	end(&f);
	assert_null(find(&f, RULE_IRQ_STORM));
	teardown(&f);

	/* more than half of the time is one whatever else there is; two windows make one storm */
	setup(&f, &(struct findings_config){});
	for (unsigned i = 0; i < 10; i++)
		play_irq_storm(&f, BEGIN + i * 300 * MSEC, 26 * MSEC);
	for (uint64_t i = 0; i < 200; i++)
		play_irq(&f, BEGIN + 5000 * MSEC + i * MSEC, 6 * MSEC / 10);
	play_irq(&f, BEGIN + 5300 * MSEC, 0);
	end(&f);
	finding = find(&f, RULE_IRQ_STORM);
	assert_non_null(finding);
	assert_int_equal(finding->nsec, 120 * MSEC);
	assert_int_equal(finding->count, 200);
	assert_int_equal(finding->from, BEGIN + 5000 * MSEC);
	assert_int_equal(finding->to, BEGIN + 5200 * MSEC);
	assert_int_equal(finding->label->number, 9);
	teardown(&f);
}

static void test_oom(void **state)
{
	struct fixture f;
	const struct finding *finding = play(&f, RULE_OOM, play_oom, 0);

	assert_non_null(finding);
	assert_ptr_equal(finding, f.list); /* before all else */
	assert_int_equal(finding->victim.task->pid, 5);
	assert_int_equal(finding->blames[0].who.task->pid, 7);
	teardown(&f);
}

static void test_loss(void **state)
{
	const struct finding *finding;
	struct fixture f;

	finding = play(&f, RULE_LOSS, play_loss, 5 * MSEC);
	assert_int_equal(finding->cpu, 2);
	assert_int_equal(finding->count, 1);
	assert_int_equal(finding->total, 41);
	teardown(&f);

	/* what was overwritten before the recording begins is none */
	setup(&f, &(struct findings_config){});
	f.missed = -1;
	play_irq(&f, BEGIN, 1);
	f.missed = -1;
	play_irq(&f, BEGIN + MSEC, 1);
	end(&f);
	finding = find(&f, RULE_LOSS);
	assert_non_null(finding);
	assert_int_equal(finding->count, 1);
	assert_int_equal(finding->nsec, MSEC - 1);
	teardown(&f);
}

/* All that one real-time task keeps from running is one finding */
static void test_realtime_victims(void **state)
{
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	switches_to(&f, BEGIN, 0, 0, 0, 6, 49);
	for (int pid = 20; pid < 26; pid++)
		wakes(&f, BEGIN + (uint64_t)pid, 0, 6, pid);
	switches(&f, BEGIN + 50 * MSEC, 0, 6, S, 20);
	for (int pid = 20; pid < 25; pid++)
		switches(&f, BEGIN + 50 * MSEC + (uint64_t)pid, 0, pid, S, pid + 1);
	end(&f);
	assert_int_equal(f.n, 1);
	finding = find(&f, RULE_REALTIME);
	assert_non_null(finding);
	assert_int_equal(finding->n_others, 5);
	assert_int_equal(finding->blames[0].prio, 49);
	teardown(&f);
}

/* Each name counts once, also of those that are not listed, though it waited in both ways */
static void test_names_once(void **state)
{
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	switches_to(&f, BEGIN, 0, 0, 0, 6, 49);
	for (int pid = 20; pid < 30; pid++)
		wakes(&f, BEGIN + (uint64_t)pid, 0, 6, pid);
	switches(&f, BEGIN + 50 * MSEC, 0, 6, S, 20);
	for (int pid = 20; pid < 30; pid++)
		switches(&f, BEGIN + 50 * MSEC + (uint64_t)pid, 0, pid, S, pid < 29 ? pid + 1 : 0);
	for (int pid = 20; pid < 30; pid++) {
		const uint64_t ts = BEGIN + (uint64_t)pid * 100 * MSEC;

		switches(&f, ts, 0, 0, 0, pid);
		switches_to(&f, ts + MSEC, 0, pid, PREEMPT, 6, 49);
		switches(&f, ts + 51 * MSEC, 0, 6, S, pid);
		switches(&f, ts + 52 * MSEC, 0, pid, S, 0);
	}
	end(&f);
	finding = find(&f, RULE_REALTIME);
	assert_non_null(finding);
	assert_int_equal(finding->n_others, 9);
	teardown(&f);
}

/* A deadline task is more urgent than any real-time one */
static void test_deadline(void **state)
{
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	switches(&f, BEGIN, 0, 0, 0, 5);
	switches_to(&f, BEGIN + MSEC, 0, 5, PREEMPT, 6, -1);
	switches(&f, BEGIN + 31 * MSEC, 0, 6, S, 5);
	end(&f);
	finding = find(&f, RULE_REALTIME);
	assert_non_null(finding);
	assert_int_equal(finding->blames[0].prio, -1);
	teardown(&f);
}

/* What was slept before a system call is no part of it */
static void test_call(void **state)
{
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	switches(&f, BEGIN, 0, 0, 0, 5);
	switches(&f, BEGIN + MSEC, 0, 5, S, 0);
	wakes(&f, BEGIN + 601 * MSEC, 0, 0, 5);
	switches(&f, BEGIN + 601 * MSEC, 0, 0, 0, 5);
	numbers(&f, BEGIN + 602 * MSEC, 0, ID_RAW_ENTER, 5, 74, 0, 0);
	switches(&f, BEGIN + 603 * MSEC, 0, 5, S, 0);
	wakes(&f, BEGIN + 703 * MSEC, 0, 0, 5);
	switches(&f, BEGIN + 703 * MSEC, 0, 0, 0, 5);
	numbers(&f, BEGIN + 1102 * MSEC, 0, ID_RAW_EXIT, 5, 74, 0, 0);
	end(&f);
	finding = find(&f, RULE_SYSCALL);
	assert_non_null(finding);
	assert_int_equal(finding->nsec, 500 * MSEC);
	teardown(&f);
}

/* A quota shows although others run meanwhile: most waits end with its period, or some milliseconds
 * later */
static void test_quota(void **state)
{
	const struct finding *finding;
	struct fixture f;

	for (unsigned odd = 0; odd < 2; odd++) {
		setup(&f, &(struct findings_config){});
		switches(&f, BEGIN, 0, 0, 0, 5);
		for (uint64_t i = 1; i <= 6; i++) {
			uint64_t end = BEGIN + i * 100 * MSEC + odd * i * i * 7 * MSEC;

			switches(&f, end - 80 * MSEC, 0, 5, PREEMPT, 6);
			switches(&f, end + i % 2 * 6 * MSEC + (i == 3) * 30 * MSEC, 0, 6, S, 5);
		}
		end(&f);
		finding = find(&f, odd ? RULE_PREEMPTED : RULE_KEPT_OFF);
		assert_non_null(finding);
		assert_int_equal(finding->beats, !odd);
		assert_null(find(&f, odd ? RULE_KEPT_OFF : RULE_PREEMPTED));
		teardown(&f);
	}
}

/* Many short-lived tasks of a name are one culprit; handlers are told apart from whom they
 * interrupt */
static void test_blame(void **state)
{
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	switches(&f, BEGIN - 1000, 0, 5, S, 6);
	wakes(&f, BEGIN, 0, 6, 5);
	play_irq(&f, BEGIN, 0);
	numbers(&f, BEGIN + 1 * MSEC, 0, ID_IRQ_ENTRY, 6, 9, 0, 0);
	numbers(&f, BEGIN + 3 * MSEC, 0, ID_IRQ_EXIT, 6, 9, 0, 0);
	numbers(&f, BEGIN + 3 * MSEC, 0, ID_SOFTIRQ_ENTRY, 6, 3, 0, 0);
	numbers(&f, BEGIN + 4 * MSEC, 0, ID_IRQ_ENTRY, 6, 9, 0, 0);
	numbers(&f, BEGIN + 5 * MSEC, 0, ID_IRQ_EXIT, 6, 9, 0, 0);
	numbers(&f, BEGIN + 6 * MSEC, 0, ID_SOFTIRQ_EXIT, 6, 3, 0, 0);
	switches(&f, BEGIN + 16 * MSEC, 0, 6, PREEMPT, 0);
	switches(&f, BEGIN + 20 * MSEC, 0, 0, 0, 5);
	end(&f);
	finding = find(&f, RULE_RUNQUEUE);
	assert_non_null(finding);
	assert_int_equal(finding->nsec, 20 * MSEC);
	assert_int_equal(finding->n_blames, 4);
	assert_int_equal(finding->blames[0].kind, BLAME_TASK);
	assert_int_equal(finding->blames[0].nsec, 11 * MSEC);
	assert_int_equal(finding->blames[1].kind, BLAME_IDLE);
	assert_int_equal(finding->blames[1].nsec, 4 * MSEC);
	assert_int_equal(finding->blames[2].kind, BLAME_IRQ);
	assert_int_equal(finding->blames[2].nsec, 3 * MSEC);
	assert_int_equal(finding->blames[3].kind, BLAME_SOFTIRQ);
	assert_int_equal(finding->blames[3].nsec, 2 * MSEC);
	teardown(&f);
}

/* What a blocked task waited for, as far as events tell */
static void test_blocked_on(void **state)
{
	struct craft c;
	const uint64_t callers[] = {0x2010, 0x1004, 0xffffffffffffffff};
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	switches(&f, BEGIN - 1000, 0, 0, 0, 5);
	numbers(&f, BEGIN - 500, 0, ID_CALL_ENTER, 5, 0, 0, 0);
	request(&f, BEGIN, ID_ISSUE, 64);
	switches(&f, BEGIN, 0, 5, D, 0);
	c = f.kind;
	fixture_numbers(&c, ID_STACK, 5, (const uint32_t[]){2, 0}, 2);
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		craft_number(&c, f.dat->long_size, callers[i]);
	happens(&f, BEGIN + 1, 0, &c);
	request(&f, BEGIN + 60 * MSEC - 10, ID_COMPLETE, 64);
	f.flags = 0x10;
	wakes(&f, BEGIN + 60 * MSEC, 0, 0, 5);
	end(&f);
	finding = find(&f, RULE_BLOCKED);
	assert_non_null(finding);
	assert_string_equal(finding->on, "a mutex");
	assert_string_equal(finding->call->text, "read");
	assert_string_equal(finding->request->text, "write");
	assert_int_equal(finding->request_nsec, 60 * MSEC - 10);
	assert_int_equal(finding->blames[0].waker, SPAN_WAKER_SOFTIRQ);
	teardown(&f);

	/* without any of that: who ended it, and that this one was blocked, too */
	setup(&f, &(struct findings_config){});
	switches(&f, BEGIN, 0, 5, D, 7);
	switches(&f, BEGIN + 10 * MSEC, 0, 7, D, 0);
	wakes(&f, BEGIN + 80 * MSEC, 0, 0, 7);
	wakes(&f, BEGIN + 90 * MSEC, 1, 7, 5);
	end(&f);
	finding = find(&f, RULE_BLOCKED);
	assert_non_null(finding);
	assert_string_equal(finding->victim.comm, "t5");
	assert_null(finding->on);
	assert_null(finding->request);
	assert_int_equal(finding->waker_blocked, 70 * MSEC);
	teardown(&f);
}

/* A wait that has not ended yet may be what the snapshot was taken for */
static void test_open(void **state)
{
	struct craft renamed = craft_kinds[0];
	const struct finding *finding;
	struct fixture f;

	setup(&f, &(struct findings_config){});
	switches(&f, BEGIN, 0, 5, D, 6);
	wakes(&f, BEGIN + 50 * MSEC, 0, 6, 8);
	play_irq(&f, BEGIN + 100 * MSEC, 0);
	end(&f);
	finding = find(&f, RULE_BLOCKED);
	assert_non_null(finding);
	assert_true(finding->open);
	assert_int_equal(finding->nsec, 100 * MSEC);
	assert_int_equal(finding->n_blames, 0);
	finding = find(&f, RULE_RUNQUEUE);
	assert_non_null(finding);
	assert_true(finding->open);
	assert_string_equal(finding->victim.comm, "t8");
	assert_string_equal(finding->blames[0].who.comm, "t6");
	assert_int_equal(finding->blames[0].nsec, 50 * MSEC);
	teardown(&f);

	/* unless nobody is known to have kept it from running */
	setup(&f, &(struct findings_config){});
	switches(&f, BEGIN, 1, 0, 0, 6);
	wakes(&f, BEGIN + 50 * MSEC, 0, 6, 8);
	play_irq(&f, BEGIN + 100 * MSEC, 0);
	end(&f);
	assert_int_equal(f.n, 0);
	teardown(&f);

	/* one that ran has another name by then, which is one more than there was room for (ASan)
	 */
	setup(&f, &(struct findings_config){});
	wakes(&f, BEGIN, 0, 0, 8);
	switches(&f, BEGIN + 60 * MSEC, 0, 0, 0, 6);
	switches(&f, BEGIN + 70 * MSEC, 0, 6, S, 7);
	fixture_wake(&renamed, ID_WAKING, 7, 6, 1);
	craft_set(&renamed, 8, 1, 'n');
	happens(&f, BEGIN + 99 * MSEC, 0, &renamed);
	play_irq(&f, BEGIN + 100 * MSEC, 0);
	end(&f);
	assert_int_equal(f.n, 0);
	teardown(&f);
}

static void test_options(void **state)
{
	const struct own_task backup = {6, 6, 1, "n", "/system.slice/backup.service"};
	const struct finding *finding;
	struct who *who;
	struct fixture f;

	/* what is too short by the rule */
	assert_int_equal(who_new(NULL, NULL, false, &who), 0);
	assert_int_equal(who_tell(who, &backup, 0), 0);
	setup(&f, &(struct findings_config){.min = MSEC / 2, .who = who});
	waits(&f, BEGIN, MSEC / 2, NORMAL);
	end(&f);
	finding = find(&f, RULE_RUNQUEUE);
	assert_non_null(finding);
	assert_null(finding_unit(&finding->victim));
	assert_string_equal(finding_unit(&finding->blames[0].who), "backup.service");
	teardown(&f);
	who_free(who);
	setup(&f, &(struct findings_config){.min = 30 * MSEC});
	waits(&f, BEGIN, 29 * MSEC, NORMAL);
	end(&f);
	assert_int_equal(f.n, 0);
	teardown(&f);
	/* of others */
	setup(&f, &(struct findings_config){.filter.pid = 4});
	waits(&f, BEGIN, 29 * MSEC, NORMAL);
	end(&f);
	assert_int_equal(f.n, 0);
	teardown(&f);
	/* a storm is no unit's */
	setup(&f, &(struct findings_config){.filter.places = true});
	play_irq_storm(&f, BEGIN, 80 * MSEC);
	end(&f);
	assert_int_equal(f.n, 0);
	teardown(&f);
}

/* What a snapshot may lack events of, at its beginning */
static void test_from(void **state)
{
	struct fixture f;

	/* on CPU 1 it goes on; between, on CPU 0, it may have run and slept */
	setup(&f, &(struct findings_config){});
	spans_file_from(f.file, BEGIN + 60 * MSEC);
	switches(&f, BEGIN, 0, 5, PREEMPT, 6);
	switches(&f, BEGIN + 50 * MSEC, 1, 0, S, 5);
	switches(&f, BEGIN + 51 * MSEC, 1, 5, S, 0);
	end(&f);
	assert_int_equal(f.n, 0);
	teardown(&f);
	/* the same if it ends behind */
	setup(&f, &(struct findings_config){});
	spans_file_from(f.file, BEGIN + 40 * MSEC);
	switches(&f, BEGIN, 0, 5, PREEMPT, 6);
	switches(&f, BEGIN + 50 * MSEC, 1, 0, S, 5);
	end(&f);
	assert_int_equal(f.n, 0);
	teardown(&f);
	/* and what begins there is known */
	setup(&f, &(struct findings_config){});
	spans_file_from(f.file, BEGIN - 10 * MSEC);
	switches(&f, BEGIN, 0, 5, PREEMPT, 6);
	switches(&f, BEGIN + 50 * MSEC, 0, 6, S, 5);
	end(&f);
	assert_non_null(find(&f, RULE_PREEMPTED));
	teardown(&f);
}

static void test_totals(void **state)
{
	struct findings_missing missing[_KNOWN_MAX];
	const struct findings_cpu *cpus;
	struct findings_task *tasks;
	struct fixture f;
	size_t n;

	setup(&f, &(struct findings_config){});
	assert_int_equal(findings_missing(f.findings, missing), 7);
	waits(&f, BEGIN, 10 * MSEC, NORMAL);
	switches(&f, BEGIN + 20 * MSEC, 0, 0, 0, 6);
	end(&f);
	assert_int_equal(findings_missing(f.findings, missing), 5);
	assert_string_equal(missing[0].event, "irq:irq_handler_entry");
	assert_string_equal(missing[0].add, "Event=irq");
	assert_int_equal(findings_cpus(f.findings, &cpus), 1);
	assert_int_equal(cpus[0].busy, 10 * MSEC + 1000 + 1000);
	assert_int_equal(cpus[0].idle, 10 * MSEC - 1000);
	assert_int_equal(cpus[0].waited_max, 10 * MSEC);
	assert_int_equal(findings_tasks(f.findings, &tasks, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(tasks[0].comm, "t6");
	assert_int_equal(tasks[0].run, 10 * MSEC + 1000);
	assert_int_equal(tasks[1].waited_max, 10 * MSEC);
	free(tasks);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_usual),
		cmocka_unit_test(test_storms),
		cmocka_unit_test(test_oom),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_names_once),
		cmocka_unit_test(test_realtime_victims),
		cmocka_unit_test(test_blame),
		cmocka_unit_test(test_blocked_on),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_from),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_quota),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
