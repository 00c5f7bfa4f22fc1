/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What comes before what, of all that a session may have to do; and what another configuration
 * takes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/config-session.h"
#include "daemon/session/session-choose.h"

#define RECORDING .state = SESSION_RECORDING, .may_rotate = true

static void choose(const struct session_view *view, enum session_choice expected)
{
	assert_int_equal(session_choose(view), expected);
}

#define CHOOSE(expected, ...) choose(&(const struct session_view){__VA_ARGS__}, expected)

static const unsigned all_wants = WANT_STOP | WANT_HAND_OVER | WANT_LEAVE | WANT_ROTATE |
				  WANT_SYNC | WANT_NOTE | WANT_METHOD | WANT_TRIGGERS | WANT_WATCH;

static void test_nothing(void **state)
{
	CHOOSE(CHOICE_NONE, RECORDING);
	CHOOSE(CHOICE_NONE, .state = SESSION_STOPPING);
	/* One step at a time */
	CHOOSE(CHOICE_NONE, RECORDING, .busy = true, .flight = true, .wants = all_wants,
	       .blocked = true, .change = true, .snapshot = true);
	/* Before it records, and after */
	for (enum session_state s = SESSION_STOPPED; s <= SESSION_FAILED; s++)
		if (s != SESSION_RECORDING && s != SESSION_STOPPING)
			CHOOSE(CHOICE_NONE, .state = s, .may_rotate = true, .flight = true,
			       .wants = all_wants, .blocked = true, .change = true,
			       .snapshot = true);
}

static void test_at_once(void **state)
{
	CHOOSE(CHOICE_METHOD, RECORDING, .flight = true,
	       .wants = WANT_METHOD | WANT_TRIGGERS | WANT_STOP, .snapshot = true);
	CHOOSE(CHOICE_NONE, RECORDING, .wants = WANT_METHOD);
	CHOOSE(CHOICE_TRIGGERS, RECORDING, .wants = WANT_TRIGGERS | WANT_WATCH | WANT_LEAVE,
	       .snapshot = true);
	CHOOSE(CHOICE_WATCH, RECORDING, .wants = WANT_WATCH | WANT_LEAVE | WANT_NOTE,
	       .snapshot = true);
	/* New triggers are of no use for what ends */
	CHOOSE(CHOICE_STOP, RECORDING, .wants = WANT_TRIGGERS | WANT_WATCH | WANT_STOP);
	CHOOSE(CHOICE_NONE, .state = SESSION_STOPPING, .wants = WANT_TRIGGERS | WANT_WATCH);
}

static void test_rotation(void **state)
{
	CHOOSE(CHOICE_ROTATE, RECORDING, .wants = WANT_ROTATE | WANT_SYNC | WANT_STOP);
	/* Draining waits for it; otherwise people do */
	CHOOSE(CHOICE_ROTATE, RECORDING, .wants = WANT_ROTATE, .blocked = true, .snapshot = true);
	CHOOSE(CHOICE_SNAPSHOT, RECORDING, .wants = WANT_ROTATE, .snapshot = true);
	/* The last try has failed lately */
	CHOOSE(CHOICE_NONE, .state = SESSION_RECORDING, .wants = WANT_ROTATE, .blocked = true);
	CHOOSE(CHOICE_SYNC, .state = SESSION_RECORDING, .wants = WANT_ROTATE | WANT_SYNC);
	CHOOSE(CHOICE_STOP, .state = SESSION_RECORDING, .wants = WANT_ROTATE | WANT_STOP);
	/* It goes on while the old file is copied from */
	CHOOSE(CHOICE_ROTATE, RECORDING, .wants = WANT_ROTATE, .copying = true);
	/* What is left in the ring buffer at a stop may need room */
	CHOOSE(CHOICE_ROTATE, .state = SESSION_STOPPING, .may_rotate = true,
	       .wants = WANT_ROTATE | WANT_STOP, .blocked = true);
}

/* What has the disk open must end before that can be unmounted; nothing else waits for it */
static void test_compressing(void **state)
{
	CHOOSE(CHOICE_NONE, RECORDING, .wants = WANT_LEAVE, .compressing = true);
	CHOOSE(CHOICE_STOP, RECORDING, .wants = WANT_LEAVE);
	CHOOSE(CHOICE_STOP, RECORDING, .wants = WANT_STOP, .compressing = true);
	CHOOSE(CHOICE_ROTATE, RECORDING, .wants = WANT_ROTATE, .compressing = true);
	CHOOSE(CHOICE_SNAPSHOT, RECORDING, .snapshot = true, .compressing = true);
	CHOOSE(CHOICE_SYNC, RECORDING, .wants = WANT_SYNC, .compressing = true);
}

static void test_changes_and_notes(void **state)
{
	CHOOSE(CHOICE_CHANGE, RECORDING, .wants = WANT_NOTE | WANT_ROTATE | WANT_STOP,
	       .change = true, .blocked = true, .snapshot = true);
	CHOOSE(CHOICE_NOTE, RECORDING, .wants = WANT_NOTE | WANT_ROTATE | WANT_STOP,
	       .blocked = true, .snapshot = true);
	CHOOSE(CHOICE_STOP, .state = SESSION_STOPPING, .wants = WANT_NOTE | WANT_STOP,
	       .change = true);
}

static void test_snapshot(void **state)
{
	CHOOSE(CHOICE_SNAPSHOT, RECORDING, .wants = WANT_SYNC | WANT_STOP | WANT_HAND_OVER,
	       .snapshot = true);
	/* One at a time */
	CHOOSE(CHOICE_SYNC, RECORDING, .wants = WANT_SYNC, .snapshot = true, .copying = true);
	CHOOSE(CHOICE_STOP, .state = SESSION_STOPPING, .wants = WANT_STOP, .snapshot = true);
}

static void test_stop(void **state)
{
	CHOOSE(CHOICE_STOP, RECORDING, .wants = WANT_STOP | WANT_SYNC);
	/* A snapshot that is being copied is finished first; syncs go on */
	CHOOSE(CHOICE_NONE, RECORDING, .wants = WANT_STOP, .copying = true);
	CHOOSE(CHOICE_SYNC, RECORDING, .wants = WANT_STOP | WANT_SYNC, .copying = true);
	/* The next process is to find the ring buffer nearly empty */
	CHOOSE(CHOICE_SYNC, RECORDING, .wants = WANT_STOP | WANT_HAND_OVER | WANT_SYNC);
	CHOOSE(CHOICE_STOP, RECORDING, .wants = WANT_STOP | WANT_HAND_OVER);
	/* Once more, when what came between is done */
	CHOOSE(CHOICE_STOP, .state = SESSION_STOPPING, .wants = WANT_STOP);
}

static void test_leave(void **state)
{
	/* Nothing else can be done without a disk */
	CHOOSE(CHOICE_STOP, RECORDING, .wants = WANT_LEAVE | WANT_ROTATE | WANT_SYNC | WANT_NOTE,
	       .change = true, .blocked = true, .snapshot = true);
	/* but what is being copied has files open there */
	CHOOSE(CHOICE_SYNC, RECORDING, .wants = WANT_LEAVE | WANT_SYNC, .copying = true);
	CHOOSE(CHOICE_NONE, RECORDING, .wants = WANT_LEAVE, .copying = true);
	/* A stop goes its own way, and tries to write what there is */
	CHOOSE(CHOICE_SYNC, RECORDING,
	       .wants = WANT_LEAVE | WANT_STOP | WANT_HAND_OVER | WANT_SYNC);
	CHOOSE(CHOICE_STOP, RECORDING, .wants = WANT_LEAVE | WANT_STOP);
	CHOOSE(CHOICE_NONE, .state = SESSION_STOPPING, .wants = WANT_LEAVE);
	/* It may be there again: from the state that leaving ends in, and from no other */
	CHOOSE(CHOICE_START, .state = SESSION_FAILED, .wants = WANT_START);
	CHOOSE(CHOICE_NONE, .state = SESSION_FAILED, .wants = WANT_START, .busy = true);
	CHOOSE(CHOICE_NONE, .state = SESSION_STOPPED, .wants = WANT_START);
	CHOOSE(CHOICE_NONE, RECORDING, .wants = WANT_START);
}

static void test_sync(void **state)
{
	CHOOSE(CHOICE_SYNC, RECORDING, .wants = WANT_SYNC);
	CHOOSE(CHOICE_SYNC, .state = SESSION_STOPPING, .wants = WANT_SYNC);
}

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

static void compare(const char *next_text, enum session_difference expected)
{
	_cleanup_(session_config_freep) struct session_config *now =
		make_config("[Trace]\nEvent=irq\n[Storage]\nMaxUse=1G\n");
	_cleanup_(session_config_freep) struct session_config *next = make_config(next_text);

	if (session_compare(now, next) != expected)
		fail_msg("not %d: %s", expected, next_text);
	assert_int_equal(session_compare(next, now), expected);
	assert_int_equal(session_compare(next, next), DIFFERENT_NOTHING);
}

static void test_compare(void **state)
{
	compare("[Trace]\nEvent=irq\n[Storage]\nMaxUse=1024M\n", DIFFERENT_NOTHING);
	compare("[Trace]\nEvent=irq\nClock=mono\n[Storage]\nMaxUse=1G\n", DIFFERENT_NOTHING);
	compare("[Trace]\nEvent=irq\n[Storage]\nMaxUse=2G\n", DIFFERENT_REST);
	compare("[Trace]\nEvent=irq\n[Storage]\nMaxUse=1G\n[Snapshot]\nOnSignal=no\n",
		DIFFERENT_REST);
	compare("[Session]\nDescription=x\n[Trace]\nEvent=irq\n[Storage]\nMaxUse=1G\n",
		DIFFERENT_REST);
	compare("[Trace]\nEvent=sched\n[Storage]\nMaxUse=1G\n", DIFFERENT_EVENTS);
	compare("[Trace]\nEvent=irq:irq_handler_entry if irq == 1\n", DIFFERENT_EVENTS);
	compare("[Trace]\nEvent=irq\nBufferSize=1M\n[Storage]\nMaxUse=1G\n", DIFFERENT_SESSION);
	compare("[Trace]\nEvent=sched\nClock=boot\n", DIFFERENT_SESSION);
	compare("[Session]\nMode=flight\n[Trace]\nEvent=irq\n[Storage]\nMaxUse=1G\n",
		DIFFERENT_SESSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_rotation),
		cmocka_unit_test(test_compressing),
		cmocka_unit_test(test_changes_and_notes),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_compare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
