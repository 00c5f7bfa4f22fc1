/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "engine/clock.h"

#define OFFSET_USEC (1700000000 * (int64_t)USEC_PER_SEC)

/* Microseconds that pass after each reading */
static const unsigned *passes;
static size_t n_passes, reading;
static int64_t monotonic_usec;
static int64_t step_usec; /* the wall clock is set by as much after the second reading */

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	int64_t usec = monotonic_usec;

	if (id == CLOCK_REALTIME)
		usec += OFFSET_USEC + (reading >= 2 ? step_usec : 0);
	*ret = (struct timespec){
		.tv_sec = usec / (int64_t)USEC_PER_SEC,
		.tv_nsec = usec % (int64_t)USEC_PER_SEC * (int64_t)NSEC_PER_USEC,
	};
	monotonic_usec += reading < n_passes ? passes[reading] : 1;
	reading++;
	return 0;
}

static int64_t date(const unsigned *times, size_t n, int64_t step)
{
	int64_t ret = 0;

	passes = times;
	n_passes = n;
	reading = 0;
	monotonic_usec = 12345678;
	step_usec = step;
	assert_int_equal(clock_date_usec(NULL, "mono", &ret), 0);
	return ret;
}

static void test_quick(void **state)
{
	static const unsigned times[] = {1, 1, 1};

	assert_in_range(date(times, 3, 0), OFFSET_USEC - 1, OFFSET_USEC + 1);
	assert_int_equal(reading, 5);
}

/* Somebody else runs for 15 ms between two readings */
static void test_slow(void **state)
{
	static const unsigned first[] = {15000, 1, 1}, second[] = {1, 15000, 1},
			      often[] = {1, 9000, 1, 9000, 1, 1, 30, 40, 1};

	assert_in_range(date(first, 3, 0), OFFSET_USEC - 10, OFFSET_USEC + 10);
	assert_in_range(date(second, 3, 0), OFFSET_USEC - 10, OFFSET_USEC + 10);
	assert_in_range(date(often, 9, 0), OFFSET_USEC - 10, OFFSET_USEC + 10);
}

/* The wall clock is set meanwhile, forward and back */
static void test_set(void **state)
{
	static const unsigned times[] = {1, 1, 1};
	int64_t hour = 3600 * (int64_t)USEC_PER_SEC;

	assert_in_range(date(times, 3, hour), OFFSET_USEC + hour - 10, OFFSET_USEC + hour + 10);
	assert_in_range(date(times, 3, -hour), OFFSET_USEC - hour - 10, OFFSET_USEC - hour + 10);
}

static void test_none(void **state)
{
	int64_t ret;

	assert_int_equal(clock_date_usec(NULL, "counter", &ret), -EOPNOTSUPP);
}

/* Of a leap second the kernel makes a step of 999,999,872 ns */
static void test_off(void **state)
{
	const uint64_t long_ago = UINT64_MAX;

	for (int sign = -1; sign <= 1; sign += 2) {
		assert_false(clock_date_is_off(OFFSET_USEC, OFFSET_USEC + sign * 999, long_ago));
		assert_true(clock_date_is_off(OFFSET_USEC, OFFSET_USEC + sign * 1000, long_ago));
		assert_true(clock_date_is_off(OFFSET_USEC, OFFSET_USEC + sign * 999999, long_ago));
		/* one after the other: those of a second and more at once, the others wait */
		assert_false(clock_date_is_off(OFFSET_USEC, OFFSET_USEC + sign * 999999, 9999999));
		assert_true(clock_date_is_off(OFFSET_USEC, OFFSET_USEC + sign * 999999, 10000000));
		assert_true(clock_date_is_off(OFFSET_USEC, OFFSET_USEC + sign * 1000000, 0));
	}
	assert_true(clock_date_is_off(INT64_MIN, INT64_MAX, long_ago));
	assert_false(clock_date_is_off(-5, -5, long_ago));
}

/* What is as good as it gets, or no worse than what was, keeps its date as long as both may be true
 */
static void test_stays(void **state)
{
	struct own_clock before = {.realtime = 1000000, .trace = 5000, .width = 400}, now = before;

	now.realtime += 400;
	assert_true(clock_date_stays(&before, &now));
	now.realtime++;
	assert_false(clock_date_stays(&before, &now));
	now = before;
	now.trace += 400; /* the date is before that */
	assert_true(clock_date_stays(&before, &now));
	before.width = 30000;
	assert_false(clock_date_stays(&before, &now));
	now.width = 40000;
	assert_true(clock_date_stays(&before, &now));
	now.flags = OWN_CLOCK_NO_TRACE;
	assert_false(clock_date_stays(&before, &now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quick), cmocka_unit_test(test_slow),
		cmocka_unit_test(test_set),   cmocka_unit_test(test_none),
		cmocka_unit_test(test_off),   cmocka_unit_test(test_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
