/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How often triggers fire, and the syntax of theirs; how pressure grows; daemon/ship */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "basic/strv.h"
#include "config/post.h"
#include "config/pressure.h"
#include "daemon/plumbing/ship.h"
#include "daemon/trigger/pressure-growth.h"
#include "daemon/trigger/trigger-limit.h"
#include "tests/unit/tmp.h"

#define S USEC_PER_SEC

static void test_burst(void **state)
{
	struct trigger_limit limit = {};

	for (unsigned i = 0; i < 3; i++)
		assert_true(trigger_limit_admit(&limit, 3, 60 * S, 100 * S + i));
	assert_int_equal(limit.refused, 0);
	/* The interval counts from the first of them */
	assert_false(trigger_limit_admit(&limit, 3, 60 * S, 101 * S));
	assert_int_equal(trigger_limit_wait(&limit, 3, 60 * S, 101 * S), 59 * S);
	assert_false(trigger_limit_admit(&limit, 3, 60 * S, 160 * S - 1));
	assert_int_equal(limit.refused, 2);
	assert_int_equal(trigger_limit_wait(&limit, 3, 60 * S, 160 * S - 1), 1);
	assert_int_equal(trigger_limit_wait(&limit, 3, 60 * S, 160 * S), 0);
	assert_true(trigger_limit_admit(&limit, 3, 60 * S, 160 * S));
	assert_int_equal(limit.refused, 0);
	assert_int_equal(limit.admitted, 1);
	assert_int_equal(limit.begun_usec, 160 * S);
}

/* Rare ones never meet the limit, and the wait never lies */
static void test_apart(void **state)
{
	struct trigger_limit limit = {};

	for (unsigned i = 1; i < 100; i++) {
		assert_int_equal(trigger_limit_wait(&limit, 1, 10 * S, i * 10 * S), 0);
		assert_true(trigger_limit_admit(&limit, 1, 10 * S, i * 10 * S));
		assert_int_equal(trigger_limit_wait(&limit, 1, 10 * S, i * 10 * S), 10 * S);
	}
}

static void test_storm(void **state)
{
	struct trigger_limit limit = {};
	unsigned admitted = 0;

	/* 1000 a second for ten minutes: five at once, then after 1, 3 and 7 minutes */
	for (uint64_t now = 1; now < 600 * S; now += 1000) {
		uint64_t wait = trigger_limit_wait(&limit, 5, 60 * S, now);
		bool yes = trigger_limit_admit(&limit, 5, 60 * S, now);

		assert_true(!yes || wait == 0);
		assert_true(yes || wait > 0);
		admitted += yes;
		assert_int_equal(limit.taken, admitted);
	}
	assert_int_equal(admitted, 8);
	/* as soon as nothing has come for a minute, it is another storm */
	assert_int_equal(trigger_limit_wait(&limit, 5, 60 * S, 660 * S), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_true(trigger_limit_admit(&limit, 5, 60 * S, 660 * S + i));
	assert_int_equal(limit.taken, 5);
	assert_false(trigger_limit_admit(&limit, 5, 60 * S, 661 * S));
}

/* A day of it: at last one an hour; IntervalSec= above that stays as it is */
static void test_back_off(void **state)
{
	struct trigger_limit limit = {}, slow = {};
	unsigned admitted = 0, slowly = 0;
	uint64_t last = 0, gap = 0;

	for (uint64_t now = 1; now < 24 * 3600 * S; now += S) {
		if (trigger_limit_admit(&limit, 5, 60 * S, now)) {
			admitted++;
			gap = now - last;
			last = now;
		}
		slowly += trigger_limit_admit(&slow, 1, 7200 * S, now);
	}
	assert_int_equal(gap, 3600 * S);
	assert_int_equal(admitted, 5 + 6 + 22);
	assert_int_equal(slowly, 12);
}

/* Now and then, each time within the interval, but never beyond the burst: no storm */
static void test_now_and_then(void **state)
{
	struct trigger_limit limit = {};

	for (unsigned i = 1; i < 200; i++)
		assert_true(trigger_limit_admit(&limit, 5, 60 * S, i * 15 * S));
}

static void test_no_limit(void **state)
{
	struct trigger_limit limit = {};

	for (unsigned i = 0; i < 1000; i++)
		assert_true(trigger_limit_admit(&limit, 0, 60 * S, S));
	assert_int_equal(trigger_limit_wait(&limit, 0, 60 * S, S), 0);
	limit = (struct trigger_limit){};
	for (unsigned i = 0; i < 1000; i++)
		assert_true(trigger_limit_admit(&limit, 1, 0, S));
	assert_int_equal(limit.refused, 0);
}

/* A reload with other limits counts what there has been */
static void test_other_limit(void **state)
{
	struct trigger_limit limit = {};

	for (unsigned i = 0; i < 5; i++)
		assert_true(trigger_limit_admit(&limit, 5, 60 * S, S));
	assert_false(trigger_limit_admit(&limit, 2, 60 * S, 2 * S));
	assert_true(trigger_limit_admit(&limit, 6, 60 * S, 2 * S));
	assert_true(trigger_limit_admit(&limit, 2, S, 3 * S));
}

static void test_give_back(void **state)
{
	struct trigger_limit limit = {};

	trigger_limit_give_back(&limit);
	assert_int_equal(limit.admitted, 0);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(trigger_limit_admit(&limit, 1, 60 * S, S + i));
		assert_false(trigger_limit_admit(&limit, 1, 60 * S, S + i));
		trigger_limit_give_back(&limit);
	}
}

static void test_pressure(void **state)
{
	struct fault why = {};
	struct pressure p;

	assert_int_equal(pressure_parse("memory some 150ms 1s", &p, &why), 0);
	assert_string_equal(p.resource, "memory");
	assert_false(p.full);
	assert_int_equal(p.stall_usec, 150000);
	assert_int_equal(p.window_usec, S);
	assert_int_equal(pressure_parse("io full 1 10", &p, &why), 0);
	assert_string_equal(p.resource, "io");
	assert_true(p.full);
	assert_int_equal(p.stall_usec, S);
	assert_int_equal(p.window_usec, 10 * S);
	/* What was there stays on an error */
	assert_int_equal(pressure_parse("io full 1 10 x", &p, &why), -EINVAL);
	assert_string_equal(p.resource, "io");
	assert_int_equal(pressure_parse("", &p, &why), -EINVAL);
	assert_int_equal(pressure_parse("cpu some 11s 10s", &p, &why), -EINVAL);
	assert_int_equal(pressure_parse("cpu some 10ms 499ms", &p, &why), -EINVAL);
	assert_int_equal(pressure_parse("cpu some 10ms 500ms", &p, &why), 0);
}

static void test_pressure_of_unit(void **state)
{
	struct fault why = {};
	struct pressure p;

	assert_int_equal(pressure_parse("cpu some 1s 2s", &p, &why), 0);
	assert_string_equal(p.unit, "");
	assert_int_equal(pressure_parse("cpu full 1s 2s", &p, &why), -EINVAL);
	assert_int_equal(pressure_parse("cpu full 1s 2s unit=a.service", &p, &why), 0);
	assert_string_equal(p.unit, "a.service");
	assert_int_equal(pressure_parse("cpu full 1s 2s unit=", &p, &why), -EINVAL);
	assert_int_equal(pressure_parse("cpu some 1s 2s a.service", &p, &why), -EINVAL);
	assert_int_equal(pressure_parse("cpu some 1s 2s unit=a.service more", &p, &why), -EINVAL);
}

static void splits(const char *text, const char *condition, uint64_t usec)
{
	_cleanup_free_ char *is = NULL;
	struct fault why = {};
	uint64_t is_usec;

	assert_int_equal(post_split(text, &is, &is_usec, &why), 0);
	assert_string_equal(is, condition);
	assert_true(is_usec == usec);
}

static void test_post(void **state)
{
	static const char *const wrong[] = {"a:b post=", "a:b post=x", "a:b post=200y",
					    "a post=-1"};
	char *condition = NULL;
	struct fault why = {};
	uint64_t usec;

	splits("", "", POST_DEFAULT);
	splits("a:b", "a:b", POST_DEFAULT);
	splits("a:b post=2s", "a:b", 2 * S);
	splits("a:b if c == 1 post=0", "a:b if c == 1", 0);
	splits("post=2s", "post=2s", POST_DEFAULT);
	splits("a:b post=2s if c", "a:b post=2s if c", POST_DEFAULT);
	/* in a string of the filter */
	splits("a:b if c == \"d post=2s\"", "a:b if c == \"d post=2s\"", POST_DEFAULT);
	splits("a:b if c == \"d e\" post=2s", "a:b if c == \"d e\"", 2 * S);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(post_split(wrong[i], &condition, &usec, &why), -EINVAL);
		assert_null(condition);
	}
}

/* By looks twice in a window of 2 s */
static void test_growth(void **state)
{
	struct pressure_growth g = {};

	/* What was before the first look is nobody's */
	assert_int_equal(pressure_growth_add(&g, 2 * S, 10 * S, 5000), 0);
	assert_int_equal(pressure_growth_add(&g, 2 * S, 11 * S, 5100), 100);
	/* on both sides of a look */
	assert_int_equal(pressure_growth_add(&g, 2 * S, 12 * S, 5200), 200);
	assert_int_equal(pressure_growth_add(&g, 2 * S, 13 * S, 5200), 100);
	assert_int_equal(pressure_growth_add(&g, 2 * S, 14 * S, 5200), 0);
	/* of four windows one */
	assert_int_equal(pressure_growth_add(&g, 2 * S, 21 * S, 6000), 800 / 4);
	/* started again */
	assert_int_equal(pressure_growth_add(&g, 2 * S, 22 * S, 50), 50);
	assert_int_equal(pressure_growth_add(&g, 2 * S, 23 * S, 60), 60);
	assert_int_equal(pressure_growth_add(&g, 2 * S, 24 * S, 60), 10);
	pressure_growth_begin(&g, 25 * S, 0);
	assert_int_equal(pressure_growth_add(&g, 2 * S, 26 * S, 70), 70);
}

/* Somebody listens in the runtime directory, or not */
static void test_ship(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_free_ char *run = NULL, *slashes = NULL;
	_cleanup_close_ int listener = -EBADF, fd = -EBADF;
	char lines[64] = "", path[300];
	struct tmp tmp;

	tmp_init(&tmp);
	assert_true(asprintf(&run, "%s/run", tmp.path) > 0);
	assert_int_equal(mkdir(run, 0755), 0);
	assert_true(asprintf(&slashes, "%s//", run) > 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/ship", run);
	assert_int_equal(ship(run, "/a b.dat", "", ""), -ENOENT);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	/* left behind by one who has gone */
	assert_int_equal(ship(run, "/a b.dat", "", ""), -ENOENT);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(ship(run, "/a b.dat", "t5 waited", "h1-1"), 0);
	fd = accept(listener, NULL, NULL);
	assert_int_equal(read(fd, lines, sizeof(lines) - 1), strlen("/a b.dat\nt5 waited\nh1-1\n"));
	assert_string_equal(lines, "/a b.dat\nt5 waited\nh1-1\n");
	assert_int_equal(ship(slashes, "/c", "", ""), 0);
	/* does not wait for one who does not listen */
	for (int i = 0, r = 0; r != -EAGAIN; i++) {
		r = ship(run, "/c", "", "");
		assert_true(r == 0 || r == -EAGAIN);
		assert_true(i < 100);
	}
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(ship(path, "/c", "", ""), -ENOENT);
	assert_int_equal(unlink(address.sun_path), 0);
	tmp_done(&tmp);
}

/* Who asks other hosts is told, and never waited for */
static void test_ship_trigger(void **state)
{
	static const struct ship_notice notice = {
		.id = "h1-20261124T062400.882495Z",
		.reason = "event",
		.session = "demo",
		.cause = "OnEvent=a:b if c == \"\\n\"",
		.text = "two\nID=lines",
		.trigger_usec = 30,
		.since_usec = 20,
		.until_usec = 31,
	};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int listener = -EBADF;
	char lines[512] = "";
	struct tmp tmp;
	int r = 0;

	tmp_init(&tmp);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/trigger", tmp.path);
	assert_int_equal(ship_trigger(tmp.path, &notice), -ENOENT);
	listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(ship_trigger(tmp.path, &notice), 0);
	assert_true(recv(listener, lines, sizeof(lines) - 1, 0) > 0);
	assert_string_equal(lines, "ID=h1-20261124T062400.882495Z\nTRIGGER_USEC=30\nSINCE_USEC=20\n"
				   "UNTIL_USEC=31\nREASON=event\nSESSION=demo\n"
				   "CAUSE=OnEvent=a:b if c == \"\\n\"\nTEXT=two\\nID=lines\n");
	for (int i = 0; i < 100000 && r == 0; i++)
		r = ship_trigger(tmp.path, &notice);
	assert_int_equal(r, -EAGAIN);
	close_p(&listener);
	/* left behind */
	assert_int_equal(ship_trigger(tmp.path, &notice), -ENOENT);
	tmp_done(&tmp);
}

static void test_strv_equal(void **state)
{
	char *ab[] = {(char *)"a", (char *)"b", NULL}, *ba[] = {(char *)"b", (char *)"a", NULL};
	char *a[] = {(char *)"a", NULL}, *none[] = {NULL};

	assert_true(strv_equal(NULL, NULL));
	assert_true(strv_equal(NULL, none));
	assert_true(strv_equal(ab, ab));
	assert_false(strv_equal(ab, ba));
	assert_false(strv_equal(ab, a));
	assert_false(strv_equal(a, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst),	     cmocka_unit_test(test_apart),
		cmocka_unit_test(test_storm),	     cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_back_off),     cmocka_unit_test(test_now_and_then),
		cmocka_unit_test(test_other_limit),  cmocka_unit_test(test_give_back),
		cmocka_unit_test(test_pressure),     cmocka_unit_test(test_ship),
		cmocka_unit_test(test_strv_equal),   cmocka_unit_test(test_pressure_of_unit),
		cmocka_unit_test(test_post),	     cmocka_unit_test(test_growth),
		cmocka_unit_test(test_ship_trigger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
