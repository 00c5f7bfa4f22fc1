/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files as a kill, a power cut or a person with truncate(1) leave them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/recovery.h"

#define SUBBUF FAKE_SUBBUF
#define NAME   RECOVERY_NAME

static void test_nothing_to_do(void **state)
{
	struct recovery f;

	recovery_begin(&f, 3);
	recovery_run(&f);
	recovery_assert(&f, 1, 0, 0, 0, false);
	recovery_put(&f, 1, 0, 5);
	recovery_set(&f, 1, 5);
	recovery_sync(&f);
	recovery_run(&f);
	recovery_assert(&f, 1, 5, 0, 0, false);
	fake_verify(&f.fake, NAME, 5);
	recovery_end(&f);
}

static void test_adopts(void **state)
{
	struct recovery f;

	recovery_begin(&f, 3);
	recovery_put(&f, 0, 0, 2);
	recovery_put(&f, 1, 0, 7);
	recovery_set(&f, 1, 3);
	recovery_sync(&f);
	recovery_run(&f);
	assert_int_equal(fake_size(f.file, 0), 2 * SUBBUF);
	recovery_assert(&f, 1, 7, 2 + 4, 0, false);
	fake_verify(&f.fake, NAME, 9);
	recovery_end(&f);
}

static void test_adopts_the_same_time(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	for (unsigned i = 0; i < 3; i++)
		fake_put(f.file, 1, i, 500);
	recovery_set(&f, 1, 1);
	recovery_run(&f);
	recovery_assert(&f, 1, 3, 2, 0, false);
	recovery_end(&f);
}

/* Older than what is before it: left over from something else */
static void test_time_backwards_ends(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 4);
	fake_put(f.file, 1, 4, 1002);
	fake_put(f.file, 1, 5, 2000);
	recovery_set(&f, 1, 2);
	recovery_run(&f);
	recovery_assert(&f, 1, 4, 2, 0, false);
	fake_verify(&f.fake, NAME, 4);
	recovery_end(&f);

	recovery_begin(&f, 2); /* also right behind what was synced */
	recovery_put(&f, 1, 0, 2);
	fake_put(f.file, 1, 2, 1000);
	recovery_set(&f, 1, 2);
	recovery_sync(&f);
	recovery_run(&f);
	recovery_assert(&f, 1, 2, 0, 0, false);
	recovery_end(&f);
}

static void test_zeros_end(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 3);
	recovery_put(&f, 1, 4, 6); /* behind a hole */
	recovery_set(&f, 1, 1);
	recovery_run(&f);
	recovery_assert(&f, 1, 3, 2, 0, false);
	/* and what lies behind it is given back: it must not come up again one day */
	recovery_put(&f, 1, 3, 4);
	recovery_run(&f);
	recovery_assert(&f, 1, 4, 1, 0, false);
	recovery_end(&f);
}

/* A power cut: sizes on the disk, their data not */
static void test_sizes_ahead(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 6);
	recovery_set(&f, 1, 3);
	recovery_sync(&f);
	recovery_set(&f, 1, 9);
	recovery_run(&f);
	recovery_assert(&f, 1, 6, 0, 3, false);
	fake_verify(&f.fake, NAME, 6);
	recovery_end(&f);
}

/* Never below what was synced, whatever is there */
static void test_synced_is_kept(void **state)
{
	_cleanup_free_ char *zeros = calloc(1, SUBBUF);
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 4);
	recovery_set(&f, 1, 4);
	recovery_sync(&f);
	assert_non_null(zeros);
	recovery_put_bytes(&f, 1, 3 * SUBBUF, zeros, SUBBUF);
	recovery_set(&f, 1, 6);
	recovery_run(&f);
	recovery_assert(&f, 1, 4, 0, 2, false);
	/* What the new daemon writes behind it counts next time */
	recovery_put(&f, 1, 4, 6);
	recovery_run(&f);
	recovery_assert(&f, 1, 6, 2, 0, false);
	recovery_end(&f);
}

static uint64_t damaged_bytes(struct recovery *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->fake.dir_fd, name, &st, 0), 0);
	assert_int_equal(st.st_mode & 0137, 0);
	return (uint64_t)st.st_size;
}

static void test_insane_tail_is_kept(void **state)
{
	_cleanup_free_ char *junk = malloc(SUBBUF), *kept = NULL;
	struct recovery f;

	recovery_begin(&f, 2);
	assert_non_null(junk);
	memset(junk, 0xa5, SUBBUF);
	recovery_put(&f, 1, 0, 2);
	recovery_put_bytes(&f, 1, 3 * SUBBUF, junk,
			   SUBBUF); /* behind a zero one, and before another */
	recovery_set(&f, 1, 5);
	recovery_run(&f);
	recovery_assert(&f, 1, 2, 0, 3, true);
	assert_int_equal(damaged_bytes(&f, NAME ".cpu1.damaged"), 2 * SUBBUF);
	assert_int_equal(io_read_file_at(f.fake.dir_fd, NAME ".cpu1.damaged", &kept, NULL), 0);
	assert_memory_equal(kept, junk, SUBBUF);
	fake_verify(&f.fake, NAME, 2);
	/* Another time it goes behind, nothing is replaced; of a hidden file it is not hidden */
	recovery_put_bytes(&f, 1, 2 * SUBBUF, junk, SUBBUF);
	recovery_set(&f, 1, 3);
	trace_file_free(f.file);
	f.file = fake_open(&f.fake, NAME);
	assert_int_equal(recover_file(f.file, f.fake.dir_fd, "." NAME, NULL, &f.report, NULL), 0);
	recovery_assert(&f, 1, 2, 0, 1, true);
	assert_int_equal(damaged_bytes(&f, NAME ".cpu1.damaged"), 3 * SUBBUF);
	recovery_end(&f);
}

static void test_kinds_of_nonsense(void **state)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		char page[SUBBUF];
		struct recovery f;

		recovery_begin(&f, 2);
		recovery_put(&f, 1, 0, 2);
		fake_subbuf(page, 1002);
		switch (kind) {
		case 0: /* longer than it can be */
			page[9] = 0x20;
			break;
		case 1: /* no time */
			memset(page, 0, 8);
			break;
		case 2: /* an event that runs past the end */
			page[16] = 28;
			break;
		case 3: /* half of it was written */
			memset(page + 20, 0, SUBBUF - 20);
			page[16] = 0;
			break;
		}
		recovery_put_bytes(&f, 1, 2 * SUBBUF, page, SUBBUF);
		recovery_set(&f, 1, 2);
		recovery_run(&f);
		recovery_assert(&f, 1, 2, 0, 0, false);
		recovery_set(&f, 1, 3);
		recovery_put_bytes(&f, 1, 2 * SUBBUF, page, SUBBUF);
		recovery_run(&f);
		recovery_assert(&f, 1, 2, 0, 1, true);
		recovery_end(&f);
	}
}

static void test_size_is_nonsense(void **state)
{
	const uint64_t sizes[] = {
		2 * SUBBUF + 1, 3 * SUBBUF - 1, 4 * MIB, 4 * MIB + SUBBUF, UINT64_MAX, INT64_MAX,
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct recovery f;

		recovery_begin(&f, 2);
		recovery_put(&f, 1, 0, 3);
		fake_set_size(f.file, 1, sizes[i]);
		recovery_run(&f);
		assert_int_equal(fake_size(f.file, 1), 3 * SUBBUF);
		assert_false(f.report.kept_cut);
		fake_verify(&f.fake, NAME, 3);
		recovery_end(&f);
	}
}

static void test_fills_the_region(void **state)
{
	struct trace_file_region region;
	struct recovery f;
	unsigned n;

	recovery_begin(&f, 2);
	trace_file_region(f.file, 0, &region);
	n = (unsigned)(region.room / SUBBUF);
	recovery_put(&f, 0, 0, n);
	recovery_put(&f, 1, n, n + 2); /* sane and later, but of another CPU */
	fake_put(f.file, 1, 0, 9000);
	recovery_set(&f, 0, 1);
	recovery_run(&f);
	assert_int_equal(fake_size(f.file, 0), region.room);
	assert_int_equal(fake_size(f.file, 1), SUBBUF);
	recovery_end(&f);
}

static char *slot_of(struct recovery *f, unsigned cpu)
{
	return f->slots + (size_t)cpu * SUBBUF;
}

static void new_slots(struct recovery *f, unsigned n_cpus)
{
	f->slots = calloc(n_cpus, SUBBUF);
	assert_non_null(f->slots);
}

/* The slot's sub-buffer had reached the file before the kill: it must not come twice */
static void test_slot_written(void **state)
{
	for (int published = 0; published < 2; published++) {
		static const char zeros[SUBBUF];
		struct recovery f;

		recovery_begin(&f, 3);
		new_slots(&f, 3);
		recovery_put(&f, 1, 0, 3);
		recovery_set(&f, 1, published ? 3 : 2);
		fake_subbuf(slot_of(&f, 1), 1002);
		fake_subbuf(slot_of(&f, 2), 77); /* this one had not */
		recovery_run(&f);
		assert_int_equal(fake_size(f.file, 1), 3 * SUBBUF);
		assert_int_equal(fake_size(f.file, 2), 0);
		assert_memory_equal(slot_of(&f, 1), zeros, SUBBUF);
		assert_memory_not_equal(slot_of(&f, 2), zeros, SUBBUF);
		assert_memory_equal(slot_of(&f, 0), zeros, SUBBUF);
		recovery_end(&f);
	}
}

/* It had reached it in part, or something else is there: it is written again */
static void test_slot_not_written(void **state)
{
	char before[SUBBUF];
	struct recovery f;

	recovery_begin(&f, 2);
	new_slots(&f, 2);
	recovery_put(&f, 1, 0, 2);
	recovery_set(&f, 1, 2);
	fake_subbuf(slot_of(&f, 1), 1002);
	recovery_put_bytes(&f, 1, 2 * SUBBUF, slot_of(&f, 1), 20);
	memcpy(before, slot_of(&f, 1), SUBBUF);
	recovery_run(&f);
	assert_int_equal(fake_size(f.file, 1), 2 * SUBBUF);
	assert_memory_equal(slot_of(&f, 1), before, SUBBUF);
	recovery_end(&f);
}

/*
 * Sub-buffers 2 … 6 were being written when the process was killed; @in_file bytes of them are in
 * the file, and the first @forgotten are not in its memory any more
 */
static void batch_of_a_killed_process(unsigned told, unsigned in_file, unsigned forgotten,
				      unsigned want)
{
	_cleanup_free_ char *bytes = malloc(5 * SUBBUF);
	struct recover_batch batch;
	struct recovery f;

	assert_non_null(bytes);
	for (unsigned i = 0; i < 5; i++)
		fake_subbuf(bytes + i * SUBBUF, 1002 + i);
	recovery_begin(&f, 3);
	recovery_put(&f, 0, 0, 3);
	recovery_put(&f, 1, 0, 2);
	recovery_put_bytes(&f, 1, 2 * SUBBUF, bytes, in_file);
	recovery_set(&f, 0, 3);
	recovery_set(&f, 1, told);
	batch = (struct recover_batch){1, bytes + forgotten * SUBBUF, (5 - forgotten) * SUBBUF};
	f.batches = &batch;
	f.n_batches = 1;
	for (unsigned i = 0; i < 2; i++) { /* killed again */
		recovery_run(&f);
		assert_int_equal(fake_size(f.file, 0), 3 * SUBBUF);
		assert_int_equal(fake_size(f.file, 1), want * SUBBUF);
		assert_int_equal(f.report.cut, 0);
	}
	/* The next process writes it again */
	recovery_put_bytes(&f, 1, want * SUBBUF, batch.bytes, batch.size);
	recovery_set(&f, 1, 7);
	recovery_end(&f);
}

static void test_batch(void **state)
{
	batch_of_a_killed_process(2, 0, 0, 2);
	batch_of_a_killed_process(1, 0, 0, 2);
	batch_of_a_killed_process(2, SUBBUF, 0, 2);
	batch_of_a_killed_process(2, 5 * SUBBUF, 0, 2);
	batch_of_a_killed_process(2, 3 * SUBBUF + 100, 0, 2); /* torn */
	batch_of_a_killed_process(2, 100, 0, 2);
	batch_of_a_killed_process(1, 5 * SUBBUF, 0, 2);
	batch_of_a_killed_process(2, 5 * SUBBUF, 3, 5);
	batch_of_a_killed_process(2, 5 * SUBBUF, 4, 6);
}

/* Cut by truncate(1), at every sub-buffer's edges: all that is whole is kept */
static void test_cut_file(void **state)
{
	const unsigned n = 5;

	for (unsigned i = 0; i < 3 * n; i++) {
		struct trace_file_region region;
		struct recovery f;
		uint64_t size;

		recovery_begin(&f, 2);
		recovery_put(&f, 0, 0, n);
		recovery_put(&f, 1, 0, n);
		recovery_set(&f, 0, n);
		recovery_set(&f, 1, n);
		recovery_sync(&f);
		trace_file_region(f.file, 1, &region);
		size = (uint64_t)(i / 3) * SUBBUF + (i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : SUBBUF - 1);
		assert_int_equal(ftruncate(region.buffered_fd, (off_t)(region.offset + size)), 0);
		recovery_run(&f);
		assert_int_equal(fake_size(f.file, 0), n * SUBBUF);
		/* the events end early in our sub-buffers: one that lost only padding is whole */
		assert_int_equal(fake_size(f.file, 1), (i / 3 + (i % 3 == 2)) * (uint64_t)SUBBUF);
		fake_verify(&f.fake, NAME, (unsigned)(n + fake_size(f.file, 1) / SUBBUF));
		recovery_end(&f);
	}
}

/* Opened (its size is right again) and killed before it was recovered */
static void test_cut_and_killed(void **state)
{
	struct trace_file_region region;
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 5);
	recovery_set(&f, 1, 5);
	recovery_sync(&f);
	trace_file_region(f.file, 1, &region);
	assert_int_equal(ftruncate(region.buffered_fd, (off_t)(region.offset + 2 * SUBBUF)), 0);
	trace_file_free(f.file);
	f.file = fake_open(&f.fake, NAME);
	recovery_run(&f);
	recovery_assert(&f, 1, 2, 0, 3, false);
	recovery_end(&f);
}

static void test_one_cpu(void **state)
{
	struct trace_file_region region;
	struct recovery f;

	recovery_begin(&f, 1);
	recovery_put(&f, 0, 0, 5);
	recovery_set(&f, 0, 5);
	recovery_sync(&f);
	trace_file_region(f.file, 0, &region);
	assert_int_equal(ftruncate(region.buffered_fd, (off_t)(region.offset + 2 * SUBBUF + 5)), 0);
	recovery_run(&f);
	assert_int_equal(fake_size(f.file, 0), 2 * SUBBUF);
	fake_verify(&f.fake, NAME, 2);
	recovery_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_adopts),
		cmocka_unit_test(test_adopts_the_same_time),
		cmocka_unit_test(test_time_backwards_ends),
		cmocka_unit_test(test_zeros_end),
		cmocka_unit_test(test_sizes_ahead),
		cmocka_unit_test(test_synced_is_kept),
		cmocka_unit_test(test_insane_tail_is_kept),
		cmocka_unit_test(test_kinds_of_nonsense),
		cmocka_unit_test(test_size_is_nonsense),
		cmocka_unit_test(test_fills_the_region),
		cmocka_unit_test(test_slot_written),
		cmocka_unit_test(test_slot_not_written),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_cut_file),
		cmocka_unit_test(test_cut_and_killed),
		cmocka_unit_test(test_one_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
