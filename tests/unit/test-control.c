/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access rules, the frame of the relay, runtime changes, loss accounting, near names.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "basic/near.h"
#include "basic/strv.h"
#include "config/config-session.h"
#include "daemon/control/control-access.h"
#include "daemon/control/control-internal.h"
#include "daemon/control/control-relay.h"
#include "daemon/manager/runtime-changes.h"

/* --- access */

#define MANAGER "org.flyrec.Recorder1.Manager"
#define SESSION "org.flyrec.Recorder1.Session"

static void test_access_needed(void **state)
{
	static const char *const changes[] = {"Start",	       "Stop",	   "Pause",
					      "Resume",	       "Rotate",   "EnableEvents",
					      "DisableEvents", "SetFilter"};

	assert_int_equal(access_needed("org.freedesktop.DBus", "Hello"), ACCESS_NONE);
	assert_int_equal(access_needed("org.freedesktop.DBus.Peer", "Ping"), ACCESS_NONE);
	assert_int_equal(access_needed("org.freedesktop.DBus.Properties", "Get"), ACCESS_QUERY);
	assert_int_equal(access_needed(MANAGER, "ListFiles"), ACCESS_QUERY);
	assert_int_equal(access_needed(MANAGER, "OpenFile"), ACCESS_QUERY);
	assert_int_equal(access_needed(SESSION, "Snapshot"), ACCESS_QUERY);
	assert_int_equal(access_needed(SESSION, "Trigger"), ACCESS_QUERY);
	assert_int_equal(access_needed(SESSION, "SnapshotLimited"), ACCESS_QUERY);
	assert_int_equal(access_needed(MANAGER, "SnapshotTogether"), ACCESS_QUERY);
	assert_int_equal(access_needed(SESSION, "SnapshotCoresight"), ACCESS_CHANGE);
	assert_int_equal(access_needed(SESSION, "OpenTail"), ACCESS_QUERY);
	assert_int_equal(access_needed(MANAGER, "Vacuum"), ACCESS_CHANGE);
	assert_int_equal(access_needed(MANAGER, "PinFile"), ACCESS_CHANGE);
	assert_int_equal(access_needed(MANAGER, "Reload"), ACCESS_CHANGE);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		assert_int_equal(access_needed(SESSION, changes[i]), ACCESS_CHANGE);
	/* what nobody knows needs the most */
	assert_int_equal(access_needed(MANAGER, "ListFile"), ACCESS_CHANGE);
	assert_int_equal(access_needed("org.freedesktop.DBusx", "Hello"), ACCESS_CHANGE);
	assert_int_equal(access_needed(NULL, "ListFiles"), ACCESS_CHANGE);
	assert_int_equal(access_needed(MANAGER, NULL), ACCESS_CHANGE);
}

static bool may(uid_t uid, gid_t group, const struct access_groups *groups, enum access_right right)
{
	struct access_peer peer = {.uid = uid, .groups = {99, group}, .n_groups = 2};

	return access_allowed(&peer, groups, right);
}

static void test_access_allowed(void **state)
{
	const struct access_groups both = {.flyrec = 10, .admin = 20};
	const struct access_groups none = {.flyrec = (gid_t)-1, .admin = (gid_t)-1};

	assert_true(may(0, 1, &none, ACCESS_CHANGE));
	assert_true(may(1000, 10, &both, ACCESS_QUERY));
	assert_false(may(1000, 10, &both, ACCESS_CHANGE));
	assert_true(may(1000, 20, &both, ACCESS_QUERY));
	assert_true(may(1000, 20, &both, ACCESS_CHANGE));
	assert_false(may(1000, 30, &both, ACCESS_QUERY));
	assert_true(may(1000, 30, &both, ACCESS_NONE));
	/* a group that is not there has no members, not even of number -1 */
	assert_false(may(1000, (gid_t)-1, &none, ACCESS_QUERY));
	assert_false(may((uid_t)-1, 30, &both, ACCESS_QUERY));
}

/* --- relay */

static int feed(struct relay_frame *frame, const void *bytes, size_t size, size_t step)
{
	int r = 0;

	for (size_t at = 0, n; at < size && r >= 0; at += n)
		r = relay_frame_check(frame, (const uint8_t *)bytes + at, MIN(step, size - at), &n);
	return r;
}

static void put_header(uint8_t *at, char order, uint32_t body, uint32_t fields)
{
	const bool little = order == 'l';

	memset(at, 0, 16);
	at[0] = (uint8_t)order;
	at[1] = at[3] = 1;
	for (unsigned i = 0; i < 4; i++) {
		at[4 + i] = (uint8_t)(body >> (little ? 8 * i : 24 - 8 * i));
		at[12 + i] = (uint8_t)(fields >> (little ? 8 * i : 24 - 8 * i));
	}
}

static void test_relay_frame(void **state)
{
	static const char hello[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	uint8_t bytes[512] = {};
	size_t n = sizeof(hello) - 1;

	memcpy(bytes, hello, n);
	put_header(bytes + n, 'l', 5, 3); /* 8 of fields, 5 of body */
	put_header(bytes + n + 29, 'B', 0, 16);
	put_header(bytes + n + 61, 'l', RELAY_MESSAGE_MAX, 0);
	put_header(bytes + n + 61 + 16, 'x', 0, 0); /* inside of the long one */
	for (size_t step = 1; step < 40; step++) {
		struct relay_frame frame = {};

		assert_int_equal(feed(&frame, bytes, n + 77, step), 0);
		assert_int_equal(frame.left, RELAY_MESSAGE_MAX);
	}
	for (size_t step = 1; step < 40; step++) {
		struct relay_frame frame = {};

		put_header(bytes + n + 61, 'l', RELAY_MESSAGE_MAX, 1);
		assert_int_equal(feed(&frame, bytes, n + 77, step), -EMSGSIZE);
		frame = (struct relay_frame){};
		put_header(bytes + n + 61, 'l', UINT32_MAX, UINT32_MAX);
		assert_int_equal(feed(&frame, bytes, n + 77, step), -EMSGSIZE);
		frame = (struct relay_frame){};
		put_header(bytes + n + 61, 'q', 0, 0);
		assert_int_equal(feed(&frame, bytes, n + 77, step), -EBADMSG);
	}
}

/* A message at a time: whoever hands them on waits between them */
static void test_relay_boundaries(void **state)
{
	static const char hello[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	const size_t greeting = sizeof(hello) - 1, sizes[] = {greeting, 16 + 8 + 5, 16, 7};
	struct relay_frame frame = {};
	uint8_t bytes[512] = {};
	size_t at = 0, n;

	memcpy(bytes, hello, greeting);
	put_header(bytes + greeting, 'l', 5, 3);
	put_header(bytes + greeting + 29, 'B', 0, 0);
	put_header(bytes + greeting + 45, 'l', 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++, at += n) {
		assert_int_equal(relay_frame_check(&frame, bytes + at, greeting + 52 - at, &n), 0);
		assert_int_equal(n, sizes[i]);
	}
	assert_int_equal(relay_frame_check(&frame, bytes, 0, &n), 0);
	assert_int_equal(n, 0);
}

/* What a caller names is not to make an answer long, nor one that libraries refuse */
static void test_shown(void **state)
{
	char name[300];

	assert_string_equal(control_shown("sched").text, "sched");
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(strlen(control_shown(name).text), 71);
	assert_string_equal(control_shown(name).text + 67, "a...");
	for (size_t i = 1; i + 1 < sizeof(name); i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	assert_string_equal(control_shown(name).text + 65, "\xc3\xa4...");
	memmove(name, name + 1, sizeof(name) - 1);
	assert_string_equal(control_shown(name).text + 66, "\xc3\xa4...");
}

static void test_relay_greeting(void **state)
{
	_cleanup_free_ char *noise = malloc(RELAY_AUTH_MAX + 1);
	struct relay_frame frame = {};

	memset(noise, 'B', RELAY_AUTH_MAX + 1);
	assert_int_equal(feed(&frame, noise, RELAY_AUTH_MAX, 100), 0);
	assert_int_equal(feed(&frame, noise, 1, 1), -EMSGSIZE);
}

/* --- runtime changes */

static struct session_config *make_config(const char *text)
{
	struct session_config *config = NULL;
	struct config_reader reader = {};

	assert_int_equal(session_config_new("demo", NULL, &config), 0);
	assert_int_equal(session_config_read(&reader, "x", text, strlen(text), NULL, config), 0);
	assert_int_equal(session_config_finish(&reader, "x", config), 0);
	assert_int_equal(reader.n_errors, 0);
	return config;
}

/* "a, b, c" of what is different */
static void assert_changes(const struct session_config *configured, const struct runtime_state *now,
			   const char *expected)
{
	_cleanup_(strv_freep) char **changes = NULL;
	char text[512] = "";

	assert_int_equal(runtime_changes(configured, now, &changes), 0);
	STRV_FOREACH (change, changes) {
		strcat(text, *text ? ", " : "");
		strcat(text, *change);
	}
	assert_string_equal(text, expected);
}

static int expand_irq(void *userdata, const char *system, char ***ret)
{
	assert_string_equal(system, "irq");
	assert_int_equal(strv_append(ret, "one"), 0);
	assert_int_equal(strv_append(ret, "two"), 0);
	return strv_append(ret, "three");
}

static void test_runtime_events(void **state)
{
	_cleanup_(session_config_freep) struct session_config *before =
		make_config("[Trace]\nEvent=irq\nEvent=sched:sched_switch if prev_pid == 1\n");
	_cleanup_(session_config_freep) struct session_config *c = NULL;
	struct runtime_state now = {.running = true};
	struct fault why = {};

	assert_int_equal(session_config_copy(before, &c), 0);
	now.in_force = c;
	assert_changes(before, &now, "");
	assert_int_equal(runtime_enable_event(c, "net", &why), 0);
	assert_int_equal(runtime_enable_event(c, "sched:sched_switch", &why), 0);
	assert_changes(before, &now,
		       "-Event=sched:sched_switch if prev_pid == 1, +Event=sched:sched_switch, "
		       "+Event=net");
	assert_int_equal(runtime_filter_event(c, "sched:sched_switch", "prev_pid == 1", &why), 0);
	assert_int_equal(runtime_disable_event(c, "net", expand_irq, NULL, &why), 0);
	assert_changes(before, &now, "");
	assert_int_equal(runtime_disable_event(c, "irq:two", expand_irq, NULL, &why), 0);
	assert_changes(before, &now, "-Event=irq, +Event=-irq:one, +Event=-irq:three");
	assert_int_equal(runtime_disable_event(c, "irq", expand_irq, NULL, &why), 0);
	assert_changes(before, &now, "-Event=irq");
	/* a filter of one event of a system that is traced as a whole */
	assert_int_equal(runtime_filter_event(before, "irq:one", "irq == 1", &why), 0);
	assert_int_equal(before->trace.n_events, 3);
}

static void test_runtime_refused(void **state)
{
	_cleanup_(session_config_freep) struct session_config *c =
		make_config("[Trace]\nEvent=irq\n");
	struct fault why = {};

	assert_int_equal(runtime_enable_event(c, "sched:*", &why), -EINVAL);
	assert_int_equal(runtime_enable_event(c, "", &why), -EINVAL);
	assert_int_equal(runtime_disable_event(c, "sched", expand_irq, NULL, &why), -ENOENT);
	assert_int_equal(runtime_disable_event(c, "irq:four", expand_irq, NULL, &why), -ENOENT);
	assert_int_equal(runtime_disable_event(c, "irq:one if x", expand_irq, NULL, &why), -EINVAL);
	assert_int_equal(runtime_filter_event(c, "sched:sched_switch", "a", &why), -ENOENT);
	assert_int_equal(runtime_filter_event(c, "irq", "a", &why), -EINVAL);
	assert_int_equal(c->trace.n_events, 1);
}

/* They may be written to a file later: nothing that would be a line of its own there */
static void test_runtime_texts(void **state)
{
	static const char *const texts[] = {"a == \"x\ny\"", "a == 1\n", "\na == 1",
					    "a\rb",	     "a\tb",	 "a\x01",
					    "a == \"\x7f\"", "a \\",	 "a == \"\xe9\""};
	_cleanup_(session_config_freep) struct session_config *c =
		make_config("[Trace]\nEvent=irq\n");
	struct fault why = {};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_free_ char *event = NULL, *other = NULL;

		assert_true(asprintf(&event, "irq:one if %s", texts[i]) > 0);
		assert_true(asprintf(&other, "irq:one%s", texts[i]) > 0);
		assert_int_equal(runtime_filter_event(c, "irq:one", texts[i], &why), -EINVAL);
		assert_true(strncmp(why.text, "filter refused: ", 16) == 0);
		assert_int_equal(runtime_enable_event(c, event, &why), -EINVAL);
		assert_true(strncmp(why.text, "event refused: ", 15) == 0);
		assert_int_equal(runtime_enable_event(c, other, &why), -EINVAL);
		assert_int_equal(runtime_filter_event(c, other, "a == 1", &why), -EINVAL);
		assert_int_equal(runtime_disable_event(c, other, expand_irq, NULL, &why), -EINVAL);
	}
	assert_int_equal(c->trace.n_events, 1);
	/* blanks around are no harm: they go */
	assert_int_equal(runtime_filter_event(c, "irq:one", " a == 1 ", &why), 0);
	assert_string_equal(c->trace.events[1].filter, "a == 1");
}

static void test_runtime_states(void **state)
{
	_cleanup_(session_config_freep) struct session_config *on =
		make_config("[Trace]\nEvent=irq\n");
	_cleanup_(session_config_freep) struct session_config *off =
		make_config("[Session]\nEnabled=no\n[Trace]\nEvent=irq\n");

	assert_changes(on, &(struct runtime_state){}, "stopped");
	assert_changes(off, &(struct runtime_state){}, "");
	assert_changes(off, &(struct runtime_state){.running = true}, "started");
	assert_changes(on, &(struct runtime_state){.running = true, .paused = true}, "paused");
}

/* --- client */

static void test_near(void **state)
{
	size_t best = SIZE_MAX;

	assert_true(near_better("sched:sched_swich", "sched:sched_switch", &best));
	assert_int_equal(best, 1);
	assert_false(near_better("sched:sched_swich", "sched:sched_wakeup", &best));
	best = SIZE_MAX;
	assert_false(near_better("net", "irq", &best));
	assert_true(near_better("", "a", &best));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_access_needed),
		cmocka_unit_test(test_access_allowed),
		cmocka_unit_test(test_relay_frame),
		cmocka_unit_test(test_relay_greeting),
		cmocka_unit_test(test_relay_boundaries),
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_runtime_events),
		cmocka_unit_test(test_runtime_refused),
		cmocka_unit_test(test_runtime_texts),
		cmocka_unit_test(test_runtime_states),
		cmocka_unit_test(test_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
