/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* basic/parse: what is a size, a time, a boolean, a list of CPUs, and what is not */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "basic/parse.h"

#define ANYTHING 4242

struct number_case {
	const char *text;
	int error;
	uint64_t value;
};

static void run(const struct number_case *cases, size_t n,
		int (*parse)(const char *text, uint64_t *ret))
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = ANYTHING;
		int r = parse(cases[i].text, &value);

		if (r != cases[i].error)
			fail_msg("\"%s\": %d instead of %d", cases[i].text, r, cases[i].error);
		if (value != (r < 0 ? ANYTHING : cases[i].value))
			fail_msg("\"%s\": %llu", cases[i].text, (unsigned long long)value);
	}
}

static void test_sizes(void **state)
{
	static const struct number_case cases[] = {
		{"0", 0, 0},
		{"512", 0, 512},
		{"512B", 0, 512},
		{"4K", 0, 4096},
		{" 4 K ", 0, 4096},
		{"3M", 0, 3 * MIB},
		{"2G", 0, 2 * GIB},
		{"1T", 0, TIB},
		{"1.5G", 0, GIB + GIB / 2},
		{"1.25K", 0, 1280},
		{"0.1K", 0, 102},
		{"1.0000000000000000000000001K", 0, 1024},
		{"18446744073709551615", 0, UINT64_MAX},
		{"16777215T", 0, 16777215 * TIB},
		{"18446744073709551616", -ERANGE},
		{"16777216T", -ERANGE},
		{"99999999999999999999999999", -ERANGE},
		{"", -EINVAL},
		{" ", -EINVAL},
		{"K", -EINVAL},
		{"-1", -EINVAL},
		{"+1", -EINVAL},
		{"4k", -EINVAL},
		{"4KB", -EINVAL},
		{"4KiB", -EINVAL},
		{"4K4", -EINVAL},
		{"4K 4K", -EINVAL},
		{"4Kx", -EINVAL},
		{"1.", -EINVAL},
		{".5K", -EINVAL},
		{"0x10", -EINVAL},
		{"1e3", -EINVAL},
		{"infinity", -EINVAL},
	};

	run(cases, ARRAY_SIZE(cases), parse_size);
}

static void test_times(void **state)
{
	static const uint64_t s = USEC_PER_SEC;
	const struct number_case cases[] = {
		{"0", 0, 0},
		{"90", 0, 90 * s},
		{"5s", 0, 5 * s},
		{"1us", 0, 1},
		{"1µs", 0, 1},
		{"150ms", 0, 150000},
		{"2min", 0, 120 * s},
		{"2m", 0, 120 * s},
		{"1h 30min", 0, 5400 * s},
		{"1h30min", 0, 5400 * s},
		{"2min 200ms", 0, 120200000},
		{"1h 30", 0, 3630 * s},
		{"1d", 0, 86400 * s},
		{"1w", 0, 7 * 86400 * s},
		{"1month", 0, 2629800 * s},
		{"1M", 0, 2629800 * s},
		{"1y", 0, 31557600 * s},
		{"0.5", 0, s / 2},
		{"1.5h", 0, 5400 * s},
		{"0.0000001s", 0, 0},
		{"1.999999999y", 0, 63115199968442},
		{" 5 s ", 0, 5 * s},
		{"3 hours 2 seconds", 0, 10802 * s},
		{"18446744073709551615us", 0, UINT64_MAX},
		{"18446744073709551615us 1us", -ERANGE},
		{"18446744073709551616us", -ERANGE},
		{"18446744073710s", -ERANGE},
		{"600000y", -ERANGE},
		{"", -EINVAL},
		{"s", -EINVAL},
		{"-5s", -EINVAL},
		{"5x", -EINVAL},
		{"5S", -EINVAL},
		{"5s,", -EINVAL},
		{"5s -1s", -EINVAL},
		{"1h 30min x", -EINVAL},
		{"1..5s", -EINVAL},
	};

	run(cases, ARRAY_SIZE(cases), parse_time);
}

static void test_numbers(void **state)
{
	static const struct number_case cases[] = {
		{"0", 0, 0},	 {"007", 0, 7}, {" 12 ", 0, 12}, {"1 2", -EINVAL},
		{"1x", -EINVAL}, {"", -EINVAL}, {"-1", -EINVAL}, {"18446744073709551616", -ERANGE},
	};
	unsigned n = ANYTHING;

	run(cases, ARRAY_SIZE(cases), parse_u64);
	assert_int_equal(parse_unsigned("4294967296", &n), -ERANGE);
	assert_int_equal(n, ANYTHING);
	assert_int_equal(parse_unsigned("4294967295", &n), 0);
	assert_int_equal(n, UINT_MAX);
}

static void test_percent(void **state)
{
	unsigned n = ANYTHING;

	assert_int_equal(parse_percent("101", &n), -ERANGE);
	assert_int_equal(parse_percent("101%", &n), -ERANGE);
	assert_int_equal(parse_percent("99999999999999999999", &n), -ERANGE);
	assert_int_equal(parse_percent("%", &n), -EINVAL);
	assert_int_equal(parse_percent("5%%", &n), -EINVAL);
	assert_int_equal(parse_percent("5.5%", &n), -EINVAL);
	assert_int_equal(n, ANYTHING);
	assert_int_equal(parse_percent("100%", &n), 0);
	assert_int_equal(n, 100);
	assert_int_equal(parse_percent("0", &n), 0);
	assert_int_equal(n, 0);
}

static void test_booleans(void **state)
{
	static const char *const yes[] = {"1", "yes", "y", "true", "t", "on", "YES", "On"};
	static const char *const no[] = {"0", "no", "n", "false", "f", "off", "No"};
	static const char *const neither[] = {"", "2", "ye", "yess", "yes no", "disabled"};
	bool b;

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		b = false;
		assert_int_equal(parse_bool(yes[i], &b), 0);
		assert_true(b);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		b = true;
		assert_int_equal(parse_bool(no[i], &b), 0);
		assert_false(b);
	}
	for (size_t i = 0; i < ARRAY_SIZE(neither); i++)
		assert_int_equal(parse_bool(neither[i], &b), -EINVAL);
}

static void test_cpu_lists(void **state)
{
	static const struct {
		const char *text;
		int error;
		const char *canonical;
	} cases[] = {
		{"0", 0, "0"},	       {"0-3,8", 0, "0-3,8"},	{"8,3,2,1,0", 0, "0-3,8"},
		{"0-1 2-3", 0, "0-3"}, {"0, 2", 0, "0,2"},	{"0 , 2", 0, "0,2"},
		{"5-5", 0, "5"},       {"0-8191", 0, "0-8191"}, {"62-65,63", 0, "62-65"},
		{"8192", -ERANGE},     {"0-8192", -ERANGE},	{"0-99999999999999999999", -ERANGE},
		{"", -EINVAL},	       {"3-0", -EINVAL},	{"0-", -EINVAL},
		{"-3", -EINVAL},       {"0,", -EINVAL},		{",0", -EINVAL},
		{"0,,1", -EINVAL},     {"0x", -EINVAL},		{"0-3-5", -EINVAL},
		{"all", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cpu_list list = {};
		char *text = NULL;
		int r = parse_cpu_list(cases[i].text, &list);

		if (r != cases[i].error)
			fail_msg("\"%s\": %d instead of %d", cases[i].text, r, cases[i].error);
		if (r < 0)
			continue;
		assert_int_equal(cpu_list_format(&list, &text), 0);
		assert_string_equal(text, cases[i].canonical);
		free(text);
	}
}

static void test_cpu_list_add(void **state)
{
	static const unsigned cpus[] = {8191, 64, 0, 63, 64};
	_cleanup_free_ char *text = NULL;
	struct cpu_list list = {};

	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
		cpu_list_add(&list, cpus[i]);
	assert_int_equal(cpu_list_format(&list, &text), 0);
	assert_string_equal(text, "0,63-64,8191");
}

static void test_cpu_list_has(void **state)
{
	struct cpu_list list;

	assert_int_equal(parse_cpu_list("0,63-64,8191", &list), 0);
	assert_true(cpu_list_has(&list, 0));
	assert_false(cpu_list_has(&list, 1));
	assert_true(cpu_list_has(&list, 63));
	assert_true(cpu_list_has(&list, 64));
	assert_false(cpu_list_has(&list, 65));
	assert_true(cpu_list_has(&list, 8191));
	assert_false(cpu_list_has(&list, 8192));
	assert_false(cpu_list_has(&list, UINT_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),	     cmocka_unit_test(test_times),
		cmocka_unit_test(test_numbers),	     cmocka_unit_test(test_percent),
		cmocka_unit_test(test_booleans),     cmocka_unit_test(test_cpu_lists),
		cmocka_unit_test(test_cpu_list_has), cmocka_unit_test(test_cpu_list_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
