/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* basic/ini: texts, and what the reader reports for each, one report a line */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "basic/ini.h"

struct report {
	FILE *f;
	int fail_at; /* line of the entry that on_entry refuses, 0: none */
};

static int on_entry(const struct ini_entry *entry, void *userdata)
{
	struct report *report = userdata;

	assert_string_equal(entry->file, "x.conf");
	if (entry->key)
		(void)fprintf(report->f, "%u %s.%s=<%s>\n", entry->line, entry->section, entry->key,
			      entry->value);
	else
		(void)fprintf(report->f, "%u [%s]\n", entry->line, entry->section);
	return report->fail_at && entry->line == (unsigned)report->fail_at ? -ECANCELED : 0;
}

static void on_fault(const char *file, unsigned line, const char *text, void *userdata)
{
	struct report *report = userdata;

	assert_string_equal(file, "x.conf");
	(void)fprintf(report->f, "%u ! %s\n", line, text);
}

static const struct ini_handler handler = {.on_entry = on_entry, .on_fault = on_fault};

static void check(const char *text, size_t size, int fail_at, int result, const char *expected)
{
	struct report report = {.fail_at = fail_at};
	char *got = NULL, *exact;
	size_t n = 0;

	exact = malloc(size ? size : 1); /* so that AddressSanitizer sees a byte too far */
	assert_non_null(exact);
	memcpy(exact, text, size);
	report.f = open_memstream(&got, &n);
	assert_non_null(report.f);
	assert_int_equal(ini_parse("x.conf", exact, size, &handler, &report), result);
	assert_int_equal(fclose(report.f), 0);
	assert_string_equal(got, expected);
	free(got);
	free(exact);
}

#define CHECK(text, expected) check(text, sizeof(text) - 1, 0, 0, expected)

static void test_plain(void **state)
{
	CHECK("", "");
	CHECK("\n\n", "");
	CHECK("[A]", "1 [A]\n");
	CHECK("[A]\nk=v", "1 [A]\n2 A.k=<v>\n");
	CHECK("  [A]\t\n\n\t k \t=\t v w \t\n", "1 [A]\n3 A.k=<v w>\n");
	CHECK("[A]\nk=\n[B]\nk==\n", "1 [A]\n2 A.k=<>\n3 [B]\n4 B.k=<=>\n");
	CHECK("[A]\nEvent=a:b if comm == \"x  y\" && z # no comment ; nor this\n",
	      "1 [A]\n2 A.Event=<a:b if comm == \"x  y\" && z # no comment ; nor this>\n");
	CHECK("[A]\nk='v'\nk=\"v\"\nk=\xc3\xbc\n",
	      "1 [A]\n2 A.k=<'v'>\n3 A.k=<\"v\">\n4 A.k=<\xc3\xbc>\n");
}

static void test_comments(void **state)
{
	CHECK("# a\n; b\n  # c\n[A]\n#k=v\n\t;k=v\nk=v\n", "4 [A]\n7 A.k=<v>\n");
	CHECK("# not UTF-8: \xe9\n[A]\n", "2 [A]\n");
	CHECK("# no continuation \\\n[A]\n", "2 [A]\n");
}

static void test_continuation(void **state)
{
	/* the example of systemd.syntax(7) */
	CHECK("[Section C]\nKeyThree=value 3\\\n# this line is ignored\n"
	      "; this line is ignored too\n       value 3 continued\n",
	      "1 [Section C]\n2 Section C.KeyThree=<value 3        value 3 continued>\n");
	CHECK("[A]\nk=a\\\nb\\\nc\nl=d\n", "1 [A]\n2 A.k=<a b c>\n5 A.l=<d>\n");
	CHECK("[A]\nk=a\\\n\nl=b\n", "1 [A]\n2 A.k=<a>\n4 A.l=<b>\n");
	CHECK("[A]\nk=a\\\\\nl=b\n", "1 [A]\n2 A.k=<a\\\\>\n3 A.l=<b>\n");
	CHECK("[A]\nk=a\\\\\\\nb\n", "1 [A]\n2 A.k=<a\\\\ b>\n");
	CHECK("[A]\nk=a\\", "1 [A]\n2 A.k=<a>\n");
	CHECK("[A]\nk\\\n=\\\nv\n", "1 [A]\n2 A.k=<v>\n");
	CHECK("[A]\nk=a \\ b\n", "1 [A]\n2 A.k=<a \\ b>\n");
}

static void test_line_ends(void **state)
{
	CHECK("\xef\xbb\xbf[A]\r\nk=v\r\nl=a\\\r\n b\r\n", "1 [A]\n2 A.k=<v>\n3 A.l=<a  b>\n");
	CHECK("[A]\n\xef\xbb\xbfk=v\n", "1 [A]\n2 A.\xef\xbb\xbfk=<v>\n");
	CHECK("[A]\nk=a\rb\nl=c\n",
	      "1 [A]\n2 ! a carriage return in the middle of a line\n3 A.l=<c>\n");
}

static void test_faults(void **state)
{
	CHECK("[A]\nnothing\nk=v\n=v\n = v\nl=w\n",
	      "1 [A]\n2 ! missing '='\n3 A.k=<v>\n4 ! missing key before '='\n"
	      "5 ! missing key before '='\n6 A.l=<w>\n");
	CHECK("k=v\n[A]\nk=v\n", "1 ! assignment before the first [Section]\n2 [A]\n3 A.k=<v>\n");
	/* what follows a bad header is nobody's, but its own faults are still reported */
	CHECK("[A]\n[B\nk=v\nx\n[C]\nk=v\n",
	      "1 [A]\n2 ! a section header must end in ']'\n4 ! missing '='\n5 [C]\n6 C.k=<v>\n");
	CHECK("[]\n[A]]\n[A] # x\n[[A]\n",
	      "1 ! not a section header: a name in [brackets] is needed\n"
	      "2 ! not a section header: a name in [brackets] is needed\n"
	      "3 ! a section header must end in ']'\n"
	      "4 ! not a section header: a name in [brackets] is needed\n");
	CHECK("[", "1 ! a section header must end in ']'\n");
	/* the fault of a continued line is at the line that has it; all of the line is dropped */
	CHECK("[A]\nk=a\\\nb\x01\\\nc=d\nl=e\n", "1 [A]\n3 ! a control character\n5 A.l=<e>\n");
}

static void test_not_text(void **state)
{
	CHECK("[A]\nk=a\0b\nl=c\n", "1 [A]\n2 ! a NUL byte: this is not a text file\n3 A.l=<c>\n");
	CHECK("#\0\n[A]\n", "1 ! a NUL byte: this is not a text file\n2 [A]\n");
	CHECK("[A]\nk=\x1b[0m\nk=\x7f\nk=a\tb\n",
	      "1 [A]\n2 ! a control character\n3 ! a control character\n4 A.k=<a\tb>\n");
	CHECK("[A]\nk=\xe9\nk=\xc0\x80\nk=\xed\xa0\x80\nk=\xf4\x90\x80\x80\nk=\xe2\x82\n",
	      "1 [A]\n2 ! not valid UTF-8\n3 ! not valid UTF-8\n4 ! not valid UTF-8\n"
	      "5 ! not valid UTF-8\n6 ! not valid UTF-8\n");
	CHECK("[A]\nk=\xe2\x82\xac\xf0\x9f\x98\x80\n",
	      "1 [A]\n2 A.k=<\xe2\x82\xac\xf0\x9f\x98\x80>\n");
}

static void test_long_line(void **state)
{
	size_t size = 3 * MIB, at = strlen("[A]\nk=");
	char *text = malloc(size), *expected = malloc(size + 64);

	assert_non_null(text);
	assert_non_null(expected);
	memset(text, 'x', size);
	memcpy(text, "[A]\nk=", at);
	text[at + MIB] = '\\'; /* with a continuation somewhere */
	text[at + MIB + 1] = '\n';
	(void)sprintf(expected, "1 [A]\n2 A.k=<%.*s %.*s>\n", (int)MIB, text + at,
		      (int)(size - at - MIB - 2), text + at + MIB + 2);
	check(text, size, 0, 0, expected);
	free(text);
	free(expected);
}

static void test_stops(void **state)
{
	static const char text[] = "[A]\na=1\nb=2\nc=3\n";

	check(text, strlen(text), 3, -ECANCELED, "1 [A]\n2 A.a=<1>\n3 A.b=<2>\n");
	check(text, strlen(text), 1, -ECANCELED, "1 [A]\n");
}

/* Nobody to report to: an error, and no call of what is not there */
static void test_no_on_fault(void **state)
{
	static const struct ini_handler quiet = {.on_entry = on_entry};
	static const char good[] = "[A]\na=1\n", bad[] = "[A]\nhello\na=1\n", last[] = "[A]\nb\\";
	struct report report = {};
	char *got = NULL;
	size_t n = 0;

	report.f = open_memstream(&got, &n);
	assert_int_equal(ini_parse("x.conf", good, strlen(good), &quiet, &report), 0);
	assert_int_equal(ini_parse("x.conf", bad, strlen(bad), &quiet, &report), -EBADMSG);
	assert_int_equal(ini_parse("x.conf", last, strlen(last), &quiet, &report), -EBADMSG);
	assert_int_equal(fclose(report.f), 0);
	assert_string_equal(got, "1 [A]\n2 A.a=<1>\n1 [A]\n1 [A]\n");
	free(got);
}

/* What is good comes back as it is, alone on its line; what is bad would not, or is no text */
static void test_bad_value(void **state)
{
	static const char *const good[] = {"",	  "a",	   "a  b",  "#a",	";a", "[a]",
					   "a=b", "\"a\"", "a\\\\", "\xc3\xbc", "\\a"};
	static const char *const bad[] = {"a\nb", "\n",	   "a\n", "a\r", "a\tb",
					  "\x1b", "a\x7f", "a\\", "\\",	 "a\\\\\\",
					  " a",	  "a ",	   " ",	  "\t",	 "\xe9"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char text[64], expected[64];

		(void)snprintf(text, sizeof(text), "[A]\nk=%s\n", good[i]);
		(void)snprintf(expected, sizeof(expected), "1 [A]\n2 A.k=<%s>\n", good[i]);
		check(text, strlen(text), 0, 0, expected);
		if (ini_bad_value(good[i]))
			fail_msg("\"%s\": %s", good[i], ini_bad_value(good[i]));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!ini_bad_value(bad[i]))
			fail_msg("\"%s\" is taken for a value", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	     cmocka_unit_test(test_comments),
		cmocka_unit_test(test_continuation), cmocka_unit_test(test_line_ends),
		cmocka_unit_test(test_faults),	     cmocka_unit_test(test_not_text),
		cmocka_unit_test(test_long_line),    cmocka_unit_test(test_stops),
		cmocka_unit_test(test_no_on_fault),  cmocka_unit_test(test_bad_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
