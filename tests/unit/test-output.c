/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/output.h"

static void assert_short(const char *text, unsigned width, bool tail, const char *wanted)
{
	char *is = text_shorten(text, width, tail, "…");

	assert_string_equal(is, wanted);
	assert_true(text_width(is) <= (width > 1 ? width : 1));
	free(is);
}

static void test_shorten(void **state)
{
	char *dots;

	assert_short("Scheduler", 9, false, "Scheduler");
	assert_short("Scheduler", 8, false, "Schedul…");
	assert_short("Scheduler", 8, true, "…heduler");
	assert_short("Scheduler", 1, false, "…");
	assert_short("", 3, true, "");
	/* characters, not bytes, and none is cut */
	assert_short("äöüäöü", 6, false, "äöüäöü");
	assert_short("äöüäöü", 4, false, "äöü…");
	assert_short("äöüäöü", 4, true, "…äöü");
	dots = text_shorten("Scheduler", 8, true, "...");
	assert_string_equal(dots, "...duler");
	free(dots);
}

static void fill(struct table *t, const char *name, const char *lost, const char *text)
{
	table_add_text(t, name);
	table_add_text(t, lost);
	table_add_text(t, text);
}

static void drop(struct table *t)
{
	for (size_t i = 0; i < t->n_rows; i++)
		free(t->cells[i]);
	free(t->cells);
}

static void test_fit(void **state)
{
	struct table t = {.headings = {"SESSION", "LOST", "DESCRIPTION"},
			  .n_columns = 3,
			  .shorten = 1U << 2,
			  .spare = 1U << 1};
	unsigned w[TABLE_COLUMNS_MAX];

	fill(&t, "a-name-of-20-letters", "0", "a description of all of 40 letters, long");
	fill(&t, "b", "-", "short");
	/* as wide as it wants to be */
	table_fit(&t, 100, w);
	assert_int_equal(w[0], 20);
	assert_int_equal(w[1], 4);
	assert_int_equal(w[2], 40);
	/* what may be shortened gives way, and no more than needed */
	table_fit(&t, 60, w);
	assert_int_equal(w[0], 20);
	assert_int_equal(w[1], 4);
	assert_int_equal(w[2], 32);
	/* then what says nothing */
	table_fit(&t, 31, w);
	assert_int_equal(w[0], 20);
	assert_int_equal(w[1], 0);
	assert_int_equal(w[2], 8);
	/* never a name */
	table_fit(&t, 10, w);
	assert_int_equal(w[0], 20);
	drop(&t);
}

/* A column in which something is lost is not left out */
static void test_kept(void **state)
{
	struct table t = {.headings = {"SESSION", "LOST", "DESCRIPTION"},
			  .n_columns = 3,
			  .shorten = 1U << 2,
			  .spare = 1U << 1};
	unsigned w[TABLE_COLUMNS_MAX];

	fill(&t, "a", "0", "text");
	fill(&t, "b", "7", "text");
	table_fit(&t, 5, w);
	assert_int_equal(w[1], 4);
	drop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shorten),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
