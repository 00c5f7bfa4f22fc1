/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "daemon/session/last-hour.h"

#define MINUTE (60 * USEC_PER_SEC)

static void assert_row(const struct last_hour_row *row, uint64_t end, uint64_t usec,
		       uint64_t events, uint64_t lost)
{
	assert_int_equal(row->end_usec, end);
	assert_int_equal(row->usec, usec);
	assert_int_equal(row->events, events);
	assert_int_equal(row->lost, lost);
}

static void test_minutes(void **state)
{
	struct last_hour_row rows[LAST_HOUR_ROWS + 1];
	struct last_hour hour = {};

	/* not before it has begun */
	last_hour_add(&hour, 9 * MINUTE, 1000, 0);
	assert_int_equal(last_hour_get(&hour, 9 * MINUTE, 1000, 0, rows), 0);
	last_hour_begin(&hour, 10 * MINUTE, 1000, 7);
	assert_int_equal(last_hour_get(&hour, 10 * MINUTE, 1000, 7, rows), 0);
	/* within a minute there is no row */
	last_hour_add(&hour, 10 * MINUTE + 5, 1100, 7);
	assert_int_equal(last_hour_get(&hour, 10 * MINUTE + 10, 1200, 8, rows), 1);
	assert_row(&rows[0], 10 * MINUTE + 10, 10, 200, 1);
	/* a row takes all since the one before, however long that is */
	last_hour_add(&hour, 11 * MINUTE + 3, 1600, 8);
	last_hour_add(&hour, 14 * MINUTE, 1700, 18);
	assert_int_equal(last_hour_get(&hour, 15 * MINUTE, 1750, 18, rows), 3);
	assert_row(&rows[0], 11 * MINUTE + 3, MINUTE + 3, 600, 1);
	assert_row(&rows[1], 14 * MINUTE, 3 * MINUTE - 3, 100, 10);
	assert_row(&rows[2], 15 * MINUTE, MINUTE, 50, 0);
	/* a break is in no row; totals that begin anew are no gain */
	last_hour_begin(&hour, 30 * MINUTE, 5, 0);
	assert_int_equal(last_hour_get(&hour, 31 * MINUTE, 3, 0, rows), 3);
	assert_row(&rows[2], 31 * MINUTE, MINUTE, 0, 0);
}

static void test_hour(void **state)
{
	struct last_hour_row rows[LAST_HOUR_ROWS + 1];
	struct last_hour hour = {};
	unsigned n;

	last_hour_begin(&hour, 0, 0, 0);
	for (unsigned i = 1; i <= 200; i++)
		last_hour_add(&hour, i * MINUTE, UINT64_C(100) * i * i, 0);
	n = last_hour_get(&hour, 200 * MINUTE + 1, 4000001, 0, rows);
	assert_int_equal(n, LAST_HOUR_ROWS + 1);
	for (unsigned i = 0; i < n - 1; i++)
		assert_row(&rows[i], (141 + i) * MINUTE, MINUTE, 100 * (2 * (141 + i) - 1), 0);
	assert_row(&rows[n - 1], 200 * MINUTE + 1, 1, 1, 0);
	/* half an hour later half of them are too old */
	n = last_hour_get(&hour, 230 * MINUTE, 4000001, 0, rows);
	assert_int_equal(n, 31);
	assert_int_equal(rows[0].end_usec, 171 * MINUTE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_minutes),
		cmocka_unit_test(test_hour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
