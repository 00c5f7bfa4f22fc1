/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What recorder/pump moves when nothing fails: whole sub-buffers by splice, partial ones and those
 * of a mapped ring buffer by copy, what a killed process had in hand; and where it stops.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/pump-fixture.h"

static void test_moves_and_publishes(void **state)
{
	const unsigned sizes[] = {4096, 16384};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct fixture f;

		fixture_begin(&f, sizes[i]);
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		assert_int_equal(world.pwrite_size.calls, 0);
		fixture_put(&f, 10);
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		fixture_assert_data(&f, 0, 10);
		fixture_put(&f, 3);
		assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
		fixture_assert_data(&f, 0, 13);
		assert_int_equal(atomic_load(&f.pump.subbufs), 13);
		assert_int_equal(atomic_load(&f.pump.total_bytes), 13 * f.subbuf);
		assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
		fixture_end(&f);
	}
}

static void test_goes_on_behind_what_is_there(void **state)
{
	struct fixture f;

	fixture_open(&f, 4096, -1, calloc(1, 4096));
	f.target.size = 8192;
	pump_set_target(&f.pump, &f.target);
	assert_int_equal(atomic_load(&f.pump.published), 8192);
	fixture_put(&f, 1);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 3 * 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 4096);
	fixture_end(&f);
}

static void test_budget(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 100); /* the pipe holds 16 */
	assert_int_equal(pump_capacity(&f.pump), 16 * 4096);
	assert_int_equal(pump_run(&f.pump, false, 0), PUMP_E_MORE);
	assert_int_equal(fixture_in_ring(&f), 100);
	assert_int_equal(pump_run(&f.pump, false, 2), PUMP_E_MORE);
	fixture_assert_data(&f, 0, 32);
	assert_int_equal(fixture_in_ring(&f), 68);
	assert_int_equal(pump_run(&f.pump, false, 100), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 100);
	fixture_end(&f);
}

static void test_full_then_retarget(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	f.pump.target.room = 20 * 4096;
	fixture_put(&f, 40);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_FULL);
	assert_true(atomic_load(&f.pump.full));
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	fixture_assert_data(&f, 0, 16); /* the next pipe-full might not fit */
	assert_int_equal(fixture_in_ring(&f), 24);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_FULL);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	pump_retarget(&f.pump, &f.target);
	assert_false(atomic_load(&f.pump.full));
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 16, 24);
	assert_int_equal(fixture_size_in_file(&f, SIZE_AT), 16 * 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 40 * 4096);
	fixture_end(&f);
}

static void test_chunks_grow_to_their_cap(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	assert_int_equal(pump_run(&f.pump, true, 1), PUMP_E_EMPTY);
	assert_int_equal(world.allocated_to - REGION, MIB);
	for (unsigned i = 0; i < 15; i++) {
		fixture_put(&f, 16);
		assert_int_equal(pump_run(&f.pump, false, 2), PUMP_E_EMPTY);
	}
	assert_int_equal(world.fallocate.calls, 1);
	fixture_put(&f, 32);
	assert_int_equal(pump_run(&f.pump, false, 4), PUMP_E_EMPTY);
	assert_int_equal(world.fallocate.calls, 2);
	assert_int_equal(world.allocated_from, REGION + MIB);
	assert_int_equal(world.allocated_to, REGION + 3 * MIB);
	assert_int_equal(f.pump.chunk, 4 * MIB);
	for (unsigned i = 0; i < 100; i++) {
		fixture_put(&f, 16);
		(void)pump_run(&f.pump, false, 1);
	}
	/* never beyond the region, and not larger than asked for */
	assert_int_equal(world.allocated_to, REGION + ROOM);
	assert_int_equal(f.pump.chunk, 4 * MIB);
	fixture_end(&f);
}

static void test_partial_subbuf(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	world.splice_empty = true; /* as the kernel does with a partial one */
	fixture_put_into(&f, f.ring, 1, 200);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 1);
	assert_false(fixture_slot_used(&f));
	/* Woken up, and splice gives nothing: read once */
	fixture_put_into(&f, f.ring, 2, 200);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 2);
	assert_int_equal(fixture_in_ring(&f), 1);
	assert_false(atomic_load(&f.pump.mapped_elsewhere));
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 3);
	/* No events in it: nothing there */
	fixture_put_into(&f, f.ring, 1, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 3);
	assert_false(fixture_slot_used(&f));
	fixture_end(&f);
}

static void test_missed_flags_are_kept(void **state)
{
	struct fixture f;
	uint64_t commit;

	fixture_begin(&f, 4096);
	world.splice_empty = true;
	fixture_put_into(&f, f.ring, 1, 3U << 30 | 200);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_int_equal(io_pread_all(f.file, &commit, 8, REGION + 8), 0);
	assert_int_equal(commit, 3U << 30 | 200);
	fixture_assert_data(&f, 0, 1);
	fixture_end(&f);
}

static void test_mapped(void **state)
{
	struct fixture f;

	fixture_begin(&f, 4096);
	world.splice_empty = true;
	fixture_put(&f, 20);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_MORE); /* bounded */
	assert_true(atomic_load(&f.pump.mapped_elsewhere));
	fixture_assert_data(&f, 0, 8);
	assert_int_equal(pump_run(&f.pump, false, 100), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 20);
	/* unmapped */
	world.splice_empty = false;
	fixture_put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_false(atomic_load(&f.pump.mapped_elsewhere));
	fixture_assert_data(&f, 0, 22);
	fixture_end(&f);
}

static int old_pipe(struct fixture *f, unsigned torn, unsigned n)
{
	char rest[4096];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	memset(rest, 0xee, sizeof(rest));
	if (torn)
		assert_int_equal(write(fds[1], rest, torn), torn);
	*f = (struct fixture){.subbuf = 4096};
	fixture_put_into(f, fds[1], n, 4080);
	close(fds[1]);
	return fds[0];
}

/* Whose data is in the pipe is known before there is any, until it is in the file */
static void test_note(void **state)
{
	struct pump other = {.cpu = 5, .subbuf_size = 4096};
	struct fixture f;

	fixture_begin(&f, 4096);
	fixture_put(&f, 2);
	world_order(&world.push, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	assert_int_equal(world.noted, 3 + 1);
	assert_int_equal(atomic_load(&f.note.cpu), 3 + 1);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(atomic_load(&f.note.cpu), 0);
	fixture_assert_data(&f, 0, 2);
	/* Held by another CPU: nothing is taken, and its data stays its */
	other.staging = &f.staging;
	pump_adopt(&other, &f.staging);
	f.staging.in_pipe = 4096;
	fixture_put(&f, 1);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_HELD);
	assert_int_equal(fixture_in_ring(&f), 1);
	assert_int_equal(atomic_load(&f.note.cpu), 5 + 1);
	assert_int_equal(pump_pending(&f.pump), 0);
	fixture_end(&f);
}

/* In a pipe of its own, of another worker or an earlier version: it goes first, torn or not */
static void test_left(void **state)
{
	for (unsigned torn = 0; torn < 2000; torn += 1000) {
		struct staging left;
		struct fixture f;
		uint64_t made;
		int fd = old_pipe(&f, torn, 5);

		made = f.made;
		assert_int_equal(staging_adopt(&left, NULL, fd), 0);
		fixture_open(&f, 4096, -1, calloc(1, 4096));
		f.made = made;
		pump_adopt(&f.pump, &left);
		assert_int_equal(pump_pending(&f.pump), torn + 5 * 4096);
		pump_set_target(&f.pump, &f.target);
		fixture_put(&f, 2);
		world_order(&world.push, EIO, 0);
		assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
		assert_int_equal(fixture_in_ring(&f), 2);
		assert_false(atomic_load(&left.emptied));
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		assert_true(atomic_load(&left.emptied));
		assert_null(f.pump.left);
		fixture_assert_data(&f, 0, 7);
		assert_int_equal(atomic_load(&f.pump.dropped_bytes), torn > 0 ? 4096 : 0);
		staging_done(&left);
		fixture_end(&f);
	}
}

static void test_adopted_pipe(void **state)
{
	struct fixture f;
	uint64_t made;
	int fd = old_pipe(&f, 0, 5);

	made = f.made;
	fixture_open(&f, 4096, fd, calloc(1, 4096));
	f.made = made;
	assert_int_equal(f.staging.in_pipe, 5 * 4096);
	pump_set_target(&f.pump, &f.target);
	fixture_put(&f, 20);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 25);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
	fixture_end(&f);
}

static void test_adopted_pipe_torn(void **state)
{
	struct fixture f;
	uint64_t made;
	int fd = old_pipe(&f, 1500, 3);

	made = f.made;
	fixture_open(&f, 4096, fd, calloc(1, 4096));
	f.made = made;
	pump_set_target(&f.pump, &f.target);
	assert_int_equal(f.staging.in_pipe, 3 * 4096);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 4096);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 3);
	fixture_end(&f);
}

/* Pipe and slot of a killed process: both go into the file, in the order they were taken */
static void test_adopted_slot(void **state)
{
	struct fixture f;
	uint64_t made;
	char *slot = calloc(1, 4096);
	int fd = old_pipe(&f, 0, 2);

	made = f.made;
	fixture_make_subbuf(slot, 4096, made++, 300);
	fixture_open(&f, 4096, fd, slot);
	f.made = made;
	pump_set_target(&f.pump, &f.target);
	fixture_put(&f, 1);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	fixture_assert_data(&f, 0, 4);
	assert_false(fixture_slot_used(&f));
	fixture_end(&f);
}

/* A failed staging_adopt() leaves the fd the caller's */
static void test_adopt_refused(void **state)
{
	_cleanup_close_ int file = memfd_create("no-pipe", MFD_CLOEXEC);
	struct staging_note note = {};
	struct staging staging;

	assert_true(staging_adopt(&staging, &note, file) < 0);
	assert_true(fcntl(file, F_GETFD) >= 0);
	assert_true(staging_adopt(&staging, &note, 1 << 20) < 0);
	assert_int_equal(staging_inode(file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves_and_publishes),
		cmocka_unit_test(test_goes_on_behind_what_is_there),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_full_then_retarget),
		cmocka_unit_test(test_chunks_grow_to_their_cap),
		cmocka_unit_test(test_partial_subbuf),
		cmocka_unit_test(test_missed_flags_are_kept),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_adopted_pipe),
		cmocka_unit_test(test_adopted_pipe_torn),
		cmocka_unit_test(test_adopted_slot),
		cmocka_unit_test(test_adopt_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
