/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which events go when tracing costs too much, and when they come back */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/session/budget.h"

#define SECONDS(n) ((uint64_t)(n)*USEC_PER_SEC)

/* In the order in which they go */
enum { LISTED, LISTED_LATER, COSTLY, CHEAP, NEEDED, _N };

static void make(struct budget_event events[static _N])
{
	events[LISTED] = (struct budget_event){.share = 0.001, .order = 0};
	events[LISTED_LATER] = (struct budget_event){.share = 0.004, .order = 1};
	events[COSTLY] = (struct budget_event){.share = 0.003, .order = -1};
	events[CHEAP] = (struct budget_event){.share = 0.002, .order = -1};
	events[NEEDED] = (struct budget_event){.share = 0.02, .order = -1, .needed = true};
}

static void test_order(void **state)
{
	/* what tracing costs, and how many are gone then */
	static const struct {
		double share;
		size_t gone;
	} cases[] = {{0.0100, 0}, {0.0105, 1}, {0.0145, 2}, {0.0175, 3}, {0.0195, 4}, {0.9, 4}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct budget budget = {.limit = 0.01};
		struct budget_event events[_N];

		make(events);
		assert_int_equal(budget_shed(&budget, SECONDS(100), cases[i].share, events, _N),
				 cases[i].gone);
		for (size_t e = 0; e < _N; e++)
			assert_int_equal(events[e].shed, e < cases[i].gone);
	}
}

/* The user's word goes before a trigger's need; what costs nothing stays */
static void test_needed_and_listed(void **state)
{
	struct budget budget = {.limit = 0.01};
	struct budget_event events[] = {
		{.share = 0.00005, .order = 0},
		{.share = 0.03, .order = 1, .needed = true},
	};

	assert_int_equal(budget_shed(&budget, SECONDS(100), 0.03005, events, 2), 1);
	assert_false(events[0].shed);
	assert_true(events[1].shed);
}

static void test_comes_back(void **state)
{
	struct budget budget = {.limit = 0.01};
	struct budget_event events[_N];

	make(events);
	events[NEEDED].share = 0;
	assert_int_equal(budget_shed(&budget, SECONDS(100), 0.9, events, _N), 4);
	/* not at once, and not without room */
	assert_int_equal(budget_restore(&budget, SECONDS(159), 0, events, _N), 0);
	assert_int_equal(budget_restore(&budget, SECONDS(160), 0.0065, events, _N), 0);
	/* the last that went comes first: 0.2 and 0.3 % */
	assert_int_equal(budget_restore(&budget, SECONDS(161), 0.0015, events, _N), 2);
	assert_true(events[LISTED].shed && events[LISTED_LATER].shed);
	assert_false(events[COSTLY].shed || events[CHEAP].shed);
	assert_int_equal(budget_restore(&budget, SECONDS(220), 0, events, _N), 0);
	assert_int_equal(budget_restore(&budget, SECONDS(221), 0, events, _N), 2);
}

/* --- under a load: a look a second, as overhead.c has them */

#define LONGEST 1200U

struct run {
	struct budget budget;
	struct budget_event event;
	unsigned changes[LONGEST]; /* in each second */
};

/* @cost: what the event costs in this second; @count: what a count says that it would cost */
static void look(struct run *run, unsigned second, double cost, double count)
{
	uint64_t now = SECONDS(1000 + second);

	if (!run->event.shed) {
		run->event.share = cost;
		if (cost > run->budget.limit)
			run->changes[second] =
				(unsigned)budget_shed(&run->budget, now, cost, &run->event, 1);
	} else if (budget_due(&run->budget, now)) {
		run->event.share = count;
		run->changes[second] =
			(unsigned)budget_restore(&run->budget, now, 0, &run->event, 1);
	}
}

static unsigned most_in_a_minute(const struct run *run)
{
	unsigned most = 0;

	for (unsigned begin = 0; begin + 60 <= LONGEST; begin++) {
		unsigned n = 0;

		for (unsigned second = begin; second < begin + 60; second++)
			n += run->changes[second];
		most = MAX(most, n);
	}
	return most;
}

static struct run *run_new(void)
{
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	*run = (struct run){.budget = {.limit = 0.01}, .event = {.order = -1}};
	return run;
}

/* Also if the counts are wrong */
static void test_steady_load(void **state)
{
	for (double load = 0.1; load < 3; load += 0.1) {
		for (double wrong = 0.3; wrong < 2; wrong += 0.1) {
			struct run *run = run_new();

			for (unsigned second = 0; second < LONGEST; second++) {
				/* by a quarter either way, the counts otherwise than the seconds */
				double noise = 0.75 + second * 7 % 11 / 20.0;
				double other = 0.75 + second * 5 % 13 / 24.0;

				look(run, second, 0.01 * load * noise, 0.01 * load * other * wrong);
			}
			/* counts that see a third less than there is are beyond help */
			if (wrong > 0.7)
				assert_in_range(most_in_a_minute(run), 0, 2);
			assert_true(load < 1.5 || run->changes[0] == 1);
			free(run);
		}
	}
}

/* Storms of two seconds that come back before the last one is over for good */
static void test_bursts(void **state)
{
	for (unsigned period = 4; period < 12; period++) {
		struct run *run = run_new();

		for (unsigned second = 0; second < LONGEST; second++) {
			double cost = second % period < 2 ? 0.2 : 0;

			look(run, second, cost, cost);
		}
		assert_in_range(most_in_a_minute(run), 1, 2);
		free(run);
	}
}

/* Also if a storm was before, or a load under which it came back for nothing */
static void test_back_after_storm(void **state)
{
	for (unsigned storm = 1; storm < 200; storm++) {
		struct run *run = run_new();
		unsigned second = 0, end = 0;

		for (unsigned i = 0; i < 3; i++) {
			for (end = second + storm; second < end; second++)
				look(run, second, 0.2, 0.2);
			assert_true(run->event.shed);
			for (; run->event.shed && second < LONGEST; second++)
				look(run, second, 0.004, 0.004);
			assert_in_range(second, end, end + 21);
		}
		free(run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	   cmocka_unit_test(test_needed_and_listed),
		cmocka_unit_test(test_comes_back), cmocka_unit_test(test_steady_load),
		cmocka_unit_test(test_bursts),	   cmocka_unit_test(test_back_after_storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
