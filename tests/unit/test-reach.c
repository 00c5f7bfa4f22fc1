/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/reach.h"

static struct reach of(uint64_t entries, uint64_t overrun, uint64_t oldest, uint64_t now,
		       uint64_t tracing)
{
	const struct cpu_stats stats = {
		.entries = entries, .overrun = overrun, .oldest_usec = oldest, .now_usec = now};

	return reach_of_cpu(&stats, tracing);
}

static void test_of_a_cpu(void **state)
{
	/* full: back to the oldest event, however long it has been tracing */
	assert_int_equal(of(10, 5, 1000, 5300, 90000).usec, 4300);
	assert_true(of(10, 5, 1000, 5300, 90000).full);
	/* nothing was overwritten: all that happened since it traces */
	assert_int_equal(of(10, 0, 1000, 5300, 90000).usec, 90000);
	/* taken over from a daemon that began earlier */
	assert_int_equal(of(10, 0, 1000, 5300, 20).usec, 4300);
	assert_false(of(10, 0, 1000, 5300, 20).full);
	/* nothing yet, a clock without time, a clock that was set back */
	assert_int_equal(of(0, 0, 1000, 5300, 90000).usec, 0);
	assert_int_equal(of(10, 5, 0, 0, 90000).usec, 0);
	assert_int_equal(of(10, 5, 5300, 1000, 90000).usec, 0);
}

static void test_of_all(void **state)
{
	const struct reach full[] = {{4300, true}, {6100, true}, {0, false}, {2000, false}};
	const struct reach idle[] = {{4300, false}, {9000, false}, {0, false}};

	assert_int_equal(reach_of_all(full, 4), 4300);
	assert_int_equal(reach_of_all(idle, 3), 9000);
	assert_int_equal(reach_of_all(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_a_cpu),
		cmocka_unit_test(test_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
