/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recorder/pump when it reads many sub-buffers into memory and writes them from there: how many it
 * takes, and that nothing is lost or written twice when calls fail, stop short, or the process was
 * killed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recorder/ring-header.h"
#include "tests/unit/pump-fixture.h"

static void test_moves(void **state)
{
	const unsigned sizes[] = {4096, 16384};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct fixture f;

		fixture_begin_read(&f, sizes[i], 100);
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		assert_int_equal(world.pwrite_size.calls, 0);
		fixture_put(&f, 20);
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		assert_int_equal(world.pull.calls, 0);
		assert_int_equal(world.pwrite_data.calls, 1);
		fixture_assert_data(&f, 0, 20);
		fixture_put(&f, 3);
		assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
		assert_true(world.pull.calls > 0); /* a flush: the full ones by splice */
		fixture_assert_data(&f, 0, 23);
		assert_int_equal(atomic_load(&f.pump.subbufs), 23);
		assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
		fixture_assert_no_memory_used(&f);
		fixture_end(&f);
	}
}

/* No more than what was full at the wake-up: the rest may not be */
static void test_quota(void **state)
{
	struct fixture f;

	fixture_begin_read(&f, 4096, 30);
	fixture_put(&f, 100);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_MORE);
	fixture_assert_data(&f, 0, 30);
	assert_int_equal(fixture_in_ring(&f), 70);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_MORE);
	fixture_assert_data(&f, 0, 60);
	atomic_store(&f.pump.quota, 0); /* another way now */
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 100);
	fixture_end(&f);
}

/* The last may have nothing in it, and is left out */
static void test_nothing_in_the_last(void **state)
{
	struct fixture f;

	fixture_begin_read(&f, 4096, 30);
	fixture_put(&f, 2);
	fixture_put_into(&f, f.ring, 1, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 2);
	fixture_put_into(&f, f.ring, 1, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 2);
	fixture_assert_no_memory_used(&f);
	fixture_end(&f);
}

static void test_short_writes(void **state)
{
	const size_t lengths[] = {4096, 1, 511, 512, 4095, 4097, 12288, 10000};
	struct fixture f;

	fixture_begin_read(&f, 4096, 100);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		world_order(&world.pwrite_data, i % 3 == 2 ? EINTR : 0, lengths[i]);
	fixture_put(&f, 40);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 40);
	fixture_assert_no_memory_used(&f);
	fixture_end(&f);
}

/* Before anything is taken where the file system preallocates, else it waits and goes first */
static void test_full_disk(void **state)
{
	struct fixture f;

	fixture_begin_read(&f, 4096, 10);
	fixture_put(&f, 15);
	world_order(&world.fallocate, ENOSPC, 0); /* 1 MiB, then less and less */
	for (unsigned i = 0; i < 3; i++)
		world_order(&world.fallocate, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -ENOSPC);
	assert_int_equal(fixture_in_ring(&f), 15);
	world_order(&world.pwrite_data, 0, 5000);
	world_order(&world.pwrite_data, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -ENOSPC);
	assert_int_equal(fixture_in_ring(&f), 5);
	assert_int_equal(pump_pending(&f.pump), 10 * 4096 - 5000);
	assert_int_equal(atomic_load(&f.note.cpu), 3 + 1);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 4096); /* none that is torn */
	/* what is in the file is forgotten, and no more */
	assert_int_equal(ring_header_time(f.memory), 0);
	assert_int_not_equal(ring_header_time(f.memory + 4096), 0);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 15);
	fixture_assert_no_memory_used(&f);
	fixture_end(&f);
}

/* The one that the old disk took a part of is whole in the memory, and goes to the next file */
static void test_torn_then_retargeted(void **state)
{
	struct fixture f;

	fixture_begin_read(&f, 4096, 10);
	fixture_put(&f, 3);
	world_order(&world.pwrite_data, 0, 5000);
	world_order(&world.pwrite_data, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	world_order(&world.pwrite_data, EIO, 0); /* the old file is asked once more */
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(pump_run(&f.pump, false, 0), PUMP_E_MORE);
	fixture_assert_data(&f, 1, 2);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 4096);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
	fixture_assert_no_memory_used(&f);
	fixture_end(&f);
}

static void test_direct_refused(void **state)
{
	struct fixture f;

	fixture_begin_read(&f, 4096, 10);
	f.target.data_fd = f.direct;
	pump_set_target(&f.pump, &f.target);
	fixture_put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 1);
	world_order(&world.pwrite_data, 0, 4096 + 512); /* an odd length: not to be gone on with */
	fixture_put(&f, 3);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 2);
	fixture_assert_data(&f, 0, 5);
	f.target.size = 5 * 4096;
	pump_set_target(&f.pump, &f.target);
	world.direct_refused = true;
	fixture_put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 3);
	fixture_assert_data(&f, 0, 7);
	fixture_end(&f);
}

static void test_full_region(void **state)
{
	struct fixture f;

	fixture_begin_read(&f, 4096, 10);
	f.pump.target.room = 15 * 4096;
	fixture_put(&f, 20);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_MORE);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_FULL);
	assert_int_equal(fixture_in_ring(&f), 10);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_MORE);
	fixture_assert_data(&f, 10, 10);
	fixture_end(&f);
}

static void test_read_errors(void **state)
{
	struct fixture f;

	fixture_begin_read(&f, 4096, 10);
	fixture_put(&f, 2);
	world.read_error = EIO;
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	world.read_error = ENODEV; /* a possible CPU that has never been there */
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_no_memory_used(&f);
	world.read_error = 0;
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 2);
	fixture_end(&f);
}

/* @gone: that it had written and forgotten already */
static void test_killed(void **state)
{
	for (unsigned gone = 0; gone < 3; gone++) {
		struct staging before = {.pipe_read = -EBADF, .pipe_write = -EBADF};
		struct fixture f;

		fixture_begin_read(&f, 4096, 10);
		for (unsigned i = gone; i < 5; i++)
			fixture_make_subbuf(f.memory + (size_t)i * 4096, 4096, i, 4080);
		atomic_store(&f.note.cpu, 3 + 1);
		before.note = &f.note;
		staging_use_memory(&before, f.memory, 4096);
		assert_int_equal(before.memory_at, gone * 4096);
		assert_int_equal(before.in_memory, (5 - gone) * 4096);
		f.staging.memory_at = before.memory_at;
		f.staging.in_memory = before.in_memory;
		pump_adopt(&f.pump, &f.staging);
		f.made = 5;
		fixture_put(&f, 2);
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		fixture_assert_data(&f, gone, 7 - gone);
		fixture_assert_no_memory_used(&f);
		fixture_end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_nothing_in_the_last),
		cmocka_unit_test(test_short_writes),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_torn_then_retargeted),
		cmocka_unit_test(test_direct_refused),
		cmocka_unit_test(test_full_region),
		cmocka_unit_test(test_read_errors),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
