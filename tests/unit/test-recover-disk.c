/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that the disk cannot read everywhere.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/recovery.h"

/* What the disk cannot read: from @bad_at of a file on, so many bytes */
static uint64_t bad_at, bad_size;

int __real_io_pread_all(int fd, void *data, size_t size, uint64_t offset);
int __wrap_io_pread_all(int fd, void *data, size_t size, uint64_t offset);
int __wrap_io_pread_all(int fd, void *data, size_t size, uint64_t offset)
{
	if (offset < bad_at + bad_size && offset + size > bad_at)
		return -EIO;
	return __real_io_pread_all(fd, data, size, offset);
}

static void spoil(struct recovery *f, unsigned cpu, unsigned subbuf, unsigned count)
{
	struct trace_file_region region;

	trace_file_region(f->file, cpu, &region);
	bad_at = region.offset + (uint64_t)subbuf * FAKE_SUBBUF + 512;
	bad_size = count == 0 ? 0 : (uint64_t)(count - 1) * FAKE_SUBBUF + 512;
}

static void refused(struct recovery *f)
{
	struct fault why = {};

	assert_int_equal(recovery_try(f, &why), -EIO);
	bad_size = 0;
}

/* The file ends there, for nobody knows what comes behind it; the other CPU is whole */
static void test_bad_sector(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 3);
	recovery_set(&f, 1, 3);
	recovery_sync(&f);
	recovery_put(&f, 0, 0, 4);
	recovery_put(&f, 1, 3, 6);
	recovery_set(&f, 1, 6);
	spoil(&f, 1, 5, 1);
	recovery_run(&f);
	bad_size = 0;
	assert_int_equal(fake_size(f.file, 0), 4 * FAKE_SUBBUF);
	recovery_assert(&f, 1, 5, 4, 1, false);
	assert_true(f.report.unreadable);
	fake_verify(&f.fake, RECOVERY_NAME, 9);
	recovery_end(&f);
}

/* All that there is of a CPU: it may as well be the disk */
static void test_nothing_can_be_read(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 3);
	recovery_set(&f, 1, 3);
	spoil(&f, 1, 0, 4);
	refused(&f);
	recovery_run(&f);
	recovery_assert(&f, 1, 3, 0, 0, false);
	assert_false(f.report.unreadable);
	recovery_end(&f);
}

/* What had been synced is not looked at */
static void test_bad_sector_is_synced(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 5);
	recovery_set(&f, 1, 4);
	recovery_sync(&f);
	spoil(&f, 1, 3, 1);
	recovery_run(&f);
	bad_size = 0;
	recovery_assert(&f, 1, 5, 1, 0, false);
	recovery_end(&f);
}

/* More than a sector: the disk may be there again later, and nothing is touched until then */
static void test_bad_disk(void **state)
{
	struct recovery f;

	recovery_begin(&f, 2);
	recovery_put(&f, 1, 0, 90);
	recovery_set(&f, 1, 90);
	spoil(&f, 1, 1, 89);
	refused(&f);
	assert_int_equal(fake_size(f.file, 1), 90 * FAKE_SUBBUF);
	recovery_run(&f);
	recovery_assert(&f, 1, 90, 0, 0, false);
	recovery_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_sector),
		cmocka_unit_test(test_nothing_can_be_read),
		cmocka_unit_test(test_bad_sector_is_synced),
		cmocka_unit_test(test_bad_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
