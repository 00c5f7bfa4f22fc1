/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnJournal='s terms, lines of the journal as they are in a file, also damaged at each place, and
 * which of them are shown.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/journal-lines.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "config/journal-match.h"
#include "formats/own-section.h"
#include "tests/unit/fake-file.h"

/* --- terms */

/* @entry: its fields */
static bool holds(const char *text, const char *const *entry)
{
	_cleanup_(strv_freep) char **terms = NULL;
	bool found[JOURNAL_TERMS] = {};
	struct fault why = {};

	if (journal_match_parse(text, &terms, &why) < 0)
		fail_msg("%s: %s", text, why.text);
	for (size_t i = 0; terms[i]; i++)
		for (size_t e = 0; entry[e]; e++)
			found[i] |= strcmp(terms[i], entry[e]) == 0;
	return journal_match_holds(terms, found);
}

static void test_terms(void **state)
{
	static const char *const entry[] = {"PRIORITY=3", "_COMM=a b", "UNIT=x.service", "X=it's",
					    NULL};
	static const char *const yes[] = {
		"PRIORITY=3",
		"PRIORITY=2 PRIORITY=3",
		"PRIORITY=3 UNIT=x.service PRIORITY=4 UNIT=y.service",
		"PRIORITY=4 + PRIORITY=3",
		"PRIORITY=4 + UNIT=y.service PRIORITY=3 + UNIT=x.service",
		"\"_COMM=a b\"",
		"_COMM='a b' PRIORITY=3",
		"_COMM=a' 'b",
		"X=\"it's\"",
	};
	static const char *const no[] = {
		"PRIORITY=2",
		"PRIORITY=3 UNIT=y.service",
		"PRIORITY=3 UNIT=y.service + PRIORITY=2 UNIT=x.service",
		"_COMM=a",
		"\"_COMM=a  b\"",
		"COMM=a + MM=x",
	};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (!holds(yes[i], entry))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (holds(no[i], entry))
			fail_msg("%s", no[i]);
	assert_false(journal_match_holds(NULL, NULL));
}

/* --- lines */

static void test_put(void **state)
{
	static const char message[] = "a\tb\n\033[31m\0\xff c\xc3\xa4";
	const struct own_journal_head put_head = {.from_usec = 5, .to_usec = 6, .left_out = 7};
	const struct own_journal_line put = {
		.usec = 1700000000000001,
		.priority = 7,
		.pid = 4000000000,
		.cut = true,
		.identifier = "id\tx",
		.unit = "",
	};
	static const char *const bad[] = {
		"1\t2\t3\t0\tid\tunit\ttext",	      /* cut */
		"1\t2\t3\t0\tid\tunit\n",	      /* a column is missing, */
		"1\t2\t3\t0\tid\tunit\ttext\tmore\n", /* one too many */
		"1\t8\t3\t0\tid\tunit\ttext\n",	      /* no priority */
		"x\t2\t3\t0\tid\tunit\ttext\n",
		"1\t2\t3\t2\tid\tunit\ttext\n",
		"1\t2\t3\t0\tid\tunit\ttext\033\n", /* a control character */
		"\n",
	};
	_cleanup_free_ char *head = own_journal_put_head(&put_head), *all = NULL;
	_cleanup_free_ char *line = own_journal_put(&put, message, sizeof(message) - 1);
	struct own_journal_head took_head;
	struct own_journal_line took;
	size_t at = 0, size;

	assert_non_null(head);
	assert_non_null(line);
	all = strf("%s%s", head, line);
	size = strlen(all);
	assert_int_equal(own_journal_take_head(all, size, &at, &took_head), 1);
	assert_memory_equal(&took_head, &put_head, sizeof(put_head));
	assert_int_equal(own_journal_take(all, size, &at, &took), 1);
	assert_int_equal(took.usec, put.usec);
	assert_int_equal(took.priority, 7);
	assert_int_equal(took.pid, put.pid);
	assert_true(took.cut);
	assert_string_equal(took.identifier, "id x");
	assert_string_equal(took.unit, "");
	assert_string_equal(took.message, "a b\\n\\x1b[31m\\x00\\xff c\xc3\xa4");
	assert_int_equal(own_journal_take(all, size, &at, &took), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_free_ char *copy = strdup(bad[i]);

		at = 0;
		assert_int_equal(own_journal_take(copy, strlen(bad[i]), &at, &took), -EBADMSG);
		assert_int_equal(at, strlen(bad[i]));
	}
}

/* "USEC PRIORITY MESSAGE" each */
static char *text_of(const char *const *lines, uint64_t left_out)
{
	const struct own_journal_head head = {.from_usec = 1, .to_usec = 9, .left_out = left_out};
	char *text = own_journal_put_head(&head);

	for (; *lines; lines++) {
		_cleanup_free_ char *before = text, *line = NULL;
		struct own_journal_line put = {.identifier = "id", .unit = "u.service", .pid = 3};
		char message[64];

		assert_int_equal(sscanf(*lines, "%" SCNu64 " %" SCNu32 " %63s", &put.usec,
					&put.priority, message),
				 3);
		line = own_journal_put(&put, message, strlen(message));
		text = strf("%s%s", before, line);
		assert_non_null(text);
	}
	return text;
}

static void put_file(struct fake *f, const char *name, const char *text, size_t size)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_file_ struct trace_file *file = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct fault why = {};

	(void)unlinkat(f->dir_fd, name, 0);
	f->params.own = (struct own_content){.journal_room = 4096};
	file = fake_create(f, name);
	fd = openat(f->dir_fd, name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, name, &dat, &why), 0);
	if (own_section_write(dat, OWN_JOURNAL, text, size, &why) < 0)
		fail_msg("%s", why.text);
}

/* Return: as journal_lines_add() */
static int add_file(struct fake *f, const char *name, struct journal_lines *lines)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = openat(f->dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct fault why = {};
	int r;

	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, name, &dat, &why), 0);
	r = journal_lines_add(lines, dat, &why);
	assert_true(r == 0 || why.text[0]);
	return r;
}

static void assert_lines(const struct own_journal_line *list, size_t n, const char *wanted)
{
	_cleanup_free_ char *all = strdup("");

	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *before = all;

		all = strf("%s%s%s", before, i > 0 ? " " : "", list[i].message);
	}
	assert_string_equal(all, wanted);
}

static void test_files(void **state)
{
	static const char *const early[] = {"1000000 6 a", "1500000 3 b", "1400000 6 c", NULL};
	static const char *const late[] = {"1400000 6 c", "1500000 3 b", "2000000 4 d", NULL};
	const struct sources_facts dated = {.in_usecs = true, .has_date = true}, plain = {};
	const struct own_journal_line *list;
	struct journal_lines lines = {};
	struct fake f;

	fake_init(&f, 1);
	for (unsigned i = 0; i < 2; i++) {
		_cleanup_free_ char *text = text_of(i == 0 ? early : late, i + 1);

		put_file(&f, "a.dat", text, strlen(text));
		assert_int_equal(add_file(&f, "a.dat", &lines), 0);
	}
	/* room alone, and none at all */
	put_file(&f, "a.dat", "", 0);
	assert_int_equal(add_file(&f, "a.dat", &lines), 0);
	assert_int_equal(lines.n_files, 2);
	assert_int_equal(lines.left_out, 3);
	journal_lines_sort(&lines);
	assert_lines(lines.list, lines.n, "a c b d");
	assert_int_equal(journal_lines_near(&lines, &dated, 1600000000, 1900000000, &list), 2);
	assert_lines(list, 2, "b d");
	assert_int_equal(journal_lines_near(&lines, &dated, 1600001000, 1899998000, &list), 0);
	assert_int_equal(journal_lines_near(&lines, &dated, 0, UINT64_MAX, &list), 4);
	/* times that are no dates cannot be compared */
	assert_int_equal(journal_lines_near(&lines, &plain, 0, UINT64_MAX, &list), 0);
	journal_lines_keep(&lines, &plain, 5, 6);
	assert_int_equal(lines.n, 4);
	journal_lines_keep(&lines, &dated, 1450000000, 1500000000);
	assert_lines(lines.list, lines.n, "c b");
	journal_lines_keep(&lines, &dated, 5, 6);
	assert_int_equal(lines.n, 0);
	journal_lines_done(&lines);
	fake_done(&f);
}

static void test_damage(void **state)
{
	static const char *const some[] = {"1000000 6 a", "1500000 3 b", NULL};
	_cleanup_free_ char *text = text_of(some, 0);
	const size_t size = strlen(text);
	struct journal_lines lines = {};
	struct fake f;

	fake_init(&f, 1);
	/* what is left at each place: whole lines, or none of the file's */
	for (size_t n = 1; n <= size; n++) {
		put_file(&f, "a.dat", text, n);
		assert_int_equal(add_file(&f, "a.dat", &lines), text[n - 1] == '\n' ? 0 : -EBADMSG);
		assert_int_equal(lines.n_files, text[n - 1] == '\n');
		assert_true(lines.n <= 2);
		journal_lines_done(&lines);
	}
	/* one that would not have been written */
	for (size_t i = 0; i < size; i++) {
		char was = text[i];

		text[i] = '\033';
		put_file(&f, "a.dat", text, size);
		assert_int_equal(add_file(&f, "a.dat", &lines), -EBADMSG);
		assert_int_equal(lines.n, 0);
		text[i] = was;
	}
	journal_lines_done(&lines);
	fake_done(&f);
}

static void assert_picked(const struct own_journal_line *list, size_t n, uint32_t worst, size_t max,
			  const char *wanted)
{
	const struct own_journal_line *picked[8];
	struct own_journal_line copies[8];
	size_t got = journal_lines_pick(list, n, worst, max, picked);

	assert_true(got <= max);
	for (size_t i = 0; i < got; i++)
		copies[i] = *picked[i];
	assert_lines(copies, got, wanted);
}

static void test_pick(void **state)
{
	const struct own_journal_line list[] = {
		{.priority = 6, .message = "a"}, {.priority = 3, .message = "b"},
		{.priority = 6, .message = "c"}, {.priority = 4, .message = "d"},
		{.priority = 4, .message = "e"}, {.priority = 0, .message = "f"},
	};

	assert_picked(list, 6, 7, 8, "a b c d e f");
	assert_picked(list, 6, 7, 6, "a b c d e f");
	assert_picked(list, 6, 7, 5, "a b d e f");
	assert_picked(list, 6, 7, 3, "b d f");
	assert_picked(list, 6, 7, 1, "f");
	assert_picked(list, 6, 4, 8, "b d e f");
	assert_picked(list, 6, 4, 3, "b d f");
	assert_picked(list, 1, 4, 3, "");
	assert_picked(list, 6, 7, 0, "");
	assert_picked(NULL, 0, 7, 3, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terms), cmocka_unit_test(test_put),
		cmocka_unit_test(test_files), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_pick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
