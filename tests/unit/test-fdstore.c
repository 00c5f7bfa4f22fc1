/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/fdstore: what is put into the service manager's store is taken, and can be passed on to
 * the next process, whose environment holds all names in one string.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "daemon/plumbing/fdstore.h"

#define ONE_STRING_MAX (128 * 1024) /* the kernel's MAX_ARG_STRLEN */

static size_t stored, names, removed, entries;

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

int __wrap_sd_notifyf(int unset, const char *format, ...);

int __wrap_sd_notifyf(int unset, const char *format, ...)
{
	assert_non_null(strstr(format, "FDSTOREREMOVE=1"));
	removed++;
	return 1;
}

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	entries = n;
	return __real_reallocarray(p, n, size);
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

	stored = names = removed = entries = 0;
	(void)unsetenv("LISTEN_FDS");
	(void)setenv("FDSTORE", "1000000", 1); /* names are the limit */
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

/* Beyond FileDescriptorStoreMax= the service manager would close them, and nobody would know */
static void test_no_room(void **state)
{
	static const struct {
		const char *max; /* FDSTORE= */
		size_t fds;
	} cases[] = {{"1000", 1000}, {NULL, 4096}, {"", 4096}, {"0", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fdstore *store;

		stored = 0;
		if (cases[i].max)
			(void)setenv("FDSTORE", cases[i].max, 1);
		else
			(void)unsetenv("FDSTORE");
		assert_int_equal(fdstore_new(&store), 0);
		put_cpus(store, "all-but-one", MAX(cases[i].fds, 1U) - 1);
		fdstore_put(store, "one", "slots", 0);
		assert_int_equal(stored, cases[i].fds);
		fdstore_drop(store, "one", "slots");
		fdstore_put(store, "two", "slots", 0);
		fdstore_put(store, "two", "cpu0.pipe", 0);
		assert_int_equal(stored, cases[i].fds + (cases[i].fds > 0));
		fdstore_free(store);
	}
}

static void test_no_manager(void **state)
{
	(void)unsetenv("NOTIFY_SOCKET");
	put_cpus(*state, "sched", 8192);
	assert_int_equal(stored, 0);
}

static int some_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void assert_closed(int fd)
{
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

/* While its disk is away a session takes all there is, and keeps it again, every few seconds */
static void test_keep_and_take(void **state)
{
	static const char *const whats[] = {"slots", "notes", "cpu0.trace", "worker0.pipe"};
	int fds[] = {some_fd(), some_fd(), some_fd(), some_fd()};

	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
			fdstore_keep(*state, "away", whats[i], fds[i]);
		assert_int_equal(entries, ARRAY_SIZE(whats));
		for (size_t i = 0; i < ARRAY_SIZE(whats); i++) {
			size_t k = (i + (size_t)round) % ARRAY_SIZE(whats);

			assert_int_equal(fdstore_take(*state, "away", whats[k]), fds[k]);
			assert_int_equal(fdstore_take(*state, "away", whats[k]), -ENOENT);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(close(fds[i]), 0);
}

static void test_drop_session(void **state)
{
	int a = some_fd(), b = some_fd(), c = some_fd(), d = some_fd();

	fdstore_keep(*state, "one", "cpu0.trace", a);
	fdstore_keep(*state, "one", "worker0.pipe", b);
	fdstore_keep(*state, "one-more", "slots", c);
	fdstore_keep(*state, "one", "slots", d);
	fdstore_drop_session(*state, "one");
	assert_int_equal(removed, 3);
	assert_closed(a);
	assert_closed(b);
	assert_closed(d);
	assert_int_equal(fdstore_take(*state, "one", "slots"), -ENOENT);
	assert_int_equal(fdstore_take(*state, "one-more", "slots"), c);
	assert_int_equal(close(c), 0);
}

static bool is_in_list(void *userdata, const char *session)
{
	for (const char **name = userdata; *name; name++)
		if (strcmp(*name, session) == 0)
			return true;
	return false;
}

/* Whoever may still take something keeps it, whatever goes before and after it */
static void test_drop_rest(void **state)
{
	static const char *const sessions[] = {"a", "b", "c", "b", "a", "d", "c", "a"};
	const char *list[] = {"c", "b", NULL};
	char what[32];

	for (unsigned i = 0; i < ARRAY_SIZE(sessions); i++) {
		(void)snprintf(what, sizeof(what), "cpu%u.%s", i, i % 3 ? "pipe" : "trace");
		fdstore_keep(*state, sessions[i], what, some_fd());
	}
	fdstore_drop_rest(*state, is_in_list, list);
	assert_int_equal(removed, 4);
	for (unsigned i = 0; i < ARRAY_SIZE(sessions); i++) {
		int fd;

		(void)snprintf(what, sizeof(what), "cpu%u.%s", i, i % 3 ? "pipe" : "trace");
		fd = fdstore_take(*state, sessions[i], what);
		assert_int_equal(fd >= 0, is_in_list(list, sessions[i]));
		if (fd >= 0)
			assert_int_equal(close(fd), 0);
	}
	list[0] = NULL;
	fdstore_keep(*state, "c", "slots", some_fd());
	fdstore_drop_rest(*state, is_in_list, list);
	assert_int_equal(removed, 5);
}

/* What a session that is dropped took up in the store is free again */
static void test_room_after_drop_session(void **state)
{
	char what[32];

	for (int round = 0; round < 20; round++) {
		put_cpus(*state, "again", 1024);
		for (unsigned cpu = 0; cpu < 1024; cpu++) {
			(void)snprintf(what, sizeof(what), "cpu%u.pipe", cpu);
			fdstore_keep(*state, "again", what, -EBADF);
		}
		fdstore_drop_session(*state, "again");
	}
	assert_int_equal(stored, 20 * 1024);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_room_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_manager, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keep_and_take, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_drop_session, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_drop_rest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_room_after_drop_session, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
