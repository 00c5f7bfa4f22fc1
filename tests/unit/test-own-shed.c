/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which events were not recorded for a while, as lines of text */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/strv.h"
#include "formats/own-shed.h"

static void assert_lines(const struct own_sheds *sheds, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	assert_int_equal(own_sheds_put(sheds, 1000, &text, &size), 0);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
}

static void count(void *userdata, size_t at)
{
	*(size_t *)userdata += 1000 + at;
}

static void test_lines(void **state)
{
	static const char lines[] = "5\t7\tsched:sched_switch\n6\t18446744073709551615\tirq:x\n";
	_cleanup_own_sheds_ struct own_sheds sheds = {};

	assert_int_equal(own_sheds_take(&sheds, (const uint8_t *)lines, strlen(lines), NULL, NULL),
			 0);
	assert_int_equal(sheds.n, 2);
	assert_lines(&sheds, lines);
	/* who knows its end comes later */
	assert_int_equal(own_sheds_add(&sheds, "irq:x", 6, 9), 0);
	assert_int_equal(own_sheds_add(&sheds, "irq:x", 20, UINT64_MAX), 0);
	assert_lines(&sheds, "5\t7\tsched:sched_switch\n6\t9\tirq:x\n"
			     "20\t18446744073709551615\tirq:x\n");
	own_sheds_end(&sheds, 30);
	assert_lines(&sheds, "5\t7\tsched:sched_switch\n6\t9\tirq:x\n20\t30\tirq:x\n");
	own_sheds_trim(&sheds, 2);
	assert_lines(&sheds, "6\t9\tirq:x\n20\t30\tirq:x\n");
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"5",
		"5\t7",
		"5\t7\t",
		"7\t5\ta:b",
		"x\t7\ta:b",
		"5\t\ta:b",
		"5\t7\ta\tb",
		"5\t7\ta\x1b",
		"18446744073709551616\t7\ta:b",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_own_sheds_ struct own_sheds sheds = {};
		_cleanup_free_ char *lines = strf("1\t2\ta:b\n%s\n3\t4\tc:d\n", bad[i]);
		size_t told = 0;

		assert_non_null(lines);
		assert_int_equal(
			own_sheds_take(&sheds, (const uint8_t *)lines, strlen(lines), count, &told),
			0);
		assert_int_equal(told, 1000 + strlen("1\t2\ta:b\n"));
		assert_lines(&sheds, "1\t2\ta:b\n3\t4\tc:d\n");
	}
}

/* Too long rather than too short; and what does not fit then is a whole line less */
static void test_no_room(void **state)
{
	_cleanup_own_sheds_ struct own_sheds sheds = {};
	_cleanup_free_ char *text = NULL, *less = NULL;
	size_t size;

	for (unsigned i = 10; i < 40; i++)
		assert_int_equal(own_sheds_add(&sheds, i % 3 ? "a:b" : "c:d", i, i + 5), 0);
	assert_int_equal(own_sheds_put(&sheds, 60, &text, &size), 0);
	assert_int_equal(size, strlen("10\t43\ta:b\n12\t44\tc:d\n"));
	assert_memory_equal(text, "10\t43\ta:b\n12\t44\tc:d\n", size);
	assert_int_equal(own_sheds_put(&sheds, 19, &less, &size), 0);
	assert_int_equal(size, strlen("10\t43\ta:b\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
