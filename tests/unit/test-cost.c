/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much there is of each event in a time, and what that costs */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/rates.h"
#include "ctl/cost-sums.h"
#include "tests/unit/analysis-fixture.h"

#define PAGE	4096U
#define MSEC	1000000U /* nanoseconds */
#define DATE	1000000U /* microseconds that a time of the trace clock is behind */
#define EVENT	20U	 /* bytes of data; a head of 4 */
#define N_PAGES 10U

/* --- rates */

/* A sub-buffer each 100 ms from 100 ms on, in each ten events, one a ms: nine of one kind and one
 * of another */
static int make_file(struct craft kind, const char *date, unsigned first)
{
	const uint32_t numbers[3] = {};
	struct craft file = kind, pages = kind;

	for (unsigned i = 0; i < N_PAGES; i++) {
		size_t page = craft_page_begin(&pages, (uint64_t)(first + i) * 100 * MSEC);

		for (unsigned k = 0; k < 10; k++) {
			struct craft event = kind;

			fixture_numbers(&event, k == 5 ? ID_SOFTIRQ_EXIT : ID_RAW_ENTER, 1, numbers,
					3);
			fixture_put(&pages, k == 0 ? 0 : MSEC, &event);
			craft_done(&event);
		}
		craft_page_end(&pages, page, PAGE, 0);
	}
	craft_file(&file, &(struct craft_file){.formats = fixture_formats,
					       .n_formats = FIXTURE_FORMATS,
					       .clock = "local [mono]\n",
					       .date = date,
					       .pages = &pages});
	craft_done(&pages);
	return craft_fd(&file);
}

static int read_rates(const struct source *sources, size_t n, uint64_t short_msec,
		      uint64_t long_msec, uint64_t to_msec, uint64_t max, struct rates *ret)
{
	const struct rates_config config = {
		.sources = sources,
		.n = n,
		.from_usec = {DATE + short_msec * 1000, DATE + long_msec * 1000},
		.to_usec = DATE + to_msec * 1000,
		.read_max = max,
	};
	struct fault why;

	return rates_read(&config, ret, &why);
}

static void test_windows(void **state)
{
	FOR_EACH_CRAFT(kind)
	{
		struct source source = {"f", make_file(kind, "0xf4240", 1)};
		struct rates rates;

		/* from the middle of one sub-buffer to that of another */
		assert_int_equal(read_rates(&source, 1, 905, 304, 1003, GIB, &rates), 0);
		assert_int_equal(rates.count[RATES_LONG], 6 + 6 * 10 + 4);
		assert_int_equal(rates.count[RATES_SHORT], 5 + 4);
		assert_int_equal(rates.subbuf_bytes[RATES_LONG], 7 * PAGE);
		assert_int_equal(rates.subbuf_bytes[RATES_SHORT], PAGE);
		assert_int_equal(rates.n_events, 2);
		assert_string_equal(rates.events[0].name, "raw_syscalls:sys_enter");
		assert_string_equal(rates.events[1].name, "irq:softirq_exit");
		assert_int_equal(rates.events[1].count[RATES_LONG], 7);
		assert_int_equal(rates.events[1].count[RATES_SHORT], 1);
		assert_int_equal(rates.events[1].bytes[RATES_LONG], 7 * (4 + EVENT));
		assert_int_equal(rates.from_usec[RATES_LONG], DATE + 304 * 1000);
		rates_done(&rates);
		/* both ends belong to it; nothing is before the first */
		assert_int_equal(read_rates(&source, 1, 109, 0, 109, GIB, &rates), 0);
		assert_int_equal(rates.count[RATES_LONG], 10);
		assert_int_equal(rates.count[RATES_SHORT], 1);
		rates_done(&rates);
		close(source.fd);
	}
}

static void test_files(void **state)
{
	struct craft kind = craft_kinds[0];
	struct source sources[] = {{"a", make_file(kind, "0xf4240", 1)},
				   {"b", make_file(kind, "0xf4240", 11)}};
	const struct rates_config all = {
		.sources = sources,
		.n = 1,
		.to_usec = UINT64_MAX,
		.read_max = 4 * PAGE,
	};
	struct rates rates;
	struct fault why;

	assert_int_equal(read_rates(sources, 2, 1500, 0, 5000, GIB, &rates), 0);
	assert_int_equal(rates.count[RATES_LONG], 200);
	assert_int_equal(rates.count[RATES_SHORT], 60);
	assert_int_equal(rates.n_events, 2);
	rates_done(&rates);
	/* no more than may be read, of the end: less than a file, and a file and a bit */
	assert_int_equal(read_rates(sources, 2, 1500, 0, 5000, 4 * PAGE, &rates), 0);
	assert_in_range(rates.count[RATES_LONG], 20, 40);
	assert_int_equal(rates.count[RATES_LONG], rates.count[RATES_SHORT]);
	assert_in_range(rates.from_usec[RATES_LONG], DATE + 1600 * 1000, DATE + 1900 * 1000);
	assert_int_equal(rates.from_usec[RATES_LONG], rates.from_usec[RATES_SHORT]);
	rates_done(&rates);
	assert_int_equal(read_rates(sources, 2, 1500, 0, 5000, 14 * PAGE, &rates), 0);
	assert_in_range(rates.count[RATES_LONG], 120, 140);
	assert_int_equal(rates.count[RATES_SHORT], 60);
	assert_in_range(rates.from_usec[RATES_LONG], DATE + 600 * 1000, DATE + 900 * 1000);
	assert_int_equal(rates.from_usec[RATES_SHORT], DATE + 1500 * 1000);
	rates_done(&rates);
	/* the same of all times, as of a snapshot */
	assert_int_equal(rates_read(&all, &rates, &why), 0);
	assert_in_range(rates.count[RATES_LONG], 20, 40);
	assert_in_range(rates.from_usec[RATES_LONG], DATE + 600 * 1000, DATE + 900 * 1000);
	rates_done(&rates);
	close(sources[0].fd);
	close(sources[1].fd);
}

static void test_no_date(void **state)
{
	struct source source = {"f", make_file(craft_kinds[0], NULL, 1)};
	struct rates rates;

	assert_int_equal(read_rates(&source, 1, 0, 0, 5000, GIB, &rates), -EINVAL);
	close(source.fd);
}

/* --- sums */

static void test_cpu_time(void **state)
{
	struct cost_base base = {.cpus = 4, .event_nsec = 200, .byte_nsec = 0.5};
	const struct cost_rate rate = {.events = 100000, .bytes = 4e6}, part = {25000, 3e6};
	struct cost cost = cost_of(&base, &rate);

	/* 20 ms of 4 s, and 2 ms */
	assert_float_equal(cost.tracing, 0.005, 1e-9);
	assert_float_equal(cost.recorder, 0.0005, 1e-9);
	assert_int_equal(cost.history_usec, 0);
	cost = cost_without(&base, &rate, &part);
	assert_float_equal(cost.tracing, 0.00125, 1e-9);
	assert_float_equal(cost.recorder, 0.000375, 1e-9);
	base.event_nsec = 0;
	assert_float_equal(cost_of(&base, &rate).tracing, 0, 1e-9);
}

static void test_history(void **state)
{
	struct cost_base base = {.cpus = 1, .max_use = 3600000};
	const struct cost_rate rate = {.events = 10, .bytes = 1000}, half = {2, 500}, none = {},
			       all = {10, 900};

	assert_int_equal(cost_of(&base, &rate).history_usec, 3600 * USEC_PER_SEC);
	assert_int_equal(cost_without(&base, &rate, &half).history_usec, 3600 * USEC_PER_SEC);
	assert_int_equal(cost_of(&base, &none).history_usec, 0);
	/* what is left then is no event's */
	assert_int_equal(cost_without(&base, &rate, &all).history_usec, 0);
	/* a quarter of it when compressed */
	base.raw_bytes = 4000;
	base.packed_bytes = 1000;
	assert_int_equal(cost_of(&base, &rate).history_usec, 4 * 3600 * USEC_PER_SEC);
	/* a ring buffer */
	base = (struct cost_base){.cpus = 1, .holds_bytes = 5000};
	assert_int_equal(cost_of(&base, &rate).history_usec, 5 * USEC_PER_SEC);
	assert_int_equal(cost_without(&base, &rate, &half).history_usec, 5 * USEC_PER_SEC);
}

static void test_recorder(void **state)
{
	struct cost_recorder r = {
		.cpu_usec = 1000, .bytes = 1000000, .other_usec = 500, .other_bytes = 2000000};

	/* its own threads take 1 ns a byte, those that do the rest for all a quarter */
	assert_float_equal(cost_byte_nsec(&r), 1.25, 1e-9);
	r.bytes = 0;
	assert_float_equal(cost_byte_nsec(&r), 0.25, 1e-9);
	r.other_bytes = 0;
	assert_float_equal(cost_byte_nsec(&r), 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows), cmocka_unit_test(test_files),
		cmocka_unit_test(test_no_date), cmocka_unit_test(test_cpu_time),
		cmocka_unit_test(test_history), cmocka_unit_test(test_recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
