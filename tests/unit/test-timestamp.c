/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "basic/timestamp.h"

/* 2026-07-01 12:03:04.500000 UTC, a Wednesday */
#define NOW	 UINT64_C(1782907384500000)
#define DAY	 (24 * 3600 * USEC_PER_SEC)
#define MIDNIGHT (NOW - NOW % DAY)

static void assert_time(const char *text, uint64_t expected)
{
	uint64_t usec = 1;
	int r = timestamp_parse(text, NOW, &usec);

	if (r != 0 || usec != expected)
		fail_msg("\"%s\": %d, %llu instead of %llu", text, r, (unsigned long long)usec,
			 (unsigned long long)expected);
}

static void assert_bad(const char *text, int error)
{
	uint64_t usec = 1;

	if (timestamp_parse(text, NOW, &usec) != error || usec != 1)
		fail_msg("\"%s\" is taken", text);
}

static void test_absolute(void **state)
{
	assert_time("2026-07-01 12:03:04.5", NOW);
	assert_time("2026-07-01 12:03:04.500000", NOW);
	assert_time("2026-07-01 12:03:04.5000009 UTC", NOW);
	assert_time("2026-07-01T12:03:04.5Z", NOW);
	assert_time(" Wed 2026-07-01  12:03:04.5 ", NOW);
	assert_time("2026-07-01 12:03", NOW - 4500000);
	assert_time("2026-07-01", MIDNIGHT);
	assert_time("2024-02-29", UINT64_C(1709164800) * USEC_PER_SEC);
	assert_time("12:03:04.5", NOW);
	assert_time("9:05", MIDNIGHT + (9 * 60 + 5) * 60 * USEC_PER_SEC);
	assert_time("@1782907384.5", NOW);
	assert_time("@0", 0);
}

static void test_relative(void **state)
{
	assert_time("now", NOW);
	assert_time("NOW", NOW);
	assert_time("today", MIDNIGHT);
	assert_time("yesterday", MIDNIGHT - DAY);
	assert_time("tomorrow", MIDNIGHT + DAY);
	assert_time("yesterday UTC", MIDNIGHT - DAY);
	assert_time("-5min", NOW - 300 * USEC_PER_SEC);
	assert_time("+1h 30s", NOW + 3630 * USEC_PER_SEC);
	assert_time("2h ago", NOW - 7200 * USEC_PER_SEC);
	assert_time("1d left", NOW + DAY);
	assert_time("-30", NOW - 30 * USEC_PER_SEC);
}

static void test_zone(void **state)
{
	assert_int_equal(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
	tzset();
	assert_time("2026-07-01 14:03:04.5", NOW);
	assert_time("14:03:04.5", NOW);
	assert_time("12:03:04.5 UTC", NOW);
	assert_time("2026-07-01", MIDNIGHT - 7200 * USEC_PER_SEC);
	/* yesterday's midnight before the clocks changed */
	assert_time("2026-03-29", UINT64_C(1774738800) * USEC_PER_SEC);
	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	tzset();
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"2026",
		"2026-07",
		"2026-13-01",
		"2026-02-29",
		"2026-00-10",
		"2026-07-01x",
		"2026-07-01 12",
		"2026-07-01 24:00",
		"12:60",
		"12:03:",
		"12:03:04.",
		"12:03 yesterday",
		"@",
		"@x",
		"@1.",
		"-",
		"+x",
		"5 parsecs ago",
		"ago",
		"Wed",
		"1782907384.50",
		"12:03:04.5 CET",
		"noon",
		"12",
		"12:03x",
		"2026-01-31 x",
		"-5parsecs",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_bad(bad[i], -EINVAL);
	assert_bad("-100y", -ERANGE);
	assert_bad("@99999999999999999999", -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absolute),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_zone),
		cmocka_unit_test(test_bad),
	};

	if (setenv("TZ", "UTC", 1) < 0)
		return 1;
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
