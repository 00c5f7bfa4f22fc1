/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* engine/ledger on the per_cpu directory of a fake instance */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/ledger.h"
#include "tests/unit/fake-instance.h"

struct bench {
	struct tmp tmp;
	struct trace_config config;
	struct instance *instance;
	struct ledger ledger;
};

static void put_stats(struct bench *b, const char *text)
{
	tmp_write(&b->tmp, FAKE_INSTANCE "per_cpu/cpu0/stats", text);
}

static int set_up(void **state)
{
	static struct bench bench;
	struct fault why;

	bench = (struct bench){};
	tmp_init(&bench.tmp);
	fake_instance_put(&bench.tmp, NULL);
	put_stats(&bench, "entries: 7\noverrun: 100\nread events: 50\n");
	assert_int_equal(instance_attach(FAKE_INSTANCE_NAME, "flyrec_oom", &bench.config,
					 &bench.instance, &why),
			 0);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	ledger_done(&b->ledger);
	instance_free(b->instance);
	fake_instance_drop(&b->tmp);
	return 0;
}

static void begin(struct bench *b, bool overwrites, bool foreign)
{
	assert_int_equal(ledger_begin(&b->ledger, b->instance, overwrites, foreign), 0);
	assert_int_equal(b->ledger.n_cpus, instance_n_cpus(b->instance));
}

static const struct cpu_stats *read_cpu(struct bench *b, const char *text,
					struct ledger_moved moved, uint64_t now_usec)
{
	put_stats(b, text);
	return ledger_read(&b->ledger, b->instance, 0, &moved, now_usec);
}

static void test_totals(void **state)
{
	struct bench *b = *state;
	struct ledger *l = &b->ledger;
	const struct cpu_stats *stats;

	begin(b, false, false); /* what was before is not ours */
	stats = read_cpu(b, "entries: 3\noverrun: 130\ncommit overrun: 2\ndropped events: 1\n",
			 (struct ledger_moved){.subbufs = 5, .bytes = 20480}, 1000);
	assert_int_equal(stats->entries, 3);
	assert_int_equal(l->cpus[0].overrun, 30);
	assert_int_equal(l->cpus[0].lost_events, 30);
	assert_int_equal(l->cpus[0].commit_overrun, 2);
	assert_int_equal(l->cpus[0].dropped_events, 1);
	assert_int_equal(l->cpus[0].subbufs, 5);
	assert_int_equal(l->lost, 33);
	assert_int_equal(l->untold, 33);
	assert_int_equal(l->first_loss_usec, 1000);
	/* nothing new */
	ledger_told(l);
	(void)read_cpu(b, "entries: 3\noverrun: 130\ncommit overrun: 2\ndropped events: 1\n",
		       (struct ledger_moved){.subbufs = 5, .bytes = 20480}, 2000);
	assert_int_equal(l->lost, 33);
	assert_int_equal(l->untold, 0);
	assert_int_equal(l->last_loss_usec, 1000);
	/* its counters begin anew, ours go on */
	(void)read_cpu(b, "entries: 3\noverrun: 3\n",
		       (struct ledger_moved){.subbufs = 1, .bytes = 4096, .not_written = 4}, 3000);
	assert_int_equal(l->cpus[0].overrun, 33);
	assert_int_equal(l->cpus[0].bytes, 24576);
	assert_int_equal(l->not_written, 4);
	assert_int_equal(l->untold, 3);
	assert_int_equal(l->first_loss_usec, 1000);
	assert_int_equal(l->last_loss_usec, 3000);
	/* likewise another instance, whatever it has counted until now */
	begin(b, false, false);
	assert_int_equal(l->untold, 0);
	(void)read_cpu(b, "entries: 3\noverrun: 4\n", (struct ledger_moved){.bytes = 1}, 4000);
	assert_int_equal(l->cpus[0].overrun, 34);
	assert_int_equal(l->cpus[0].bytes, 24577);
	assert_int_equal(l->bytes, 24577);
	ledger_evict(l, 0, 7);
	ledger_evict(l, l->n_cpus, 7); /* not there: ignored */
	assert_int_equal(l->cpus[0].evicted, 7);
}

static void test_events(void **state)
{
	struct bench *b = *state;
	struct ledger *l = &b->ledger;
	const struct ledger_moved moved = {};

	begin(b, false, false); /* 157 before */
	(void)read_cpu(b, "entries: 3\noverrun: 130\nread events: 60\n", moved, 1000);
	assert_int_equal(l->events, 36);
	/* what was read meanwhile had been counted as entries: the next sum is lower, and no loss
	 */
	(void)read_cpu(b, "entries: 3\noverrun: 130\nread events: 80\n", moved, 2000);
	assert_int_equal(l->events, 56);
	(void)read_cpu(b, "entries: 0\noverrun: 130\nread events: 80\n", moved, 3000);
	assert_int_equal(l->events, 56);
	(void)read_cpu(b, "entries: 5\noverrun: 130\nread events: 80\n", moved, 4000);
	assert_int_equal(l->events, 58);
	/* they begin anew */
	(void)read_cpu(b, "entries: 5\noverrun: 0\nread events: 2\n", moved, 5000);
	assert_int_equal(l->events, 65);
	/* not ours */
	begin(b, false, true);
	(void)read_cpu(b, "entries: 5\noverrun: 0\nread events: 90\n", moved, 6000);
	assert_int_equal(l->events, 65);
}

static void test_unreadable(void **state)
{
	struct bench *b = *state;
	struct ledger *l = &b->ledger;

	begin(b, false, false);
	assert_null(read_cpu(b, "", (struct ledger_moved){.torn = 2}, 1000));
	assert_int_equal(l->lost, 0);
	assert_int_equal(l->cpus[0].torn, 2);
	assert_int_equal(ledger_base(l, 0, false).overrun, 0);
	assert_null(ledger_text(l, 0, NULL, &(struct ledger_file){.subbuf_size = 4096}));
	(void)read_cpu(b, "entries: 0\noverrun: 105\n", (struct ledger_moved){}, 2000);
	assert_int_equal(l->lost, 5);
}

static void test_flight(void **state)
{
	struct bench *b = *state;

	begin(b, true, false);
	(void)read_cpu(b, "entries: 0\noverrun: 900\ncommit overrun: 1\n", (struct ledger_moved){},
		       1000);
	assert_int_equal(b->ledger.cpus[0].overrun, 800);
	assert_int_equal(b->ledger.cpus[0].lost_events, 0);
	assert_int_equal(b->ledger.lost, 1); /* to overwrite is what it is for */
	assert_int_equal(b->ledger.untold, 1);
}

/* What an earlier process left counts from where its segment began, but only for the log when that
 * is all that is done with it */
static void test_left(void **state)
{
	struct bench *b = *state;
	const struct ledger_base base = {.overrun = 60};

	begin(b, false, false);
	ledger_count_from(&b->ledger, 0, &base);
	(void)read_cpu(b, "entries: 0\noverrun: 101\n", (struct ledger_moved){}, 1000);
	assert_int_equal(b->ledger.lost, 41);
	assert_int_equal(b->ledger.untold, 41);
	begin(b, false, true);
	ledger_count_from(&b->ledger, 0, &base);
	(void)read_cpu(b, "entries: 0\noverrun: 101\n", (struct ledger_moved){.bytes = 9}, 2000);
	assert_int_equal(b->ledger.lost, 41);
	assert_int_equal(b->ledger.cpus[0].bytes, 0);
	assert_int_equal(b->ledger.last_loss_usec, 1000);
	assert_int_equal(b->ledger.untold, 41);
}

static void assert_has(const char *text, const char *line)
{
	assert_non_null(text);
	if (!strstr(text, line))
		fail_msg("no \"%s\" in:\n%s", line, text);
}

static void test_text(void **state)
{
	struct bench *b = *state;
	struct ledger *l = &b->ledger;
	struct ledger_file file = {.bytes = 8192, .dropped_bytes = 10, .subbuf_size = 4096};
	struct ledger_base base;
	char *text;

	file.more = "flyrec date off by usec: 3\n";
	begin(b, false, false);
	base = ledger_base(l, 0, false);
	assert_int_equal(base.overrun, 100);
	assert_int_equal(base.read_events, 50);
	base.in_flight = 77;
	(void)read_cpu(b, "entries: 6\noverrun: 110\nread events: 58\n", (struct ledger_moved){},
		       1000);
	text = ledger_text(l, 0, &base, &file);
	assert_has(text, "CPU: 0\nentries: 6\noverrun: 10\n");
	assert_has(text, "\nread events: 8\nflyrec subbufs: 2\nflyrec bytes: 8192\n");
	assert_has(text, "\nflyrec not written bytes: 10\n");
	assert_has(text, "\nflyrec maybe lost in a kill bytes: 77\nflyrec date off by usec: 3\n");
	assert_null(strstr(text, "final"));
	free(text);

	/* The file ended before that, as far as this CPU goes; then the next one begins */
	ledger_end_file(l, 0, "entries: 4\noverrun: 104\nread events: 55\n");
	assert_int_equal(l->untold, 10);
	assert_int_equal(ledger_base(l, 0, true).overrun, 104);
	assert_int_equal(ledger_base(l, 0, false).overrun, 110);
	file.ends = file.undrained = true;
	text = ledger_text(l, 0, &base, &file);
	assert_has(text, "\noverrun: 4\n");
	assert_has(text, "\nflyrec not written bytes: 10\n");
	assert_has(text, "\nflyrec left in the ring buffer events: 4\nflyrec final: yes\n");
	free(text);

	/* What was said in a file is not said in the next; without a base the counters are whole */
	file = (struct ledger_file){.dropped_bytes = 15, .subbuf_size = 4096, .more = ""};
	text = ledger_text(l, 0, NULL, &file);
	assert_has(text, "\noverrun: 110\n");
	assert_has(text, "\nflyrec not written bytes: 5\n");
	assert_has(text, "\nflyrec maybe lost in a kill bytes: 0\n");
	free(text);
	ledger_end_file(l, 0, "");
	file.ends = true;
	assert_null(ledger_text(l, 0, NULL, &file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_totals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unreadable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_flight, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_text, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
