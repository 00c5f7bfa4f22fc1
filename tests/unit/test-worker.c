/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker by itself: it takes what comes and sleeps when nothing does, also when a ring stays
 * readable; flushes; and what it tells the main thread.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker-fixture.h"

static void test_moves(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	for (unsigned i = 0; i < 20; i++) {
		fixture_put(&f, i % N_CPUS, 3, 4080);
		fixture_wait_total(&f, 3 * (i + 1));
	}
	assert_int_equal(fixture_size_in_file(&f, 0, 0) + fixture_size_in_file(&f, 0, 1) +
				 fixture_size_in_file(&f, 0, 2),
			 60 * SUBBUF);
	assert_int_equal(fixture_notified(&f, 0), 0);
	fixture_assert_idle(0);
	fixture_end(&f);
}

static void test_partial_does_not_spin(void **state)
{
	struct fixture f;
	char half[100] = {1};

	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.splice_empty, true);
	fixture_put(&f, 0, 1, 200); /* taken by the one read that a wake-up allows */
	fixture_wait_total(&f, 1);
	fixture_put(&f, 0, 2, 0); /* readable, nothing in it */
	fixture_assert_idle(0);
	assert_int_equal(fixture_total(&f), SUBBUF);
	fixture_put(&f, 1, 5, 4080);
	assert_int_equal(write(f.ring[2], half, sizeof(half)), sizeof(half));
	fixture_assert_idle(0);
	fixture_end(&f);
}

static void test_flush_takes_partial(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	fixture_put(&f, 0, 1, 4080);
	fixture_wait_total(&f, 1);
	atomic_store(&world.splice_empty, true);
	fixture_put(&f, 0, 1, 0); /* spends the wake-up */
	fixture_assert_idle(0);
	fixture_put(&f, 0, 1, 200);
	fixture_assert_idle(0);
	assert_int_equal(fixture_total(&f), SUBBUF);
	worker_flush(f.worker);
	fixture_wait_total(&f, 2);
	/* and after a flush it wakes by itself again */
	fixture_assert_idle(0);
	atomic_store(&world.splice_empty, false);
	fixture_put(&f, 0, 4, 4080);
	fixture_wait_total(&f, 6);
	fixture_assert_idle(0);
	fixture_end(&f);
}

/* Told when all CPUs were asked for all they had; who had more says so */
static void test_flush_tells(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	assert_true(worker_flushed(f.worker));
	atomic_store(&world.splice_empty, true);
	fixture_put(&f, 0, 1, 200);
	fixture_wait_total(&f, 1); /* its wake-up takes it, and is spent */
	fixture_put(&f, 0, 1, 200);
	worker_tell_flushes(f.worker, true);
	worker_flush(f.worker);
	assert_int_equal(fixture_notified(&f, DEADLINE_MS), 1);
	assert_true(worker_flushed(f.worker));
	fixture_wait_total(&f, 2);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		assert_false(atomic_load(&f.pumps[cpu].behind));
	worker_tell_flushes(f.worker, false);
	worker_flush(f.worker); /* nobody wants to know */
	for (unsigned i = 0; i < DEADLINE_MS && !worker_flushed(f.worker); i++)
		(void)usleep(1000);
	assert_true(worker_flushed(f.worker));
	assert_int_equal(fixture_notified(&f, 50), 0);
	atomic_store(&world.splice_empty, false);
	atomic_store(&world.disk_error, ENOSPC);
	fixture_put(&f, 1, 2, 4080);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	worker_tell_flushes(f.worker, true);
	worker_flush(f.worker);
	assert_int_equal(fixture_notified(&f, DEADLINE_MS), 1);
	assert_true(worker_flushed(f.worker));
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) /* their pipe holds the data of one */
		assert_true(atomic_load(&f.pumps[cpu].behind));
	atomic_store(&world.disk_error, 0);
	fixture_end(&f);
}

/* Who waits for a flush is told in the end, also when others ask for theirs at any time */
static void test_flush_beside_flush(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	worker_tell_flushes(f.worker, true);
	for (unsigned round = 0; round < 2000; round++) {
		worker_flush(f.worker);
		if (round % 3 == 1)
			(void)sched_yield();
		worker_flush(f.worker);
		while (!worker_flushed(f.worker))
			assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	}
	fixture_end(&f);
}

static void test_bytes_left_notifies_once(void **state)
{
	struct fixture f;

	fixture_begin(&f, 10 * SUBBUF);
	fixture_put(&f, 0, 9, 4080);
	fixture_wait_total(&f, 9);
	assert_int_equal(fixture_notified(&f, 50), 0);
	fixture_put(&f, 1, 1, 4080);
	assert_int_equal(fixture_notified(&f, DEADLINE_MS), 1);
	for (unsigned i = 0; i < 5; i++) {
		fixture_put(&f, i % N_CPUS, 1, 4080);
		fixture_wait_total(&f, 11 + i);
	}
	assert_int_equal(fixture_notified(&f, 50), 0);
	assert_int_equal(atomic_load(&f.bytes_left), -5 * SUBBUF);
	fixture_end(&f);
}

static void test_trouble_notifies(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.disk_error, ENOSPC);
	fixture_put(&f, 0, 4, 4080);
	assert_int_equal(fixture_notified(&f, DEADLINE_MS), 1);
	assert_int_equal(atomic_load(&f.pumps[0].trouble), -ENOSPC);
	fixture_assert_idle(0);
	worker_flush(f.worker); /* the same trouble: nothing new to tell */
	assert_int_equal(fixture_notified(&f, 100), 0);
	atomic_store(&world.disk_error, EIO);
	worker_flush(f.worker);
	assert_int_equal(fixture_notified(&f, DEADLINE_MS), 1);
	assert_int_equal(atomic_load(&f.pumps[0].trouble), -EIO);
	atomic_store(&world.disk_error, 0);
	worker_flush(f.worker);
	assert_int_equal(fixture_notified(&f, DEADLINE_MS), 1);
	assert_int_equal(atomic_load(&f.pumps[0].trouble), 0);
	fixture_wait_total(&f, 4);
	fixture_put(&f, 0, 2, 4080); /* wakes by itself again */
	fixture_wait_total(&f, 6);
	fixture_end(&f);
}

static void assert_held(struct fixture *f, unsigned holder, bool held)
{
	assert_int_equal(atomic_load(&f->note.cpu), held ? holder + 1 : 0);
	assert_true(f->staging.holder == (held ? &f->pumps[holder] : NULL));
}

/* What the disk did not take of one CPU is in the pipe of all: the others wait, and then go on */
static void test_disk_error_holds_the_pipe(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.disk_error, ENOSPC);
	fixture_put(&f, 1, 2, 4080);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	fixture_assert_idle(0);
	assert_held(&f, 1, true);
	fixture_put(&f, 0, 3, 4080);
	fixture_put(&f, 2, 1, 4080);
	fixture_assert_idle(0);
	assert_int_equal(fixture_in_ring(&f, 0), 3 * SUBBUF);
	assert_int_equal(fixture_in_ring(&f, 2), SUBBUF);
	assert_int_equal(atomic_load(&f.pumps[0].trouble), 0); /* nothing of its was tried */
	assert_int_equal(atomic_load(&f.pumps[1].trouble), -ENOSPC);
	worker_flush(f.worker);
	fixture_assert_idle(1);
	assert_int_equal(fixture_total(&f), 0);
	assert_int_equal(fixture_in_ring(&f, 0), 3 * SUBBUF);
	atomic_store(&world.disk_error, 0);
	worker_flush(f.worker);
	fixture_wait_total(&f, 6);
	fixture_assert_idle(0);
	assert_held(&f, 1, false);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		assert_int_equal(atomic_load(&f.pumps[cpu].trouble), 0);
		assert_int_equal(fixture_size_in_file(&f, 0, cpu), (3 - cpu) * SUBBUF);
	}
	fixture_put(&f, 2, 1, 4080); /* wakes by itself again */
	fixture_wait_total(&f, 7);
	fixture_end(&f);
}

/* It is enough that another CPU's ring buffer fills up */
static void test_held_pipe_is_tried_again(void **state)
{
	struct fixture f;

	fixture_begin(&f, INT64_MAX);
	atomic_store(&world.disk_error, EIO);
	fixture_put(&f, 2, 2, 4080);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0);
	fixture_assert_idle(0);
	atomic_store(&world.disk_error, 0);
	fixture_put(&f, 0, 1, 4080);
	fixture_wait_total(&f, 3);
	assert_true(fixture_notified(&f, DEADLINE_MS) > 0); /* the trouble is over */
	assert_int_equal(atomic_load(&f.pumps[2].trouble), 0);
	assert_int_equal(fixture_size_in_file(&f, 0, 0), SUBBUF);
	assert_int_equal(fixture_size_in_file(&f, 0, 2), 2 * SUBBUF);
	fixture_end(&f);
}

static void test_new_refused(void **state)
{
	_cleanup_close_ int file = memfd_create("no-epoll", MFD_CLOEXEC);
	struct pump pump = {.trace_fd = file}, *pumps[] = {&pump};
	_Atomic int64_t left = 0;
	struct worker *worker = NULL;

	assert_int_equal(worker_new(pumps, NULL, 1, -1, &left, &worker), -EPERM);
	assert_null(worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_partial_does_not_spin),
		cmocka_unit_test(test_flush_takes_partial),
		cmocka_unit_test(test_flush_tells),
		cmocka_unit_test(test_flush_beside_flush),
		cmocka_unit_test(test_bytes_left_notifies_once),
		cmocka_unit_test(test_trouble_notifies),
		cmocka_unit_test(test_disk_error_holds_the_pipe),
		cmocka_unit_test(test_held_pipe_is_tried_again),
		cmocka_unit_test(test_new_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
