/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "ctl/graph.h"

#define MINUTE (60 * USEC_PER_SEC)
#define NOW    (1000 * MINUTE)

static void assert_near(double is, double wanted)
{
	assert_true(is > wanted - 1e-6 && is < wanted + 1e-6);
}

static void test_columns(void **state)
{
	assert_int_equal(graph_columns(500), 60);
	assert_int_equal(graph_columns(60), 60);
	assert_int_equal(graph_columns(59), 30);
	assert_int_equal(graph_columns(29), 20);
	assert_int_equal(graph_columns(15), 15);
	assert_int_equal(graph_columns(0), 12);
}

static void test_fit(void **state)
{
	struct view_minute minutes[] = {
		/* of an hour ago, half of it is too old */
		{NOW - 60 * MINUTE + MINUTE / 2, MINUTE, 6000, 10},
		/* three minutes */
		{NOW - 50 * MINUTE, 3 * MINUTE, 18000, 30},
		/* in the middle of one */
		{NOW, MINUTE / 2, 600, 0},
	};
	const struct view_hour hour = {.minutes = minutes, .n_minutes = ARRAY_SIZE(minutes)};
	double rate[60], lost[60];

	graph_fit(&hour, NOW, 60, rate, lost);
	assert_near(rate[0], 100);
	assert_near(lost[0], 5);
	for (unsigned i = 7; i < 10; i++) {
		assert_near(rate[i], 100);
		assert_near(lost[i], 10);
	}
	assert_true(rate[1] < 0 && lost[1] < 0 && rate[6] < 0 && rate[10] < 0 && rate[58] < 0);
	assert_near(rate[59], 20);
	assert_near(lost[59], 0);
	/* what is known of a column stands for all of it */
	graph_fit(&hour, NOW, 30, rate, lost);
	assert_near(rate[3], 100);
	assert_near(lost[3], 10);
	assert_near(lost[4], 20);
	assert_near(rate[29], 20);
}

static void assert_line(const double *values, unsigned n, bool utf8, const char *wanted)
{
	char *line = graph_line(values, n, utf8);

	assert_string_equal(line, wanted);
	free(line);
}

static void test_line(void **state)
{
	const double ramp[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, some[] = {-1, 0, 1, 1000000};

	assert_line(ramp, 9, true, "·▁▂▃▄▅▆▇█");
	assert_line(ramp, 9, false, ".:-=+*#%@");
	assert_line(some, 4, true, " ·▁█");
	assert_line(some, 2, true, " ·");
	assert_line(some, 0, true, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
