/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "decode/event-time.h"

#define SEC NSEC_PER_SEC

/* 2026-10-25 00:59:59 UTC: a second before clocks in Berlin go back from 3 to 2 */
#define BEFORE_STEP (UINT64_C(1792889999) * SEC)

static void assert_time(struct event_time *time, uint64_t ts, const char *wanted)
{
	struct text text = {};

	event_time_put(time, ts, &text);
	text_char(&text, '\0');
	assert_string_equal(text.bytes, wanted);
	text_done(&text);
}

static void test_words(void **state)
{
	enum event_time_mode mode = EVENT_TIME_TRACE;

	assert_true(event_time_parse("epoch", &mode));
	assert_int_equal(mode, EVENT_TIME_EPOCH);
	assert_true(event_time_parse("trigger", &mode));
	assert_int_equal(mode, EVENT_TIME_TRIGGER);
	assert_false(event_time_parse("Local", &mode));
	assert_false(event_time_parse("", &mode));
}

static void test_of_day(void **state)
{
	struct event_time utc = {.mode = EVENT_TIME_UTC}, local = {.mode = EVENT_TIME_LOCAL};

	assert_time(&utc, BEFORE_STEP + 123456000, " 00:59:59.123456");
	assert_time(&utc, BEFORE_STEP + 123456499, " 00:59:59.123456");
	assert_time(&utc, BEFORE_STEP + 123456500, " 00:59:59.123457");
	/* rounded into the next second, and day */
	assert_time(&utc, BEFORE_STEP + 999999600, " 01:00:00.000000");
	assert_time(&utc, BEFORE_STEP + 23 * 3600 * SEC + 999999600, " 00:00:00.000000");
	/* the clock is set at 01:00 UTC */
	assert_time(&local, BEFORE_STEP, " 02:59:59.000000");
	assert_time(&local, BEFORE_STEP + SEC, " 02:00:00.000000");
	assert_time(&local, BEFORE_STEP, " 02:59:59.000000");
}

static void test_of_trigger(void **state)
{
	struct event_time time = {.mode = EVENT_TIME_TRIGGER, .zero = 1000 * SEC};

	assert_time(&time, 1000 * SEC, "       +0.000ms");
	assert_time(&time, 1000 * SEC - 397812345, "     -397.812ms");
	assert_time(&time, 1001 * SEC + 1500, "    +1000.002ms");
	assert_time(&time, 0, " -1000000.000ms");
}

static bool changed(struct event_days *days, uint64_t ts)
{
	return event_days_changed(days, ts);
}

static void test_days(void **state)
{
	struct event_time local = {.mode = EVENT_TIME_LOCAL};
	struct event_days days;
	struct text text = {};

	/* the 25th has 25 hours in Berlin, from 22:00 UTC of the 24th to 23:00 UTC */
	event_days_init(&days, EVENT_TIME_LOCAL, false);
	assert_true(changed(&days, BEFORE_STEP));
	assert_false(changed(&days, BEFORE_STEP - 2 * 3600 * SEC));
	assert_false(changed(&days, BEFORE_STEP + 22 * 3600 * SEC));
	assert_true(changed(&days, BEFORE_STEP + 22 * 3600 * SEC + SEC));
	assert_true(changed(&days, BEFORE_STEP));
	event_days_init(&days, EVENT_TIME_UTC, false);
	assert_true(changed(&days, BEFORE_STEP));
	assert_true(changed(&days, BEFORE_STEP - 3600 * SEC));
	/* seconds since 1970 need no dates */
	event_days_init(&days, EVENT_TIME_EPOCH, false);
	assert_false(changed(&days, BEFORE_STEP));
	/* who looks at today's events knows the date */
	event_days_init(&days, EVENT_TIME_LOCAL, true);
	assert_true(changed(&days, BEFORE_STEP));
	event_days_init(&days, EVENT_TIME_LOCAL, true);
	assert_false(changed(&days, (uint64_t)time(NULL) * SEC));
	event_time_put_day(&local, BEFORE_STEP, &text);
	text_char(&text, '\0');
	assert_string_equal(text.bytes, "2026-10-25 CEST\n");
	text_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_of_day),
		cmocka_unit_test(test_of_trigger),
		cmocka_unit_test(test_days),
	};

	/* needs no time zone database */
	(void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
