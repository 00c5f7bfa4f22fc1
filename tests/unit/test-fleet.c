/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fleet/: what is a message and what not, which windows are taken, notices of flyrecd,
 * configuration. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/strv.h"
#include "fleet/notice.h"
#include "fleet/window.h"

#define S   USEC_PER_SEC
#define NOW (1795674240 * S)

static const struct message good = {
	.id = "h1-20261126T062400.882495Z",
	.host = "h1",
	.reason = "event",
	.session = "sched",
	.text = "\"a\" \\ <b> \xc3\xa4",
	.trigger_usec = NOW,
	.since_usec = NOW - 10 * S,
	.until_usec = NOW,
};

static const struct fleet_config config = {
	.host = (char *)"h1",
	.group = (char *)"web",
	.broker = {.topic = (char *)"flyrec"},
	.announce = {.before_usec = 5 * S},
	.follow = {.max_window_usec = 20 * S,
		   .max_age_usec = 60 * S,
		   .max_ahead_usec = 30 * S,
		   .margin_usec = S},
};

static enum message_fault read_text(const char *text, struct message *ret)
{
	struct fault why = {};
	enum message_fault fault = message_read(text, strlen(text), ret, &why);

	assert_int_equal(fault == MESSAGE_OK, why.text[0] == '\0');
	return fault;
}

static void test_there_and_back(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct message m = {};

	assert_int_equal(message_write(&good, &text), 0);
	assert_int_equal(read_text(text, &m), MESSAGE_OK);
	assert_memory_equal(&m, &good, sizeof(m));
}

/* Each character of it becomes two */
static void test_long_text(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct message m = good, back;

	for (size_t i = 0; i < MESSAGE_TEXT_MAX; i++)
		m.text[i] = '"';
	memset(m.id, 'i', OWN_ID_MAX);
	memset(m.host, 'h', FLEET_NAME_MAX);
	memset(m.session, 's', SESSION_NAME_MAX);
	assert_int_equal(message_write(&m, &text), 0);
	assert_in_range(strlen(text), 1, MESSAGE_MAX);
	assert_int_equal(read_text(text, &back), MESSAGE_OK);
	assert_string_equal(back.id, m.id);
}

static void test_check(void **state)
{
	_cleanup_free_ char *text = NULL;
	const struct message check = {.check = true, .host = "h1"};
	struct message m = {};

	assert_int_equal(message_write(&check, &text), 0);
	assert_int_equal(read_text(text, &m), MESSAGE_OK);
	assert_true(m.check);
}

/* What replaces a part of a good one, and what that makes of it */
static void test_bad(void **state)
{
	static const struct {
		const char *part, *with;
		enum message_fault fault;
	} bad[] = {
		{"{\"v\"", "[\"v\"", MESSAGE_NOT_JSON},
		{"}", "", MESSAGE_NOT_JSON},
		{"}", "}\n{}", MESSAGE_NOT_JSON},
		{"}", "}x", MESSAGE_NOT_JSON},
		{"\"event\"", "event", MESSAGE_NOT_JSON},
		{"\"event\"", "\"\xff\"", MESSAGE_NOT_JSON},
		{"\"event\"", "[[[[[[1]]]]]]", MESSAGE_NOT_JSON},
		{"\"v\":1", "\"v\":2", MESSAGE_OTHER_VERSION},
		{"\"v\":1", "\"v\":\"1\"", MESSAGE_WRONG_FIELD},
		{"\"v\":1,", "", MESSAGE_WRONG_FIELD},
		{"\"host\":\"h1\"", "\"host\":1", MESSAGE_WRONG_FIELD},
		{"\"host\":\"h1\"", "\"host\":\"a/b\"", MESSAGE_WRONG_FIELD},
		{"\"host\":\"h1\"", "\"host\":\"\"", MESSAGE_WRONG_FIELD},
		{"h1-20261126T062400.882495Z", "", MESSAGE_WRONG_FIELD},
		{"h1-20261126T062400.882495Z", "a b", MESSAGE_WRONG_FIELD},
		{"h1-20261126T062400.882495Z", "a\\n", MESSAGE_WRONG_FIELD},
		{"h1-20261126T062400.882495Z", "a\\u0000b", MESSAGE_WRONG_FIELD},
		{"h1-20261126T062400.882495Z", "../../etc/passwd", MESSAGE_WRONG_FIELD},
		{"\"event\"", "\"Event\"", MESSAGE_WRONG_FIELD},
		{"\"event\"", "null", MESSAGE_WRONG_FIELD},
		{"\"sched\"", "\"a/b\"", MESSAGE_WRONG_FIELD},
		{"\"text\":\"", "\"text\":\"\\u001b[2J", MESSAGE_WRONG_FIELD},
		{"\"text\":\"", "\"text\":\"\\n", MESSAGE_WRONG_FIELD},
		{"\"text\"", "\"txt\"", MESSAGE_WRONG_FIELD},
		{"\"since\":1795674230000000", "\"since\":\"1\"", MESSAGE_WRONG_FIELD},
		{"\"since\":1795674230000000", "\"since\":1.5", MESSAGE_WRONG_FIELD},
		{"\"since\":1795674230000000", "\"since\":-1", MESSAGE_WRONG_FIELD},
		{"\"since\":1795674230000000", "\"since\":99999999999999999999",
		 MESSAGE_WRONG_FIELD},
		{"\"since\":1795674230000000", "\"since\":1795674240000000", MESSAGE_WRONG_FIELD},
	};
	_cleanup_free_ char *text = NULL;

	assert_int_equal(message_write(&good, &text), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *at = strstr(text, bad[i].part);
		_cleanup_free_ char *other = NULL;
		struct message m = {.reason = "as it was"};

		assert_non_null(at);
		other = strf("%.*s%s%s", (int)(at - text), text, bad[i].with,
			     at + strlen(bad[i].part));
		if (read_text(other, &m) != bad[i].fault)
			fail_msg("%s", other);
		assert_string_equal(m.reason, "as it was");
	}
}

static void test_size(void **state)
{
	static char large[1000000];
	struct fault why;
	struct message m;

	memset(large, ' ', sizeof(large));
	assert_int_equal(message_read(large, sizeof(large), &m, &why), MESSAGE_TOO_LONG);
	assert_int_equal(message_read(large, MESSAGE_MAX, &m, &why), MESSAGE_NOT_JSON);
	assert_int_equal(message_read(NULL, 0, &m, &why), MESSAGE_NOT_JSON);
	assert_int_equal(message_read("{}\0", 3, &m, &why), MESSAGE_NOT_JSON);
}

static void test_topics(void **state)
{
	static const char *const none[] = {
		"flyrec/snapshot/web/",	   "flyrec/snapshot/web/a/b", "flyrec/snapshot/other/h2",
		"flyrec/snapshot/web/h2 ", "flyrec/snapshot/webh2",   "",
	};
	_cleanup_free_ char *topic = message_topic(&config, "+");

	assert_string_equal(topic, "flyrec/snapshot/web/+");
	assert_string_equal(message_host(&config, "flyrec/snapshot/web/h2.example"), "h2.example");
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_null(message_host(&config, none[i]));
}

/* --- windows, in seconds from now */

static enum window_fault judge(int since, int until, struct window *ret)
{
	struct message m = good;
	struct fault why = {};
	enum window_fault fault;

	m.since_usec = (uint64_t)((int64_t)NOW + since * (int64_t)S);
	m.until_usec = (uint64_t)((int64_t)NOW + until * (int64_t)S);
	fault = window_judge(&config.follow, &m, NOW, ret, &why);
	assert_int_equal(fault == WINDOW_OK, why.text[0] == '\0');
	return fault;
}

static void test_windows(void **state)
{
	struct window w;

	assert_int_equal(judge(-10, 0, &w), WINDOW_OK);
	assert_int_equal(w.since_usec, NOW - 11 * S);
	assert_int_equal(w.until_usec, NOW + S);
	/* No longer than is allowed */
	assert_int_equal(judge(-20, 0, &w), WINDOW_OK);
	assert_int_equal(w.since_usec, NOW - 20 * S);
	assert_int_equal(w.until_usec, NOW);
	assert_int_equal(judge(-21, 0, &w), WINDOW_TOO_LONG);
	/* The margin is for clocks that differ */
	assert_int_equal(judge(0, 10, &w), WINDOW_OK);
	assert_int_equal(judge(1, 10, &w), WINDOW_AHEAD);
	assert_int_equal(judge(0, 31, &w), WINDOW_TOO_LONG);
	assert_int_equal(judge(-70, -60, &w), WINDOW_OK);
	assert_int_equal(judge(-70, -61, &w), WINDOW_TOO_OLD);
	assert_int_equal(judge(-1795674240, -1795674230, &w), WINDOW_TOO_OLD);
}

static void test_ahead(void **state)
{
	struct fleet_follow_config follow = config.follow;
	struct message m = good;
	struct window w;
	struct fault why;

	follow.max_window_usec = 1000 * S;
	m.until_usec = NOW + 31 * S;
	assert_int_equal(window_judge(&follow, &m, NOW, &w, &why), WINDOW_OK);
	/* What flyrecd takes at most */
	assert_int_equal(w.until_usec, NOW + 30 * S);
	m.until_usec++;
	assert_int_equal(window_judge(&follow, &m, NOW, &w, &why), WINDOW_AHEAD);
}

static void test_covers(void **state)
{
	const struct window w = {100, 200};

	assert_true(window_covers(&w, &(struct window){100, 200}));
	assert_true(window_covers(&w, &(struct window){105, 205}));
	assert_false(window_covers(&w, &(struct window){106, 206}));
	assert_false(window_covers(&w, &(struct window){0, 1000}));
	assert_false(window_covers(&w, &(struct window){200, 300}));
}

/* --- notices */

static int read_notice(const char *text, struct message *m)
{
	struct fault why;

	return notice_read(&config, text, strlen(text), m, &why);
}

static void test_notice(void **state)
{
	struct message m;

	assert_int_equal(read_notice("ID=h1-1\nTRIGGER_USEC=50000000\nSINCE_USEC=45000000\n"
				     "UNTIL_USEC=51000000\nREASON=event\nSESSION=sched\n"
				     "CAUSE=OnEvent=x\nTEXT=\nNEW=1\n",
				     &m),
			 0);
	assert_string_equal(m.id, "h1-1");
	assert_string_equal(m.host, "h1");
	assert_string_equal(m.text, "OnEvent=x");
	assert_int_equal(m.since_usec, 45 * S);
	assert_int_equal(m.until_usec, 51 * S);
	/* All there is; and more than others take */
	assert_int_equal(read_notice("ID=h1-1\nTRIGGER_USEC=50000000\nSINCE_USEC=0\n"
				     "UNTIL_USEC=51000000\nREASON=event\nSESSION=sched\nTEXT=t\n",
				     &m),
			 0);
	assert_int_equal(m.since_usec, 45 * S);
	assert_string_equal(m.text, "t");
	assert_int_equal(read_notice("ID=h1-1\nTRIGGER_USEC=50000000\nSINCE_USEC=1\n"
				     "UNTIL_USEC=50000000\nREASON=event\nSESSION=sched\n",
				     &m),
			 0);
	assert_int_equal(m.since_usec, 32 * S);
	assert_int_equal(read_notice("ID=\nTRIGGER_USEC=50000000\n", &m), -EBADMSG);
	assert_int_equal(read_notice("", &m), -EBADMSG);
	assert_int_equal(read_notice("ID=h1-1\nTRIGGER_USEC=50000000\nSINCE_USEC=60000000\n"
				     "UNTIL_USEC=50000000\nREASON=event\nSESSION=sched\n",
				     &m),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_check),	       cmocka_unit_test(test_bad),
		cmocka_unit_test(test_size),	       cmocka_unit_test(test_topics),
		cmocka_unit_test(test_windows),	       cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_covers),	       cmocka_unit_test(test_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
