/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/fdstore: what is put into the service manager's store can be passed on to the next
 * process, whose environment holds all names in one string.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "daemon/fdstore.h"

#define ONE_STRING_MAX (128 * 1024) /* the kernel's MAX_ARG_STRLEN */

static size_t stored, names;

int __wrap_sd_pid_notify_with_fds(pid_t pid, int unset, const char *state, const int *fds,
				  unsigned n_fds);

int __wrap_sd_pid_notify_with_fds(pid_t pid, int unset, const char *state, const int *fds,
				  unsigned n_fds)
{
	const char *name = strstr(state, "FDNAME=");

	assert_int_equal(n_fds, 1);
	assert_non_null(name);
	stored++;
	names += strlen(name + strlen("FDNAME=")) + 1;
	return 1;
}

static void put_cpus(struct fdstore *store, const char *session, unsigned n)
{
	char what[32];

	for (unsigned cpu = 0; cpu < n; cpu++) {
		(void)snprintf(what, sizeof(what), "cpu%u.pipe", cpu);
		fdstore_put(store, session, what, 0);
	}
}

static int set_up(void **state)
{
	struct fdstore *store;

	stored = names = 0;
	(void)unsetenv("LISTEN_FDS");
	(void)setenv("NOTIFY_SOCKET", "/nonexistent", 1);
	if (fdstore_new(&store) < 0)
		return -1;
	*state = store;
	return 0;
}

static int tear_down(void **state)
{
	fdstore_free(*state);
	return 0;
}

static void test_few(void **state)
{
	put_cpus(*state, "sched", 2048);
	assert_int_equal(stored, 2048);
}

static void test_too_many(void **state)
{
	char session[57];

	(void)memset(session, 'x', sizeof(session) - 1);
	session[sizeof(session) - 1] = '\0';
	put_cpus(*state, session, 4096);
	assert_true(stored > 1500 && stored < 4096);
	assert_true(names + strlen("LISTEN_FDNAMES=") < ONE_STRING_MAX);
	/* those that come later do not get in by being shorter: half a session is of no use */
	stored = 0;
	put_cpus(*state, "s", 1);
	assert_int_equal(stored, 0);
}

static void test_room_again(void **state)
{
	char what[32];

	for (int round = 0; round < 20; round++) {
		put_cpus(*state, "again", 1024);
		for (unsigned cpu = 0; cpu < 1024; cpu++) {
			(void)snprintf(what, sizeof(what), "cpu%u.pipe", cpu);
			fdstore_drop(*state, "again", what);
		}
	}
	assert_int_equal(stored, 20 * 1024);
}

static void test_no_manager(void **state)
{
	(void)unsetenv("NOTIFY_SOCKET");
	put_cpus(*state, "sched", 8192);
	assert_int_equal(stored, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_room_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_manager, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
