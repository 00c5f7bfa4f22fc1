/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/override: what is written is read as what was meant, or not written at all */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "config/config-session.h"
#include "daemon/manager/override.h"
#include "tests/unit/tmp.h"

#define FILE_PATH "sessions.d/demo.conf.d/" OVERRIDE_FILE
#define FIRST \
	"# Written by flyrecctl --persist; remove this file to go back to what the others say\n"

/* A session of these events, put there without being parsed: as a fault elsewhere might */
static void keep(struct tmp *tmp, char *filter, int expected, struct fault *why)
{
	struct trace_event events[] = {
		{.system = (char[]){"irq"}, .optional = true},
		{.system = (char[]){"sched"}, .name = (char[]){"sched_switch"}, .filter = filter},
	};
	const struct session_config config = {
		.name = (char[]){"demo"},
		.trace = {.events = events, .n_events = 2},
	};

	assert_int_equal(override_events(tmp->path, &config, why), expected);
}

static void assert_file(const struct tmp *tmp, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	int r = io_read_file_at(tmp->fd, FILE_PATH, &text, NULL);

	assert_int_equal(r, expected ? 0 : -ENOENT);
	if (expected)
		assert_string_equal(text, expected);
}

static void test_round_trip(void **state)
{
	static const char *const filters[] = {"prev_pid == 1", "comm == \"a  b\" # no comment",
					      "comm == \"\xc3\xbc\"", "a == \"x\\\\\"",
					      "# ; [x] = y"};
	struct fault why;
	struct tmp tmp;

	tmp_init(&tmp);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		_cleanup_free_ char *filter = strdup(filters[i]), *expected = NULL;

		keep(&tmp, filter, 0, &why);
		assert_true(asprintf(&expected,
				     FIRST "[Trace]\nEvent=\nEvent=-irq\n"
					   "Event=sched:sched_switch if %s\n",
				     filter) > 0);
		assert_file(&tmp, expected);
	}
	assert_int_equal(override_enabled(tmp.path, "demo", false, &why), 0);
	assert_file(&tmp, FIRST "[Session]\nEnabled=no\n[Trace]\nEvent=\nEvent=-irq\n"
				"Event=sched:sched_switch if # ; [x] = y\n");
	tmp_done(&tmp);
}

/* What would be a line of its own, a continuation, or come back shorter */
static void test_not_written(void **state)
{
	static const char *const filters[] = {
		"prev_pid != 1\n|| prev_comm == \"a\nUprobe=p:peek (scratch):0x2600\n#\"",
		"a == \"x\nEvent=net\"",
		"a\n#b",
		"a\n",
		"a \\",
		"a == \"x\\",
		"a\x1b[m",
		"a\x7f",
		"a ",
		"a == \"x\t",
		"\xe9"};
	struct fault why;
	struct tmp tmp;

	tmp_init(&tmp);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		_cleanup_free_ char *filter = strdup(filters[i]);

		keep(&tmp, filter, -EINVAL, &why);
		assert_non_null(strstr(why.text, "not written"));
		assert_file(&tmp, NULL);
	}
	tmp_done(&tmp);
}

static void test_bad_line(void **state)
{
	static const char bad[] = "[Trace]\nhello\n";
	struct fault why;
	struct tmp tmp;

	tmp_init(&tmp);
	tmp_write(&tmp, FILE_PATH, bad);
	keep(&tmp, NULL, -EINVAL, &why);
	assert_non_null(strstr(why.text, FILE_PATH ":2: missing '='"));
	assert_int_equal(override_enabled(tmp.path, "demo", true, &why), -EINVAL);
	assert_non_null(strstr(why.text, FILE_PATH ":2: missing '='"));
	assert_file(&tmp, bad);
	tmp_done(&tmp);
}

static void test_names(void **state)
{
	static const char *const names[] = {"../demo", "a/b", "", ".", "a.b"};
	struct fault why;
	struct tmp tmp;

	tmp_init(&tmp);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(override_enabled(tmp.path, names[i], true, &why), -EINVAL);
	assert_int_equal(tmp_count(&tmp), 0);
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_not_written),
		cmocka_unit_test(test_bad_line),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
