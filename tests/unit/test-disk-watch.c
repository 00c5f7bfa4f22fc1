/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/session/disk-watch: a disk that is gone, and one that is only slow, or full */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "daemon/session/disk-watch.h"

#define BEGIN (1000 * USEC_PER_SEC)

static void test_lasting_error(void **state)
{
	struct disk_watch w;

	disk_watch_begin(&w, BEGIN);
	assert_false(disk_watch_observe(&w, 0, BEGIN + 60 * USEC_PER_SEC));
	assert_false(disk_watch_observe(&w, -EIO, BEGIN + 65 * USEC_PER_SEC));
	assert_false(disk_watch_observe(&w, -EIO, BEGIN + 70 * USEC_PER_SEC - 1));
	assert_true(disk_watch_observe(&w, -EIO, BEGIN + 70 * USEC_PER_SEC));
	/* It was seen to work meanwhile */
	disk_watch_begin(&w, BEGIN);
	assert_false(disk_watch_observe(&w, -EROFS, BEGIN + 9 * USEC_PER_SEC));
	assert_false(disk_watch_observe(&w, 0, BEGIN + 10 * USEC_PER_SEC));
	assert_false(disk_watch_observe(&w, -EROFS, BEGIN + 19 * USEC_PER_SEC));
	assert_true(disk_watch_observe(&w, -EROFS, BEGIN + 20 * USEC_PER_SEC));
}

static void test_full_or_silent(void **state)
{
	static const int passing[] = {-ENOSPC, -EDQUOT, -ETIMEDOUT};

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
		struct disk_watch w;

		disk_watch_begin(&w, BEGIN);
		for (unsigned s = 1; s < 1000; s++)
			assert_false(disk_watch_observe(&w, passing[i], BEGIN + s * USEC_PER_SEC));
		/* From then on */
		assert_false(disk_watch_observe(&w, -EIO, BEGIN + 1008 * USEC_PER_SEC));
		assert_true(disk_watch_observe(&w, -EIO, BEGIN + 1009 * USEC_PER_SEC));
	}
	assert_true(disk_watch_is_full(-ENOSPC));
	assert_true(disk_watch_is_full(-EDQUOT));
	assert_false(disk_watch_is_full(-EIO));
	assert_false(disk_watch_is_full(0));
}

static void test_hanging(void **state)
{
	struct disk_watch w;
	uint64_t now = BEGIN;

	disk_watch_begin(&w, now);
	/* The first look is the first sign of life */
	assert_int_equal(disk_watch_look(&w, 0, false, 0, now += 60 * USEC_PER_SEC), 0);
	assert_int_equal(disk_watch_look(&w, 0, false, 0, now + 5 * USEC_PER_SEC - 1), 0);
	assert_int_equal(disk_watch_look(&w, 0, false, 0, now + 5 * USEC_PER_SEC), -ETIMEDOUT);
	/* Bytes come along, or there was nothing to do */
	assert_int_equal(disk_watch_look(&w, 0, false, 4096, now += 5 * USEC_PER_SEC), 0);
	assert_int_equal(disk_watch_look(&w, 0, true, 4096, now += 5 * USEC_PER_SEC), 0);
	assert_int_equal(disk_watch_look(&w, 0, false, 4096, now + USEC_PER_SEC), 0);
	/* An error is known at once, and is no sign of life */
	assert_int_equal(disk_watch_look(&w, -EIO, true, 8192, now += 4 * USEC_PER_SEC), -EIO);
	assert_int_equal(disk_watch_look(&w, 0, false, 4096, now + USEC_PER_SEC), -ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lasting_error),
		cmocka_unit_test(test_full_or_silent),
		cmocka_unit_test(test_hanging),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
