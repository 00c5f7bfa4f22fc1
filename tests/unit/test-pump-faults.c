/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What recorder/pump does when calls fail or stop short: nothing is lost that can be kept, nothing
 * is written twice, and no size is published that splits a sub-buffer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/pump-fixture.h"

static void test_fallocate_enospc_takes_nothing(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 5);
	/* 1 MiB, then less and less, at last what the pipe holds */
	for (unsigned i = 0; i < 3; i++)
		world_order(&world.fallocate, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -ENOSPC);
	assert_int_equal(world.fallocate.calls, 3);
	assert_int_equal(atomic_load(&f.pump.trouble), -ENOSPC);
	assert_int_equal(fixture_in_ring(&f), 5);
	assert_int_equal(world.pull.calls, 0);
	assert_int_equal(f.staging.in_pipe, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	fixture_assert_data(&f, 0, 5);
	fixture_end(&f);
}

/* A quota is a disk that is full, too */
static void test_quota_is_a_full_disk(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 5);
	world_order(&world.fallocate, EDQUOT, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_true(world.allocated_to - world.allocated_from < (off_t)MIB);
	fixture_assert_data(&f, 0, 5);
	fixture_end(&f);
}

static void test_little_space_left(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 5);
	world_order(&world.fallocate, 0, 300 * KIB);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.allocated_from, REGION);
	assert_int_equal(world.allocated_to - world.allocated_from, 256 * KIB);
	fixture_assert_data(&f, 0, 5);
	fixture_end(&f);
}

static void test_fallocate_other_errors(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 5);
	world_order(&world.fallocate, EINTR, 0);
	world_order(&world.fallocate, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	assert_int_equal(fixture_in_ring(&f), 5);
	world_order(&world.fallocate, EOPNOTSUPP, 0); /* then never asked again */
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.fallocate.calls, 3);
	fixture_put(&f, 64);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.fallocate.calls, 3);
	fixture_assert_data(&f, 0, 69);
	fixture_end(&f);
}

static void test_short_splices(void **state)
{
	const size_t lengths[] = {4096, 1, 511, 512, 4095, 4097, 12288, 10000};
	struct fixture f;

	fixture_begin(&f, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		world_order(&world.push, i % 3 == 2 ? EINTR : 0, lengths[i]);
	fixture_put(&f, 40);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 40);
	fixture_end(&f);
}

/* A size that splits a sub-buffer is never published */
static void test_torn_by_an_error(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 3);
	world_order(&world.push, 0, 5000);
	world_order(&world.push, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 4096);
	assert_int_equal(atomic_load(&f.pump.published), 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 4096);
	assert_int_equal(f.pump.size, 5000);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 3);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
	fixture_end(&f);
}

static void test_torn_then_retargeted(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 3);
	world_order(&world.push, 0, 5000);
	world_order(&world.push, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -ENOSPC);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	world_order(&world.push, ENOSPC, 0); /* the old file is asked once more */
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 4096);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 2, 1);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 2 * 4096);
	fixture_end(&f);
}

/* The old file gets what was taken for it, if it takes it at last */
static void test_retarget_pushes_first(void **state)
{
	_cleanup_close_ int stats = memfd_create("stats", MFD_CLOEXEC);
	struct fixture f;

	fixture_begin(&f, 4096);
	assert_int_equal(write(stats, "overrun: 7\n", 11), 11);
	f.pump.stats_fd = TAKE_FD(stats);
	fixture_put(&f, 3);
	world_order(&world.push, 0, 5000);
	world_order(&world.push, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 3 * 4096);
	assert_int_equal(fixture_size_in_file(&f, OTHER_SIZE_AT), 0);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 3 * 4096);
	assert_string_equal(f.pump.stats, "overrun: 7\n");
	fixture_put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 3, 2);
	fixture_end(&f);
}

/* What is in the pipe already goes to the next target when this one has no room for it */
static void test_full_with_data_in_hand(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 4);
	world_order(&world.push, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -ENOSPC);
	assert_int_equal(f.staging.in_pipe, 4 * 4096);
	f.pump.target.room = 3 * 4096;
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_FULL);
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	f.target.region += MIB;
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 4);
	fixture_end(&f);
}

static void test_direct_refused(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	f.target.data_fd = f.direct;
	pump_set_target(&f.pump, &f.target);
	fixture_put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 1);
	world.direct_refused = true;
	fixture_put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 2);
	fixture_put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 2); /* not asked again in this file */
	fixture_assert_data(&f, 0, 6);
	fixture_end(&f);

	fixture_begin(&f, 4096); /* by copy as well */
	f.target.data_fd = f.direct;
	pump_set_target(&f.pump, &f.target);
	world.direct_refused = world.splice_empty = true;
	fixture_put_into(&f, f.ring, 1, 100);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 1);
	world_order(&world.pwrite_data, EINVAL, 0); /* and buffered, EINVAL is an error */
	fixture_put_into(&f, f.ring, 1, 100);
	assert_int_equal(pump_run(&f.pump, true, 8), -EINVAL);
	fixture_end(&f);
}

/* An odd length on its way must not be continued with O_DIRECT */
static void test_odd_length_leaves_direct(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	f.target.data_fd = f.direct;
	pump_set_target(&f.pump, &f.target);
	fixture_put(&f, 4);
	world_order(&world.push, 0, 4096 + 512);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 1);
	fixture_assert_data(&f, 0, 4);
	fixture_end(&f);
}

static void test_pull_errors(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 2);
	world_order(&world.pull, EINTR, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 2);
	world_order(&world.pull, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	assert_int_equal(atomic_load(&f.pump.trouble), -EIO);
	fixture_end(&f);
}

/* No memory in pieces of a sub-buffer's size: what read(2) copies goes on, and splice when it can
 */
static void test_pull_without_memory(void **state)
{
	struct fixture f;

	fixture_begin(&f, 16384);
	fixture_put(&f, 8);
	for (unsigned i = 0; i < 5; i++)
		world_order(&world.pull, ENOMEM, 0);
	assert_int_equal(pump_run(&f.pump, false, 4), PUMP_E_MORE);
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	assert_false(atomic_load(&f.pump.mapped_elsewhere));
	fixture_assert_data(&f, 0, 4);
	assert_int_equal(pump_run(&f.pump, false, 4), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 8);
	/* nor for read: the next flush tries again, and nothing is lost */
	fixture_put(&f, 2);
	world_order(&world.pull, ENOMEM, 0);
	world.read_error = ENOMEM;
	assert_int_equal(pump_run(&f.pump, false, 4), -ENOMEM);
	assert_int_equal(atomic_load(&f.pump.trouble), -ENOMEM);
	world.read_error = 0;
	assert_int_equal(pump_run(&f.pump, true, 4), PUMP_E_EMPTY);
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	fixture_assert_data(&f, 0, 10);
	fixture_end(&f);
}

/* A CPU that has never been there is no trouble, and has its ring buffer when it comes */
static void test_pull_of_a_possible_cpu(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	world.splice_empty = true;
	world.read_error = ENODEV;
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	world.read_error = EIO;
	assert_int_equal(pump_run(&f.pump, true, 8), -EIO);
	world.read_error = 0;
	fixture_put_into(&f, f.ring, 1, 200);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 1);
	fixture_end(&f);
}

/* The size could not be written: the data waits in the file, nothing is written twice */
static void test_publish_fails(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 3);
	world_order(&world.pwrite_size, EDQUOT, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EDQUOT);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 0);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 3);
	fixture_end(&f);
}

static void test_slot_is_kept_until_written(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	world.splice_empty = true;
	fixture_put_into(&f, f.ring, 1, 200);
	world_order(&world.pwrite_data, 0, 1000);
	world_order(&world.pwrite_data, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -ENOSPC);
	assert_true(fixture_slot_used(&f));
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 0);
	/* it goes before what has come since */
	world.splice_empty = false;
	fixture_put(&f, 2);
	world_order(&world.pwrite_data, EINTR, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 3);
	assert_false(fixture_slot_used(&f));
	fixture_end(&f);
}

/* Cleared only once readers can see it in the file; and never in the file twice */
static void test_slot_publish_fails(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	world.splice_empty = true;
	fixture_put_into(&f, f.ring, 1, 200);
	world_order(&world.pwrite_size, EIO, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -EIO);
	assert_true(fixture_slot_used(&f));
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_false(fixture_slot_used(&f));
	fixture_assert_data(&f, 0, 1);
	fixture_put_into(&f, f.ring, 1, 200);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 2);
	fixture_end(&f);
}

static void test_slot_goes_to_the_next_target(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	world.splice_empty = true;
	fixture_put_into(&f, f.ring, 1, 200);
	world_order(&world.pwrite_data, EIO, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -EIO);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	world_order(&world.pwrite_data, EIO, 0); /* the old file is asked once more */
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(pump_run(&f.pump, false, 0), PUMP_E_MORE); /* a hand-over does just this */
	fixture_assert_data(&f, 0, 1);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 0);
	assert_false(fixture_slot_used(&f));
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fallocate_enospc_takes_nothing),
		cmocka_unit_test(test_quota_is_a_full_disk),
		cmocka_unit_test(test_little_space_left),
		cmocka_unit_test(test_fallocate_other_errors),
		cmocka_unit_test(test_short_splices),
		cmocka_unit_test(test_torn_by_an_error),
		cmocka_unit_test(test_torn_then_retargeted),
		cmocka_unit_test(test_retarget_pushes_first),
		cmocka_unit_test(test_full_with_data_in_hand),
		cmocka_unit_test(test_direct_refused),
		cmocka_unit_test(test_odd_length_leaves_direct),
		cmocka_unit_test(test_pull_errors),
		cmocka_unit_test(test_pull_without_memory),
		cmocka_unit_test(test_pull_of_a_possible_cpu),
		cmocka_unit_test(test_publish_fails),
		cmocka_unit_test(test_slot_is_kept_until_written),
		cmocka_unit_test(test_slot_publish_fails),
		cmocka_unit_test(test_slot_goes_to_the_next_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
