/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a terminal must not see, alone and in the lines of export and tail */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/escape.h"
#include "decode/printer.h"
#include "tests/unit/craft-formats.h"

static void expect(const char *text, const char *wanted, bool lines)
{
	_cleanup_free_ char *shown = escape_text(text, lines);

	assert_non_null(shown);
	assert_string_equal(shown, wanted);
	assert_int_equal(escape_plain(text, strlen(text), lines) == strlen(text),
			 strcmp(text, wanted) == 0);
}

static void test_escape(void **state)
{
	char *replaced = strdup("a\033b"), *nothing = NULL;

	expect("plain\ttext", "plain\ttext", false);
	expect("\033]0;PWN\007", "\\x1b]0;PWN\\x07", false);
	expect("a\nb\rc\177", "a\\nb\\rc\\x7f", false);
	expect("a\nb\rc", "a\nb\\rc", true);
	/* UTF-8 stays, its control characters, bytes alone, overlong and cut ones do not */
	expect("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
	       "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", false);
	expect("\xc2\x9b"
	       "31m",
	       "\\xc2\\x9b31m", false);
	expect("\xc2\xa0", "\xc2\xa0", false);
	expect("\x9b"
	       "31m",
	       "\\x9b31m", false);
	expect("\xe0\x82\x9b|\xc0\x9b|\xed\xa0\x80|\xf4\x90\x80\x80",
	       "\\xe0\\x82\\x9b|\\xc0\\x9b|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80", false);
	expect("\xe2\x82", "\\xe2\\x82", false);
	assert_int_equal(escape_replace(&replaced), 0);
	assert_string_equal(replaced, "a\\x1bb");
	assert_int_equal(escape_replace(&nothing), 0);
	free(replaced);
}

#define COMMON              \
	CRAFT_COMMON_FIELDS \
	"\tfield:char name[16];\toffset:8;\tsize:16;\tsigned:0;\n\n"

static const struct craft_format formats[] = {
	{"demo", "name: string\nID: 100\n" COMMON "print fmt: \"name=%s end\", REC->name\n"},
	{"demo", "name: last\nID: 101\n" COMMON "print fmt: \"%s\", REC->name\n"},
	{"demo", "name: lines\nID: 102\n" COMMON "print fmt: \"one\\n%s\\n\", REC->name\n"},
	{"demo", "name: broken\nID: 103\n" COMMON "print fmt: \"%s\", frobnicate(REC->name)\n"},
};

struct fixture {
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	struct tasks *tasks;
};

static void setup(struct fixture *f)
{
	const struct craft_file file = {
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.cmdlines = "9 a\033task\n",
	};
	struct craft c = {.commit_size = 8};
	struct fault why = {};

	craft_file(&c, &file);
	craft_open(&c, &f->fd, &f->dat, &f->decoder);
	assert_int_equal(decoder_new_tasks(f->decoder, &f->tasks, &why), 0);
}

static void teardown(struct fixture *f)
{
	tasks_free(f->tasks);
	craft_close(f->fd, f->dat, f->decoder);
}

static void print(struct fixture *f, const struct printer_config *config,
		  struct decode_event *event, struct text *out)
{
	struct printer *printer;

	decoder_identify(f->decoder, event);
	assert_int_equal(decoder_task(f->decoder, f->tasks, event), 0);
	assert_int_equal(printer_new(f->decoder, config, &printer), 0);
	assert_int_equal(printer_put(printer, event, true, out), 0);
	printer_free(printer);
}

/* The event's text behind its name, with a '$' at the line's end */
static char *text_of(struct fixture *f, unsigned id, const char *name, enum text_escape escape)
{
	uint8_t record[24] = {(uint8_t)id, 0, 0, 0, 9};
	struct decode_event event = {.ts = 1, .data = record, .size = sizeof(record)};
	struct text out = {};
	char *colon, *copy;

	memcpy(record + 8, name, strlen(name));
	print(f, &(struct printer_config){.escape = escape, .no_plugins = true}, &event, &out);
	assert_int_equal(out.bytes[out.size - 1], '\n');
	out.bytes[out.size - 1] = '$';
	text_char(&out, '\0');
	assert_int_equal(strstr(out.bytes, "a\\x1btask-9") != NULL, escape == TEXT_ALL);
	colon = strstr(strstr(out.bytes, ": ") + 2, ": ") + 2;
	copy = strdup(colon + strspn(colon, " "));
	text_done(&out);
	return copy;
}

static void expect_text(struct fixture *f, unsigned id, const char *name, const char *lines,
			const char *all, const char *raw)
{
	const char *const wanted[] = {[TEXT_LINES] = lines, [TEXT_ALL] = all, [TEXT_RAW] = raw};

	for (enum text_escape e = TEXT_LINES; e <= TEXT_RAW; e++) {
		_cleanup_free_ char *text = text_of(f, id, name, e);

		assert_string_equal(text, wanted[e]);
	}
}

static void test_lines(void **state)
{
	struct fixture f;

	setup(&f);
	expect_text(&f, 100, "a\nb", "name=a\\nb end$", "name=a\\nb end$", "name=a\nb end$");
	expect_text(&f, 100, "\033]0;x\007", "name=\033]0;x\007 end$", "name=\\x1b]0;x\\x07 end$",
		    "name=\033]0;x\007 end$");
	/* a newline at the end is what trace_marker's writers put there; trace-cmd takes one off */
	expect_text(&f, 101, "a\n", "a$", "a$", "a$");
	expect_text(&f, 101, "a\n\n", "a\\n$", "a\\n$", "a\n$");
	expect_text(&f, 101, "a\n\033", "a\\n\033$", "a\\n\\x1b$", "a\n\033$");
	/* those of the print format are no string's */
	expect_text(&f, 102, "x\ny", "one\nx\\ny$", "one\nx\\ny$", "one\nx\ny$");
	/* printed by libtraceevent */
	expect_text(&f, 103, "a\nb", "[FAILED TO PARSE] name=a\\nb$",
		    "[FAILED TO PARSE] name=a\\nb$", "[FAILED TO PARSE] name=a\nb$");
	teardown(&f);
}

static void test_json(void **state)
{
	uint8_t record[24] = {100, 0, 0, 0, 9, 0, 0, 0, 'a', 0xc2, 0x9b, 0x7f, 0x1b, 0xc3, 0xa9};
	struct decode_event event = {.ts = 1, .data = record, .size = sizeof(record)};
	struct text out = {};
	struct fixture f;

	setup(&f);
	print(&f, &(struct printer_config){.form = PRINTER_JSON}, &event, &out);
	text_char(&out, '\0');
	assert_non_null(strstr(out.bytes, "\"a\\u009b\\u007f\\u001b\xc3\xa9\""));
	text_done(&out);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
