/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The carry alone: what is kept, in which order, and how large its file becomes.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tmp.h"
#include "writer/carry.h"

#define SUBBUF 4096U

static void append(struct carry *c, unsigned cpu, uint64_t first, size_t n)
{
	char *bytes = calloc(n, SUBBUF);

	for (size_t i = 0; i < n; i++) {
		uint64_t t = first + i;

		memset(bytes + i * SUBBUF, (int)(t + cpu * 7), SUBBUF);
		memcpy(bytes + i * SUBBUF, &t, sizeof(t));
	}
	assert_int_equal(carry_reserve(c, n), 0);
	assert_int_equal(carry_append(c, cpu, bytes, n), 0);
	free(bytes);
}

static void assert_has(const struct carry *c, unsigned cpu, uint64_t first, size_t n)
{
	size_t have;
	const struct carry_item *items = carry_list(c, cpu, &have);

	assert_int_equal(have, n);
	for (size_t i = 0; i < n; i++) {
		char bytes[SUBBUF];
		uint64_t t;

		assert_int_equal(items[i].timestamp, first + i);
		assert_int_equal(carry_read(c, &items[i], bytes), 0);
		memcpy(&t, bytes, sizeof(t));
		assert_int_equal(t, first + i);
		for (size_t k = 8; k < SUBBUF; k++)
			assert_int_equal((unsigned char)bytes[k],
					 (unsigned char)(first + i + cpu * 7));
	}
}

static void test_keeps_the_newest(void **state)
{
	struct carry *c;
	struct tmp tmp;
	uint64_t most = 0;

	tmp_init(&tmp);
	assert_int_equal(carry_new(tmp.fd, 2, SUBBUF, &c), 0);
	assert_has(c, 0, 0, 0);
	append(c, 0, 100, 10);
	append(c, 1, 500, 3);
	append(c, 0, 110, 5);
	assert_has(c, 0, 100, 15);
	carry_trim(c, 0, 8);
	assert_has(c, 0, 107, 8);
	assert_has(c, 1, 500, 3);
	carry_trim(c, 0, 100);
	assert_has(c, 0, 107, 8);
	for (unsigned round = 0; round < 200; round++) {
		size_t n;
		const struct carry_item *items;

		append(c, 0, 115 + round * 7ULL, 7);
		append(c, 1, 503 + round, 1);
		carry_trim(c, 0, 8);
		carry_trim(c, 1, 4);
		items = carry_list(c, 0, &n);
		for (size_t i = 0; i < n; i++)
			most = MAX(most, items[i].slot);
	}
	assert_has(c, 0, 115 + 200 * 7 - 8, 8);
	assert_has(c, 1, 503 + 200 - 4, 4);
	assert_true(most < 40); /* places are used again */
	carry_trim(c, 0, 0);
	assert_has(c, 0, 0, 0);
	carry_free(c);
	carry_free(NULL);
	assert_int_equal(tmp_count(&tmp), 0);
	tmp_done(&tmp);
}

static void test_sorts_what_comes_late(void **state)
{
	struct carry *c;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_int_equal(carry_new(tmp.fd, 1, SUBBUF, &c), 0);
	carry_sort(c, 0);
	append(c, 0, 10, 5);
	append(c, 0, 20, 5);
	append(c, 0, 15, 5);
	carry_sort(c, 0);
	assert_has(c, 0, 10, 15);
	carry_free(c);
	tmp_done(&tmp);
}

/* A clock that stands still: in the order in which they came, whatever slots they got */
static void test_leaves_order_alone(void **state)
{
	const struct carry_item *items;
	char bytes[SUBBUF] = {};
	struct carry *c;
	struct tmp tmp;
	size_t n;

	tmp_init(&tmp);
	assert_int_equal(carry_new(tmp.fd, 1, SUBBUF, &c), 0);
	append(c, 0, 1, 4);
	carry_trim(c, 0, 0); /* slots are given out anew */
	for (size_t i = 0; i < 6; i++) {
		memset(bytes + 8, (int)i, SUBBUF - 8);
		assert_int_equal(carry_append(c, 0, bytes, 1), 0);
	}
	carry_sort(c, 0);
	items = carry_list(c, 0, &n);
	assert_int_equal(n, 6);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(carry_read(c, &items[i], bytes), 0);
		assert_int_equal(bytes[8], i);
	}
	carry_free(c);
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_the_newest),
		cmocka_unit_test(test_sorts_what_comes_late),
		cmocka_unit_test(test_leaves_order_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
