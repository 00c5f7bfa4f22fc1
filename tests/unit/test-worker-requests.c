/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the main thread asks of a worker: to go on in the next file, to finish, to leave what is in
 * the rings, to end at any moment.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker-fixture.h"

static void test_retarget(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	fixture_put(&f, 0, 3, 4080);
	fixture_wait_total(&f, 3);
	fixture_request(&f, WORKER_RETARGET);
	fixture_put(&f, 0, 2, 4080);
	fixture_put(&f, 2, 1, 4080);
	fixture_wait_total(&f, 6);
	assert_int_equal(fixture_size_in_file(&f, 0, 0), 3 * SUBBUF);
	assert_int_equal(fixture_size_in_file(&f, 1, 0), 2 * SUBBUF);
	assert_int_equal(fixture_size_in_file(&f, 1, 2), SUBBUF);
	fixture_end(&f);
}

/* The old disk takes nothing more: what is in the pipe goes to the next file, in its CPU's region
 */
static void test_retarget_with_a_held_pipe(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.disk_error, EIO);
	fixture_put(&f, 1, 2, 4080);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	fixture_put(&f, 0, 3, 4080);
	fixture_request(&f, WORKER_RETARGET);
	assert_int_equal(fixture_total(&f), 0);
	atomic_store(&world.disk_error, 0);
	fixture_put(&f, 2, 1, 4080);
	worker_flush(f.worker);
	fixture_wait_total(&f, 6);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		assert_int_equal(fixture_size_in_file(&f, 0, cpu), 0);
		assert_int_equal(atomic_load(&f.pumps[cpu].dropped_bytes), 0);
	}
	assert_int_equal(fixture_size_in_file(&f, 1, 0), 3 * SUBBUF);
	assert_int_equal(fixture_size_in_file(&f, 1, 1), 2 * SUBBUF);
	assert_int_equal(fixture_size_in_file(&f, 1, 2), SUBBUF);
	fixture_end(&f);
}

/* The old disk is all right again at this moment: it gets all that came before */
static void test_retarget_makes_way(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.disk_error, EIO);
	fixture_put(&f, 2, 2, 4080);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	fixture_assert_idle(0);
	fixture_put(&f, 0, 3, 4080);
	fixture_assert_idle(1);
	assert_int_equal(fixture_in_ring(&f, 0), 3 * SUBBUF);
	atomic_store(&world.disk_error, 0);
	fixture_request(&f, WORKER_RETARGET);
	fixture_wait_total(&f, 5);
	assert_int_equal(fixture_size_in_file(&f, 0, 2), 2 * SUBBUF);
	assert_int_equal(fixture_size_in_file(&f, 0, 0), 3 * SUBBUF);
	fixture_end(&f);
}

static void test_full_notifies_and_goes_on(void **state)
{
	uint64_t in_first;
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	for (unsigned i = 0; i < ROOM / SUBBUF / 64 - 1; i++) {
		fixture_put(&f, 1, 64, 4080);
		fixture_wait_total(&f, 64 * (i + 1));
	}
	assert_int_equal(fixture_notified(&f, 0), 0);
	fixture_put(&f, 1, 64 + 5, 4080);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	assert_true(atomic_load(&f.pumps[1].full));
	fixture_assert_idle(0); /* readable, but there is no place to put it */
	assert_int_equal(fixture_in_ring(&f, 1) + fixture_total(&f), ROOM + 5 * SUBBUF);
	assert_in_range(fixture_in_ring(&f, 1), 5 * SUBBUF, (5 + 15) * SUBBUF);
	in_first = fixture_total(&f) / SUBBUF;
	fixture_put(&f, 0, 1, 4080); /* the other CPUs go on */
	fixture_wait_total(&f, in_first + 1);
	fixture_request(&f, WORKER_RETARGET);
	fixture_wait_total(&f, ROOM / SUBBUF + 6);
	assert_int_equal(fixture_size_in_file(&f, 0, 1), in_first * SUBBUF);
	assert_int_equal(fixture_size_in_file(&f, 1, 1), ROOM + (5 - in_first) * SUBBUF);
	fixture_end(&f);
}

static void test_finish(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	/* Mapped, so that one wake-up takes one: the drain has to go round many times */
	atomic_store(&world.splice_empty, true);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		fixture_put(&f, cpu, 40, 200);
	fixture_request(&f, WORKER_FINISH);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		assert_int_equal(fixture_in_ring(&f, cpu), 0);
		assert_int_equal(fixture_size_in_file(&f, 0, cpu), 40 * SUBBUF);
	}
	fixture_end(&f);
}

static void test_leave(void **state)
{
	struct fixture f;
	unsigned held;

	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.disk_error, EIO);
	fixture_put(&f, 0, 4, 4080);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	fixture_put(&f, 0, 2, 4080);
	held = 6 * SUBBUF - fixture_in_ring(&f, 0); /* some of the first four, as they came */
	assert_in_range(held, SUBBUF, 4 * SUBBUF);
	atomic_store(&world.disk_error, 0);
	fixture_request(&f, WORKER_LEAVE);
	assert_int_equal(fixture_size_in_file(&f, 0, 0), held); /* what was in hand */
	fixture_put(&f, 1, 3, 4080);
	worker_flush(f.worker);
	fixture_assert_idle(2);
	assert_int_equal(fixture_total(&f), held);
	assert_int_equal(fixture_in_ring(&f, 0), 6 * SUBBUF - held);
	assert_int_equal(fixture_in_ring(&f, 1), 3 * SUBBUF);
	fixture_end(&f);
}

static void test_one_request_at_a_time(void **state)
{
	struct fixture f;
	unsigned busy = 0;

	fixture_begin(&f, INT64_MAX);
	for (unsigned i = 0; i < 1000; i++) {
		int r = worker_post(f.worker, WORKER_FINISH);

		assert_true(r == 0 || r == -EBUSY);
		busy += r == -EBUSY;
		worker_flush(f.worker);
	}
	for (unsigned i = 0; i < DEADLINE_MS && !worker_done(f.worker); i++)
		(void)usleep(1000);
	assert_true(worker_done(f.worker));
	assert_true(fixture_notified(&f, DEADLINE_MS) >= 1000 - busy);
	fixture_end(&f);
}

/* A thread that is in the middle of a request must end, too */
static void test_free_while_draining(void **state)
{
	struct fixture f;

	(void)alarm(60); /* a join that never returns would hang the whole run */
	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.slow_pulls, true);
	assert_int_equal(worker_post(f.worker, WORKER_FINISH), 0);
	for (unsigned i = 0; i < DEADLINE_MS && fixture_total(&f) == 0; i++)
		(void)usleep(1000);
	assert_true(fixture_total(&f) > 0);
	fixture_end(&f);
	(void)alarm(0);
}

static void test_free_at_any_moment(void **state)
{
	(void)alarm(60);
	for (unsigned i = 0; i < 200; i++) {
		struct fixture f;

		fixture_begin(&f, INT64_MAX);
		if (i % 2)
			fixture_put(&f, 0, 20, 4080);
		if (i % 3)
			assert_int_equal(worker_post(f.worker, WORKER_FINISH), 0);
		if (i % 5)
			(void)usleep(i % 7 * 20);
		fixture_end(&f);
	}
	(void)alarm(0);
	worker_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retarget),
		cmocka_unit_test(test_retarget_with_a_held_pipe),
		cmocka_unit_test(test_retarget_makes_way),
		cmocka_unit_test(test_full_notifies_and_goes_on),
		cmocka_unit_test(test_finish),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_one_request_at_a_time),
		cmocka_unit_test(test_free_while_draining),
		cmocka_unit_test(test_free_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
