/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which conditions on latencies there are, and that each is fulfilled at its limit and just once */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/latency.h"
#include "config/latency.h"
#include "tests/unit/analysis-fixture.h"

#define MSEC   (NSEC_PER_SEC / 1000)
#define READ   0U /* of x86-64: read */
#define FSYNC  74U
#define DEVICE (8U << 20 | 1)

/* --- what may be written */

static void parse(const char *text, struct latency_config *ret)
{
	struct fault why;

	if (latency_parse(text, true, ret, &why) < 0)
		fail_msg("%s: %s", text, why.text);
}

static void test_forms(void **state)
{
	/* as they are written, and as they are read */
	static const char *const texts[][2] = {
		{"runqueue 20ms", "runqueue 20ms"},
		{"blocked 2s", "blocked 2s"},
		{"irq 1500us", "irq 1500us"},
		{"softirq 0.5s task=ksoftirqd/*", "softirq 500ms task=ksoftirqd/*"},
		{" runqueue\tunit=postgresql.service  20ms task=p", "runqueue 20ms task=p "
								    "unit=postgresql.service"},
		{"block 500ms", "block 500ms"},
		{"block dev=259:1048575 1", "block 1s dev=259:1048575"},
		{"syscall fsync 1s unit=a.service", "syscall fsync 1s unit=a.service"},
		{"a:b a:c key=dev,sector 5ms", "a:b a:c 5ms key=dev,sector"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct latency_config latency;
		_cleanup_free_ char *text = NULL;

		parse(texts[i][0], &latency);
		text = latency_format(&latency, latency.nsec);
		assert_string_equal(text, texts[i][1]);
		latency_done(&latency);
	}
}

static void test_refusals(void **state)
{
#define KINDS                                                                           \
	"must begin with runqueue, blocked, irq, softirq, block, syscall, or an event " \
	"SYSTEM:NAME"
#define EVENTS                                                                               \
	"must be two events and a time, as in block:block_rq_issue block:block_rq_complete " \
	"key=dev,sector 500ms"
#define KEY "key=FIELD is missing: the field by which two events belong together"
	static const char *const texts[][2] = {
		{"", KINDS},
		{"runqeue 20ms", KINDS ", did you mean 'runqueue'?"},
		{"wibble 20ms", KINDS},
		{"runqueue", "a time is missing, as in 20ms"},
		{"runqueue 0", "the time must be at least 1us"},
		{"runqueue 0ms", "the time must be at least 1us"},
		{"runqueue 20", NULL},
		{"runqueue soon", "\"soon\" is not a time span, as in 20ms"},
		{"runqueue -5ms", "\"-5ms\" is not a time span, as in 20ms"},
		{"runqueue 9999999999999s", "\"9999999999999s\" is not a time span, as in 20ms"},
		{"runqueue 20ms 30ms", "two time spans, the second one is \"30ms\""},
		{"runqueue 20ms cpu=1",
		 "unknown \"cpu=1\", there are task=, unit=, dev=, key= and way="},
		{"runqueue 20ms dev=8:0", "dev= is for block only"},
		{"runqueue 20ms key=pid", "key= is for two events only"},
		{"runqueue 20ms task=", "a value is missing after task="},
		{"runqueue 20ms task=a task=b", "task= is there twice"},
		{"runqueue 20ms unit=a/b",
		 "not the name of a unit, or a pattern of names as in *.service"},
		{"block 20ms task=a",
		 "task= is for runqueue, blocked, irq, softirq and syscall only"},
		{"block 20ms unit=a.service",
		 "unit= is for runqueue, blocked, irq, softirq and syscall only"},
		{"block 20ms dev=sda",
		 "dev=sda: must be MAJOR:MINOR, as in dev=8:0; lsblk(8) shows them"},
		{"block 20ms dev=8:0x",
		 "dev=8:0x: must be MAJOR:MINOR, as in dev=8:0; lsblk(8) shows them"},
		{"block 20ms dev=4096:0",
		 "dev=4096:0: must be MAJOR:MINOR, as in dev=8:0; lsblk(8) shows them"},
		{"syscall", "a system call is missing, as in syscall fsync 1s"},
		{"syscall task=a 1s", "a system call is missing, as in syscall fsync 1s"},
		{"syscall fsnc 1s", "no system call \"fsnc\", did you mean 'fsync' or 'msync'?"},
		{"syscall 1s", "no system call \"1s\""},
		{"a:b 5ms", EVENTS},
		{"a:b", EVENTS},
		{"a:b a:c 5ms", KEY},
		{"a:b a:c key=1x 5ms",
		 "key=1x: must be fields of both events, as in key=dev,sector"},
		{"a:b a:c key=x, 5ms",
		 "key=x,: must be fields of both events, as in key=dev,sector"},
		{"a:b a:c key=a,b,c,d,e 5ms", "key=a,b,c,d,e: at most 4 fields"},
		{"a:b a:c key=x", "a time is missing, as in 20ms"},
		{"a: a:c key=x 5ms", "not an event name after a:"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct latency_config latency;
		struct fault why = {};
		int r = latency_parse(texts[i][0], true, &latency, &why);

		if (texts[i][1]) {
			assert_int_equal(r, -EINVAL);
			assert_string_equal(why.text, texts[i][1]);
		} else {
			assert_int_equal(r, 0);
			latency_done(&latency);
		}
	}
}

/* For a dry run none is needed */
static void test_no_time(void **state)
{
	struct latency_config latency;
	struct fault why;
	_cleanup_free_ char *text = NULL;

	assert_int_equal(latency_parse("syscall read", false, &latency, &why), 0);
	assert_int_equal(latency.nsec, 0);
	text = latency_format(&latency, 0);
	assert_string_equal(text, "syscall read");
	latency_done(&latency);
	assert_int_equal(latency_parse("runqueue 0", false, &latency, &why), -EINVAL);
}

/* --- when they are fulfilled */

struct fixture {
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	struct latency_config condition;
	struct sources_facts facts;
	struct who *who;
	struct latency *latency;
	struct spans_file *file;
	unsigned hits;
	struct span last;
};

static int on_hit(void *userdata, size_t condition, const struct span *span)
{
	struct fixture *f = userdata;

	assert_int_equal(condition, 0);
	f->hits++;
	f->last = *span;
	return 0;
}

static void setup_file(struct fixture *f)
{
	const struct craft_file file = {
		.formats = fixture_formats, .n_formats = FIXTURE_FORMATS, .cmdlines = "5 t5\n"};
	struct craft c = craft_kinds[0];

	*f = (struct fixture){.facts.machine = MACHINE_X86_64};
	craft_file(&c, &file);
	craft_open(&c, &f->fd, &f->dat, &f->decoder);
	f->dat->n_cpus = 4; /* whose regions nobody reads here */
}

static void close_file(struct fixture *f)
{
	f->dat->n_cpus = 1;
	craft_close(f->fd, f->dat, f->decoder);
}

static void setup(struct fixture *f, const char *condition)
{
	struct latency_setup setup = {.n = 1, .measure = true, .on_hit = on_hit, .userdata = f};
	struct fault why;

	setup_file(f);
	parse(condition, &f->condition);
	assert_int_equal(who_new(NULL, NULL, false, &f->who), 0);
	setup.conditions = &f->condition;
	setup.who = f->who;
	setup.facts = &f->facts;
	assert_int_equal(latency_new(&setup, &f->latency), 0);
	assert_int_equal(spans_file_new(latency_spans(f->latency), f->decoder, &f->file, &why), 0);
}

static void teardown(struct fixture *f)
{
	spans_file_free(f->file);
	latency_free(f->latency);
	who_free(f->who);
	latency_done(&f->condition);
	close_file(f);
}

static void happens(struct fixture *f, uint64_t ts, struct craft *c)
{
	struct decode_event event = {.ts = ts, .data = c->bytes, .size = (uint32_t)c->size};

	decoder_identify(f->decoder, &event);
	assert_int_equal(spans_event(latency_spans(f->latency), f->file, &event), 0);
	craft_done(c);
}

static void switches(struct fixture *f, uint64_t ts, int prev, uint64_t state, int next)
{
	struct craft c = craft_kinds[0];

	fixture_switch(&c, prev, state, next);
	happens(f, ts, &c);
}

static void wakes(struct fixture *f, uint64_t ts, int pid)
{
	struct craft c = craft_kinds[0];

	fixture_wake(&c, ID_WAKING, 0, pid, 0);
	happens(f, ts, &c);
}

static void numbers(struct fixture *f, uint64_t ts, unsigned id, uint32_t a, uint32_t b)
{
	struct craft c = craft_kinds[0];

	fixture_numbers(&c, id, 5, (const uint32_t[]){a, b, 8}, 3);
	craft_bytes(&c, "R\0\0", 4);
	happens(f, ts, &c);
}

/* Something of this kind begins, or ends */
static void turn(struct fixture *f, enum latency_kind kind, uint64_t ts, bool begins)
{
	switch (kind) {
	case LATENCY_RUNQUEUE:
		if (begins) {
			switches(f, ts - 1, 5, 1, 0);
			wakes(f, ts, 5);
		} else {
			switches(f, ts, 0, 0, 5);
		}
		return;
	case LATENCY_BLOCKED:
		if (begins) {
			switches(f, ts, 5, 2, 0);
		} else {
			wakes(f, ts, 5);
			switches(f, ts + 1, 0, 0, 5);
		}
		return;
	case LATENCY_IRQ:
		numbers(f, ts, begins ? ID_IRQ_ENTRY : ID_IRQ_EXIT, 9, 0);
		return;
	case LATENCY_SOFTIRQ:
		numbers(f, ts, begins ? ID_SOFTIRQ_ENTRY : ID_SOFTIRQ_EXIT, 3, 0);
		return;
	case LATENCY_BLOCK:
		numbers(f, ts, begins ? ID_ISSUE : ID_COMPLETE, DEVICE, 64);
		return;
	case LATENCY_SYSCALL:
		numbers(f, ts, begins ? ID_RAW_ENTER : ID_RAW_EXIT, FSYNC, 0);
		return;
	case LATENCY_PAIR:
		numbers(f, ts, begins ? ID_MIGRATE : ID_OOM, 7, 1);
		return;
	case _LATENCY_MAX:
		break;
	}
	fail();
}

static const char *const conditions[] = {"runqueue 20ms",
					 "blocked 20ms",
					 "irq 20ms",
					 "softirq 20ms",
					 "block 20ms",
					 "syscall fsync 20ms",
					 "sched:sched_migrate_task oom:mark_victim key=pid 20ms"};

/* Of 1,000 from 19 ms to 21 ms exactly those of 20 ms or more */
static void test_thousand(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(conditions); k++) {
		const struct latency_facts *facts;
		unsigned wanted = 0;
		struct fixture f;

		setup(&f, conditions[k]);
		for (uint64_t i = 0; i < 1000; i++) {
			/* long and short ones mixed: 377 and 1,000 have no common divisor */
			const uint64_t nsec = 19 * MSEC + i * 377 % 1000 * (2 * MSEC / 1000);
			const uint64_t from = (i + 1) * NSEC_PER_SEC;

			turn(&f, f.condition.kind, from, true);
			turn(&f, f.condition.kind, from + nsec, false);
			wanted += nsec >= 20 * MSEC;
			assert_int_equal(f.hits, wanted);
		}
		assert_int_equal(wanted, 500);
		facts = latency_facts(f.latency, 0);
		assert_int_equal(facts->measure.count, 1000);
		assert_int_equal(facts->measure.max, 21 * MSEC - 2 * MSEC / 1000);
		assert_int_equal(facts->hits, 500);
		assert_in_range(facts->snapshots, 400, 500);
		teardown(&f);
	}
}

/* What a condition takes is looked at, and of system calls just the one it is about */
static void test_picked(void **state)
{
	static const unsigned all[] = {ID_SWITCH,	 ID_WAKING,	  ID_IRQ_ENTRY, ID_IRQ_EXIT,
				       ID_SOFTIRQ_ENTRY, ID_SOFTIRQ_EXIT, ID_ISSUE,	ID_COMPLETE,
				       ID_RAW_ENTER,	 ID_RAW_EXIT,	  ID_MIGRATE,	ID_OOM};
	/* of those, by condition; switches tell names */
	static const unsigned wanted[][2] = {
		{ID_SWITCH, ID_WAKING},	     {ID_SWITCH, ID_WAKING},
		{ID_IRQ_ENTRY, ID_IRQ_EXIT}, {ID_SOFTIRQ_ENTRY, ID_SOFTIRQ_EXIT},
		{ID_ISSUE, ID_COMPLETE},     {ID_RAW_ENTER, ID_RAW_EXIT},
		{ID_MIGRATE, ID_OOM},
	};
	static struct subbuf_pick pick;

	for (size_t k = 0; k < ARRAY_SIZE(conditions); k++) {
		struct latency_setup setup = {.n = 1};
		struct fixture f = {};
		struct fault why;

		setup_file(&f);
		parse(conditions[k], &f.condition);
		setup.conditions = &f.condition;
		setup.facts = &f.facts;
		assert_int_equal(latency_new(&setup, &f.latency), 0);
		assert_int_equal(spans_file_new(latency_spans(f.latency), f.decoder, &f.file, &why),
				 0);
		latency_pick(f.latency, f.file, &pick);
		for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
			const bool its = all[i] == wanted[k][0] || all[i] == wanted[k][1];
			const bool call = all[i] == ID_RAW_ENTER || all[i] == ID_RAW_EXIT;
			const bool names =
				all[i] == ID_SWITCH || all[i] == ID_WAKING || all[i] == ID_MIGRATE;

			assert_int_equal(pick.ids[all[i]], its && call	  ? SUBBUF_PICK_BY_NUMBER
							   : its || names ? SUBBUF_PICK_ALL
									  : SUBBUF_PICK_NONE);
		}
		for (unsigned i = 0; i < SUBBUF_PICK_NUMBERS; i++)
			assert_int_equal(pick.numbers[i],
					 f.condition.kind == LATENCY_SYSCALL && i == FSYNC);
		latency_free(f.latency);
		/* whose numbers they are is not known: all of them */
		f.facts.machine = MACHINE_UNKNOWN;
		spans_file_free(f.file);
		assert_int_equal(latency_new(&setup, &f.latency), 0);
		assert_int_equal(spans_file_new(latency_spans(f.latency), f.decoder, &f.file, &why),
				 0);
		latency_pick(f.latency, f.file, &pick);
		assert_int_equal(pick.ids[ID_RAW_ENTER], f.condition.kind == LATENCY_SYSCALL
								 ? SUBBUF_PICK_ALL
								 : SUBBUF_PICK_NONE);
		spans_file_free(f.file);
		latency_free(f.latency);
		latency_done(&f.condition);
		close_file(&f);
	}
}

/* What goes on is told when the limit is passed, once, and not again when it ends */
static void test_open(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(conditions); k++) {
		const uint64_t from = NSEC_PER_SEC;
		struct fixture f;

		setup(&f, conditions[k]);
		turn(&f, f.condition.kind, from, true);
		assert_int_equal(latency_tick(f.latency, from + 20 * MSEC - 1), 0);
		assert_int_equal(f.hits, 0);
		assert_int_equal(latency_tick(f.latency, from + 20 * MSEC), 0);
		assert_int_equal(f.hits, 1);
		assert_true(f.last.open);
		assert_int_equal(f.last.from, from);
		assert_int_equal(f.last.to - f.last.from, 20 * MSEC);
		assert_int_equal(latency_tick(f.latency, from + 500 * MSEC), 0);
		assert_int_equal(f.hits, 1);
		turn(&f, f.condition.kind, from + 600 * MSEC, false);
		assert_int_equal(f.hits, 1);
		/* the next one is another one */
		turn(&f, f.condition.kind, from + 700 * MSEC, true);
		turn(&f, f.condition.kind, from + 720 * MSEC, false);
		assert_int_equal(f.hits, 2);
		assert_false(f.last.open);
		/* both within a second: one snapshot. Open ones are not measured: not twice. */
		assert_int_equal(latency_facts(f.latency, 0)->snapshots, 1);
		assert_int_equal(latency_facts(f.latency, 0)->measure.count, 2);
		teardown(&f);
	}
}

/* One event is not the other one's if a field differs, and may be the end of one and the next begin
 */
static void test_pairs(void **state)
{
	struct fixture f;

	setup(&f, "block:block_rq_issue block:block_rq_complete key=dev,sector 20ms");
	numbers(&f, NSEC_PER_SEC, ID_ISSUE, DEVICE, 64);
	numbers(&f, NSEC_PER_SEC + 30 * MSEC, ID_COMPLETE, DEVICE, 72);
	numbers(&f, NSEC_PER_SEC + 40 * MSEC, ID_COMPLETE, DEVICE + 1, 64);
	assert_int_equal(f.hits, 0);
	numbers(&f, NSEC_PER_SEC + 50 * MSEC, ID_COMPLETE, DEVICE, 64);
	assert_int_equal(f.hits, 1);
	assert_int_equal(f.last.from, NSEC_PER_SEC);
	assert_int_equal(f.last.task->pid, 5);
	numbers(&f, NSEC_PER_SEC + 90 * MSEC, ID_COMPLETE, DEVICE, 64);
	assert_int_equal(f.hits, 1);
	teardown(&f);

	setup(&f, "irq:softirq_entry irq:softirq_entry key=vec 20ms");
	for (uint64_t i = 1; i <= 5; i++)
		numbers(&f, i * NSEC_PER_SEC, ID_SOFTIRQ_ENTRY, 1, 0);
	assert_int_equal(latency_facts(f.latency, 0)->measure.count, 4);
	assert_int_equal(latency_facts(f.latency, 0)->measure.total, 4 * NSEC_PER_SEC);
	teardown(&f);
}

/* More than there is room for are forgotten, and said */
static void test_many_pairs(void **state)
{
	const uint32_t n = 40000;
	struct fixture f;
	uint64_t hits;

	setup(&f, "block:block_rq_issue block:block_rq_complete key=sector 20ms");
	for (uint32_t i = 0; i < n; i++)
		numbers(&f, NSEC_PER_SEC + i, ID_ISSUE, DEVICE, i);
	hits = n - spans_totals(latency_spans(f.latency))->left_out;
	assert_in_range(hits, 10000, 16384);
	for (uint32_t i = 0; i < n; i++)
		numbers(&f, 2 * NSEC_PER_SEC + i, ID_COMPLETE, DEVICE, i);
	assert_int_equal(f.hits, hits);
	teardown(&f);
}

static void test_no_field(void **state)
{
	struct latency_config condition;
	struct latency_setup setup = {.conditions = &condition, .n = 1};
	struct spans_file *file;
	struct latency *latency;
	struct fault why;
	struct fixture f;

	setup_file(&f);
	parse("sched:sched_migrate_task irq:softirq_exit key=pid 1ms", &condition);
	assert_int_equal(latency_new(&setup, &latency), 0);
	assert_int_equal(spans_file_new(latency_spans(latency), f.decoder, &file, &why), -EINVAL);
	assert_string_equal(why.text, "irq:softirq_exit has no field \"pid\", it has vec, x, y");
	latency_free(latency);
	latency_done(&condition);
	close_file(&f);
}

/* A loss makes unknown what went on: nothing fires by it */
static void test_lost(void **state)
{
	struct fixture f;
	struct craft c = craft_kinds[0];
	struct decode_event event = {.ts = NSEC_PER_SEC + 1, .missed = 7};

	setup(&f, "runqueue 20ms");
	turn(&f, LATENCY_RUNQUEUE, NSEC_PER_SEC, true);
	fixture_numbers(&c, ID_SOFTIRQ_EXIT, 0, (const uint32_t[]){1, 0, 0}, 3);
	event.data = c.bytes;
	event.size = (uint32_t)c.size;
	decoder_identify(f.decoder, &event);
	assert_int_equal(spans_event(latency_spans(f.latency), f.file, &event), 0);
	craft_done(&c);
	assert_int_equal(latency_tick(f.latency, 2 * NSEC_PER_SEC), 0);
	turn(&f, LATENCY_RUNQUEUE, 2 * NSEC_PER_SEC, false);
	assert_int_equal(f.hits, 0);
	teardown(&f);
}

/* How many of one wait of t5, one read(2) and one request of 8:1 are told */
static unsigned hits_of(const char *condition)
{
	struct fixture f;
	unsigned hits;

	setup(&f, condition);
	assert_int_equal(who_tell(f.who, &(struct own_task){5, 5, 1, "n", "/a.slice/a.service"}, 0),
			 0);
	turn(&f, LATENCY_RUNQUEUE, NSEC_PER_SEC, true);
	turn(&f, LATENCY_RUNQUEUE, NSEC_PER_SEC + 30 * MSEC, false);
	numbers(&f, 2 * NSEC_PER_SEC, ID_RAW_ENTER, READ, 0);
	numbers(&f, 2 * NSEC_PER_SEC + 30 * MSEC, ID_RAW_EXIT, READ, 0);
	turn(&f, LATENCY_BLOCK, 3 * NSEC_PER_SEC, true);
	turn(&f, LATENCY_BLOCK, 3 * NSEC_PER_SEC + 30 * MSEC, false);
	hits = f.hits;
	teardown(&f);
	return hits;
}

static void test_which(void **state)
{
	assert_int_equal(hits_of("runqueue 20ms task=t5"), 1);
	assert_int_equal(hits_of("runqueue 20ms task=t*"), 1);
	assert_int_equal(hits_of("runqueue 20ms task=t6"), 0);
	assert_int_equal(hits_of("runqueue 20ms unit=a.service"), 1);
	assert_int_equal(hits_of("runqueue 20ms unit=a"), 1);
	assert_int_equal(hits_of("runqueue 20ms unit=b.service"), 0);
	assert_int_equal(hits_of("runqueue 40ms"), 0);
	assert_int_equal(hits_of("blocked 1ms"), 0);
	assert_int_equal(hits_of("syscall read 20ms"), 1);
	assert_int_equal(hits_of("syscall fsync 20ms"), 0);
	assert_int_equal(hits_of("block 20ms dev=8:1"), 1);
	assert_int_equal(hits_of("block 20ms dev=8:0"), 0);
}

/* Whose system call it is the file tells, or a switch */
static void test_names(void **state)
{
	struct fixture f;

	setup(&f, "syscall fsync 20ms task=t5");
	turn(&f, LATENCY_SYSCALL, NSEC_PER_SEC, true);
	turn(&f, LATENCY_SYSCALL, NSEC_PER_SEC + 30 * MSEC, false);
	assert_int_equal(f.hits, 1);
	teardown(&f);
}

static void test_suggest(void **state)
{
	struct measure m = {};

	assert_int_equal(latency_suggest(&m), 0);
	for (unsigned i = 0; i < 2000; i++)
		assert_int_equal(measure_add(&m, 0, MSEC), 0);
	/* one of 2,000 is no 0.1 % */
	assert_int_equal(measure_add(&m, 0, NSEC_PER_SEC), 0);
	assert_in_range(latency_suggest(&m), 3 * MSEC, 4 * MSEC);
	measure_done(&m);
	assert_int_equal(measure_add(&m, 0, 4111 * NSEC_PER_USEC), 0);
	assert_int_equal(latency_suggest(&m), 13 * MSEC);
	measure_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),	   cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_time),	   cmocka_unit_test(test_thousand),
		cmocka_unit_test(test_picked),	   cmocka_unit_test(test_open),
		cmocka_unit_test(test_lost),	   cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_many_pairs), cmocka_unit_test(test_no_field),
		cmocka_unit_test(test_which),	   cmocka_unit_test(test_names),
		cmocka_unit_test(test_suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
