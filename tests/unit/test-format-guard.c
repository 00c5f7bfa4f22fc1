/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which print formats libtraceevent gets to see. Formats of kernels pass: those below
 * /sys/kernel/tracing, too, if they can be read.
 */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/io.h"
#include "decode/format-guard.h"
#include "decode/printer.h"
#include "tests/unit/craft-formats.h"

#define FIELDS                                            \
	CRAFT_COMMON_FIELDS                               \
	"\tfield:int i;\toffset:8;\tsize:4;\tsigned:1;\n" \
	"\tfield:int j;\toffset:12;\tsize:4;\tsigned:1;\n\n"
#define HEAD "name: evil\nID: 200\n" FIELDS

/* The whole text with this print format; the caller frees it */
static char *text_of(const char *print)
{
	char *text;

	assert_true(asprintf(&text, HEAD "print fmt: %s\n", print) >= 0);
	return text;
}

static char *many(const char *before, const char *what, unsigned n, const char *after)
{
	struct text text = {};

	text_string(&text, before);
	for (unsigned i = 0; i < n; i++)
		text_string(&text, what);
	text_bytes(&text, after, strlen(after) + 1);
	assert_false(text.no_memory);
	return text.bytes;
}

static void expect(const char *print, const char *refused, const char *becomes)
{
	_cleanup_free_ char *text = text_of(print), *wanted = NULL;
	const char *why;

	if (refused)
		wanted = strdup(HEAD);
	else
		wanted = text_of(becomes ? becomes : print);
	format_guard(text, &why);
	assert_string_equal(text, wanted);
	if (refused)
		assert_non_null(strstr(why, refused));
	else
		assert_null(why);
}

static void test_field_names(void **state)
{
	static const char no_field[] = "a field that the event does not have";

	expect("\"%s\", __print_flags(REC->k, \"|\", { 1, \"x\" })", no_field, NULL);
	expect("\"%s\", __print_symbolic(REC -> ij, { 1, \"x\" })", no_field, NULL);
	expect("\"%d\", REC->", no_field, NULL);
	expect("\"%d\", REC->common", no_field, NULL);
	expect("\"%d\", REC->int", no_field, NULL);
	expect("\"%s\", __print_flags(REC->j, \"|\", { 1, \"x\" })", NULL, NULL);
	expect("\"%d REC->k\", REC-> common_pid, RECK->k", NULL, NULL);
}

static void test_pointers(void **state)
{
	static const char none[] = "a pointer that is none into the record";

	expect("\"%x\", __le16_to_cpup(REC->i)", none, NULL);
	expect("\"%x\", __le16_to_cpup((__le16 *)REC->i)", none, NULL);
	expect("\"%x\", __le16_to_cpup((__le16 *)(__get_dynamic_array(a) + REC->i))", none, NULL);
	expect("\"%x\", __le16_to_cpup(__get_dynamic_array(a) + REC->i)", none, NULL);
	expect("\"%x\", __le16_to_cpup", none, NULL);
	expect("\"%x\", __le16_to_cpup((", none, NULL);
	expect("\"%s\", scsi_trace_parse_cdb(p, REC->i, 16)", none, NULL);
	expect("\"%s\", scsi_trace_parse_cdb(p, 1, __get_dynamic_array(a))", none, NULL);
	expect("\"%x\", __le16_to_cpup(__get_dynamic_array(a))", NULL, NULL);
	expect("\"%x\", __le16_to_cpup((__le16 *)__get_dynamic_array(a))", NULL, NULL);
	expect("\"%s\", scsi_trace_parse_cdb(p, __get_dynamic_array(a), REC->i)", NULL, NULL);
	expect("\"%x\", my__le16_to_cpup(REC->i)", NULL, NULL);
}

static void test_sizeof(void **state)
{
	static const char *const bad[] = {
		"sizeof(REC->i)",      "sizeof(",	 "sizeof",   "sizeof (REC->i)",
		"sizeof(u64",	       "sizeof(intx)",	 "sizeof()", "sizeof(struct x)",
		"sizeof(unsigned int", "sizeof\"(u8)\"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_free_ char *print = many("\"%d\", ", bad[i], 1, "");

		expect(print, "sizeof", NULL);
	}
	expect("\"%d\", sizeof(u64)", NULL, NULL);
	expect("\"%d\", 2 * sizeof(unsigned long) + sizeof(unsigned)", NULL, NULL);
	expect("\"%d\", sizeof(int), 1", NULL, "\"%d\", 4          , 1");
	expect("\"%d\", sizeof(unsigned int)", NULL, "\"%d\", 4                   ");
	expect("\"%d\", sizeof( long long )", NULL, "\"%d\", 8                  ");
	expect("\"%d sizeof(REC->i) \\\" sizeof(\", my_sizeof(x)", NULL, NULL);
}

static void test_widths(void **state)
{
	expect("\"%999999999d\", REC->i", "width", NULL);
	expect("\"%.999999999d\", REC->i", "width", NULL);
	expect("\"a %% %-08l4097d\", REC->i", "width", NULL);
	expect("\"%s\", REC->i ? \"%5000d\" : \"\"", "width", NULL);
	expect("\"%4294967297d\", REC->i", "width", NULL);
	expect("\"%4096d %.64s 5000 %%5000\", REC->i, REC->i", NULL, NULL);
	assert_non_null(format_guard_string("%99999d"));
	assert_null(format_guard_string("%d 99999 %"));
}

static void test_depth(void **state)
{
	static const struct {
		const char *what, *refused;
		unsigned right, wrong;
	} cases[] = {
		{"(", "nested", 32, 33},
		{"(int)", "operators", 300, 600},
		{"!", "operators", 1000, 1025},
		{"1|", "operators", 1000, 2000},
		{"1?1:", "operators", 500, 1000},
		{"REC->i[", "nested", 32, 33},
		{"\"%d\" ", "conversions", 500, 600},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *right = many("\"%d\", ", cases[i].what, cases[i].right, "");
		_cleanup_free_ char *wrong = many("\"%d\", ", cases[i].what, cases[i].wrong, "");

		expect(right, NULL, NULL);
		expect(wrong, cases[i].refused, NULL);
	}
	/* a list is no recursion */
	{
		_cleanup_free_ char *list =
			many("\"%s\", __print_symbolic(REC->i", ", {1+1, \"x\"}", 2000, ")");
		_cleanup_free_ char *literals = many("", "\"xxxxxxxx\" ", 100000, "");

		expect(list, NULL, NULL);
		expect(literals, "longer", NULL);
	}
}

/* What is behind an odd beginning is not taken for fields */
static void test_fields(void **state)
{
	char odd[] = "name: x\nID: 1\nformat:\n print fmt: \"%d\", sizeof(REC->x)\n";
	_cleanup_free_ char *text = text_of("\"%d\", REC->i");
	const char *why;

	format_guard(odd, &why);
	assert_string_equal(odd, "");
	assert_non_null(why);
	format_guard_fields(text);
	assert_string_equal(text, HEAD);
}

/* The longest that kernels have, shortened in the middle, and those of this kernel */
static void test_kernels(void **state)
{
	glob_t g;

	expect("\"DMA %s%s\", __print_array(__get_dynamic_array(a), __get_dynamic_array_len(a) / "
	       "sizeof(u64), sizeof(u64)), (REC->i) ? __print_flags(REC->i, \"|\", "
	       "{( unsigned long)(((((((( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11)))) | (( "
	       "gfp_t)((((1UL))) << (6))) | (( gfp_t)((((1UL))) << (7))) | (( gfp_t)0)))))), "
	       "\"GFP_TRANSHUGE\"}, { 0, ((void *)0) } ) : \"none\"",
	       NULL, NULL);
	if (glob("/sys/kernel/tracing/events/*/*/format", 0, NULL, &g) != 0)
		return;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		_cleanup_free_ char *text = NULL;
		const char *why;
		size_t size;

		if (io_read_file_at(AT_FDCWD, g.gl_pathv[i], &text, &size) < 0)
			continue;
		format_guard(text, &why);
		if (why)
			fail_msg("%s: %s", g.gl_pathv[i], why);
	}
	globfree(&g);
}

/* A refused one shows its fields, as any that libtraceevent cannot parse */
static void print_refused(const char *print)
{
	_cleanup_free_ char *text = text_of(print);
	const struct craft_format formats[] = {{"demo", text}};
	const struct craft_file file = {.formats = formats, .n_formats = 1};
	struct craft c = {.commit_size = 8};
	uint8_t record[16] = {200, 0, 0, 0, 9, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 5, 0, 0, 0};
	struct decode_event event = {.ts = 1, .data = record, .size = sizeof(record)};
	struct printer_config config = {.no_plugins = true};
	struct printer *printer;
	struct decoder *decoder;
	struct tasks *tasks;
	struct trace_dat *dat;
	struct text out = {};
	struct fault why = {};
	int fd;

	craft_file(&c, &file);
	craft_open(&c, &fd, &dat, &decoder);
	assert_int_equal(decoder_new_tasks(decoder, &tasks, &why), 0);
	decoder_identify(decoder, &event);
	assert_int_equal(decoder_task(decoder, tasks, &event), 0);
	for (unsigned json = 0; json < 2; json++) {
		config.form = json ? PRINTER_JSON : PRINTER_TEXT;
		assert_int_equal(printer_new(decoder, &config, &printer), 0);
		assert_int_equal(printer_put(printer, &event, true, &out), 0);
		text_char(&out, '\0');
		assert_non_null(strstr(out.bytes, json ? "2147483647" : "i=2147483647 j=5"));
		out.size = 0;
		printer_free(printer);
	}
	/* a width out of the record is no fault of the format's */
	assert_int_equal(!decoder_warnings(decoder), strchr(print, '*') != NULL);
	text_done(&out);
	tasks_free(tasks);
	craft_close(fd, dat, decoder);
}

static void test_refused(void **state)
{
	print_refused("\"%d\", sizeof(REC->i)");
	print_refused("\"%999999999d\", REC->i");
	print_refused("\"%+*d\", REC->i, REC->j"); /* the width is the record's */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_field_names), cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_sizeof),	    cmocka_unit_test(test_widths),
		cmocka_unit_test(test_depth),	    cmocka_unit_test(test_fields),
		cmocka_unit_test(test_kernels),	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
