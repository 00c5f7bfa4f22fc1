/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What retention removes from a real directory, and which names it takes for files of ours.
 * clock_gettime is wrapped so that the wall clock can be set.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/now.h"
#include "writer/file-age.h"
#include "writer/retention.h"
#include "writer/store.h"

static const char *const ours[] = {
	"20240229T235959.000000Z.dat",
	"20240102T030405.123456Z.dat",
	"20240102T030405.123456Z-control.dat",
	"20240102T030405.123456Z-a-b.dat",
};

static const char *const foreign[] = {
	"",
	"current.dat",
	".current.dat.new",
	".20240102T030405.123456Z.dat.finishing",
	".20240102T030405.123456Z.dat",
	" 20240102T030405.123456Z.dat",
	"20240102T030405.123456Z",
	"20240102T030405.123456Zdat",
	"20240102T030405.123456Z.dat.bak",
	"20240102T030405.123456Z.dat~",
	"20240102T030405.123456Z.txt",
	"20240102T030405.12345Z.dat",
	"20240102T030405.1234567Z.dat",
	"20240102T030405. 23456Z.dat",
	"20240102T030405.-23456Z.dat",
	"20240102T030405.+23456Z.dat",
	"20240102T030405Z.dat",
	"20240102 030405.123456Z.dat",
	"2024 102T030405.123456Z.dat",
	"20241302T030405.123456Z.dat",
	"20240100T030405.123456Z.dat",
	"20240102T240405.123456Z.dat",
	"20240102T030405.123456Z/../x.dat",
	"2024010T0304050.123456Z.dat",
	"copy-of-20240102T030405.123456Z.dat",
	"important.dat",
};

static void test_names(void **state)
{
	uint64_t usec;

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (!store_parse_archive_name(ours[i], &usec))
			fail_msg("\"%s\" is not taken for ours", ours[i]);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (store_parse_archive_name(foreign[i], &usec))
			fail_msg("\"%s\" is taken for ours", foreign[i]);
	assert_true(store_parse_archive_name("20240229T235959.000001Z.dat", &usec));
	assert_int_equal(usec, UINT64_C(1709251199000001));
	assert_true(store_parse_archive_name("19700101T000000.000000Z.dat", &usec));
	assert_int_equal(usec, 0);
	assert_true(store_is_damaged("current.dat-20240102T030405.123456Z.damaged"));
	assert_false(store_is_damaged(".x.damaged"));
	assert_false(store_is_damaged("damaged"));
}

/* A directory that is removed with all its files, whatever is left in it */
struct dir {
	char path[64];
	int fd;
};

static int make_dir(void **state)
{
	struct dir *dir = calloc(1, sizeof(*dir));

	if (!dir)
		return -1;
	(void)strcpy(dir->path, "/tmp/flyrec-retention.XXXXXX");
	if (!mkdtemp(dir->path))
		return -1;
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = dir;
	return dir->fd < 0 ? -1 : 0;
}

static const char *const files[] = {
	"20240101T000000.000000Z.dat",
	"20240102T000000.000000Z.dat",
	"20240103T000000.000000Z.dat",
	"20240103T000000.000001Z.dat",
	"current.dat",
	".current.dat.new",
	".20240104T000000.000000Z.dat.finishing",
	"notes.txt",
	"important.dat",
	"20230101T000000.000000Z.dat.bak",
	"current.dat-20240101T000000.000000Z.damaged",
};

static int remove_dir(void **state)
{
	struct dir *dir = *state;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		(void)unlinkat(dir->fd, files[i], 0);
	(void)unlinkat(dir->fd, "20220101T000000.000000Z.dat", AT_REMOVEDIR);
	(void)unlinkat(dir->fd, "20210101T000000.000000Z.dat", 0);
	close(dir->fd);
	(void)rmdir(dir->path);
	free(dir);
	return 0;
}

static void make_files(const struct dir *dir)
{
	static char block[64 * KIB];

	memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int fd = openat(dir->fd, files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		assert_int_equal(io_write_all(fd, block, sizeof(block)), 0);
		assert_int_equal(fsync(fd), 0); /* until then st_blocks may be 0 */
		close(fd);
	}
	/* Names like ours that are no files */
	assert_int_equal(mkdirat(dir->fd, "20220101T000000.000000Z.dat", 0700), 0);
	assert_int_equal(symlinkat("notes.txt", dir->fd, "20210101T000000.000000Z.dat"), 0);
}

static bool is_there(const struct dir *dir, const char *name)
{
	return faccessat(dir->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Everything that retention may remove, and nothing else */
static void test_apply_all(void **state)
{
	struct retention_limits limits = {.max_use = 0};
	struct retention_report report = {0};
	struct dir *dir = *state;
	struct fault why;

	make_files(dir);
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_int_equal(report.files, 5);
	assert_true(report.bytes >= 5 * 64 * KIB);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_int_equal(is_there(dir, files[i]), i >= 4 && i < 10);
	assert_true(is_there(dir, "20220101T000000.000000Z.dat"));
	assert_true(is_there(dir, "20210101T000000.000000Z.dat"));
}

static void test_apply_some(void **state)
{
	struct retention_limits limits = {.max_use = GIB, .max_files = 4};
	struct retention_report report = {0};
	struct dir *dir = *state;
	struct fault why;
	/* The damaged one is younger than the names of the segments say those are */
	const bool left[] = {false, false, true, true};

	make_files(dir);
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_int_equal(report.files, 2);
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		assert_int_equal(is_there(dir, files[i]), left[i]);
	assert_true(is_there(dir, files[10]));
}

#define ALONE "20240105T000000.000000Z-signal.coresight"

static void make_coresight(const struct dir *dir, const char *name)
{
	char block[64 * KIB] = "x";
	int fd;

	assert_int_equal(mkdirat(dir->fd, name, 0700), 0);
	fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(io_write_file_at(fd, "trace.bin", block, sizeof(block), 0600), 0);
	close(fd);
}

/* A directory counts for its snapshot and goes with it; one that was left alone goes by itself */
static void test_apply_coresight(void **state)
{
	struct retention_limits limits = {.max_use = GIB};
	struct retention_report report = {0};
	struct dir *dir = *state;
	char name[STORE_NAME_SIZE], owner[STORE_NAME_SIZE];
	struct fault why;

	make_files(dir);
	assert_int_equal(retention_count(dir->fd, &report), 0);
	assert_int_equal(report.kept_files, 5);
	limits.max_use = report.kept_bytes;
	store_coresight_name(files[0], name);
	assert_string_equal(name, "20240101T000000.000000Z.coresight");
	assert_true(store_coresight_owner(name, owner));
	assert_string_equal(owner, files[0]);
	assert_false(store_coresight_owner(files[0], owner));
	assert_false(store_coresight_owner("mine.coresight", owner));
	make_coresight(dir, name);
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_int_equal(report.files, 1); /* the bytes were over the limit */
	assert_true(report.bytes >= 2 * 64 * KIB);
	assert_false(is_there(dir, files[0]));
	assert_false(is_there(dir, name));

	make_coresight(dir, ALONE);
	limits.max_use = GIB;
	assert_int_equal(symlinkat("record", dir->fd, "20240106T000000.000000Z.coresight"), 0);
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_int_equal(report.kept_files, 5);
	limits.max_use = 0;
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_false(is_there(dir, ALONE));
	assert_true(is_there(dir, "20240106T000000.000000Z.coresight"));
	assert_int_equal(unlinkat(dir->fd, "20240106T000000.000000Z.coresight", 0), 0);
}

/* By mtime, not by name: a copy that was touched is not old */
static void test_apply_age(void **state)
{
	struct retention_limits limits = {.max_use = GIB, .max_age_usec = 3600 * USEC_PER_SEC};
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {}};
	struct retention_report report = {0};
	struct dir *dir = *state;
	struct fault why;

	make_files(dir);
	times[1].tv_sec = (time_t)(now_usec(CLOCK_REALTIME) / USEC_PER_SEC) - 3700;
	assert_int_equal(utimensat(dir->fd, files[2], times, 0), 0);
	times[1].tv_sec += 200;
	assert_int_equal(utimensat(dir->fd, files[1], times, 0), 0);
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_int_equal(report.files, 1);
	assert_false(is_there(dir, files[2]));
}

/* The wall clock is so much ahead of what it would be */
static int64_t ahead_sec;
static unsigned set_after; /* that many readings it is set a day forward */

int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = __real_clock_gettime(id, ret);

	if (id == CLOCK_REALTIME && set_after > 0 && --set_after == 0)
		ahead_sec = 86400;
	if (id == CLOCK_REALTIME)
		ret->tv_sec += ahead_sec;
	return r;
}

/* A day forward, a day back: what is young stays, and what was recorded first goes first */
static void test_apply_clock_set(void **state)
{
	struct retention_limits limits = {.max_use = GIB, .max_age_usec = 3600 * USEC_PER_SEC};
	struct retention_report report = {0};
	uint64_t now = now_usec(CLOCK_BOOTTIME), age, begin, end;
	_cleanup_close_ int fd = -EBADF;
	struct dir *dir = *state;
	struct fault why;

	make_files(dir);
	if (fsetxattr(dir->fd, "user.flyrec.test", "", 0, 0) < 0)
		skip();
	for (size_t i = 0; i < 3; i++) {
		age = i * USEC_PER_SEC;
		file_age_note(dir->fd, files[i], (int64_t)(now - age) - 10, now - age);
	}
	ahead_sec = 86400;
	fd = io_open_at(dir->fd, files[1], O_NOFOLLOW);
	assert_true(file_age_read(fd, file_age_offset_usec(), &begin, &end));
	assert_int_equal(end - begin, 10);
	assert_in_range(end, now_usec(CLOCK_REALTIME) - 60 * USEC_PER_SEC,
			now_usec(CLOCK_REALTIME));
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	for (size_t i = 0; i < 3; i++)
		assert_true(is_there(dir, files[i]));
	/* and while it is being looked at */
	for (unsigned i = 1; i < 20; i++) {
		ahead_sec = 0;
		set_after = i;
		assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
		for (size_t k = 0; k < 3; k++)
			assert_true(is_there(dir, files[k]));
	}
	set_after = 0;
	ahead_sec = -86400;
	limits = (struct retention_limits){.max_use = GIB, .max_files = 3};
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_true(is_there(dir, files[0]));
	assert_true(is_there(dir, files[1]));
	assert_false(is_there(dir, files[2]));
	ahead_sec = 0;
}

static int open_file(const struct dir *dir, const char *name)
{
	int fd = io_open_at(dir->fd, name, O_NOFOLLOW);

	assert_true(fd >= 0);
	return fd;
}

/* Half of MaxUse= may be pinned, whoever does it; what is pinned already may be so once more */
static void test_pins(void **state)
{
	_cleanup_close_ int first = -EBADF, second = -EBADF;
	struct dir *dir = *state;
	struct fault why = {};
	uint64_t bytes, max;

	make_files(dir);
	if (!store_takes_attributes(dir->fd))
		skip();
	first = open_file(dir, files[0]);
	second = open_file(dir, files[1]);
	assert_int_equal(retention_pinned(dir->fd, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(store_pin(first, true), 0);
	assert_int_equal(retention_pinned(dir->fd, &bytes), 0);
	assert_true(bytes >= 64 * KIB);
	assert_int_equal(store_pin(first, false), 0);

	max = 2 * bytes;
	assert_int_equal(retention_pin(dir->fd, first, "demo", max - 1, &why), -EDQUOT);
	assert_false(store_is_pinned(first));
	assert_int_equal(retention_pins_left(dir->fd, "demo", max, &why), 0);
	assert_int_equal(retention_pin(dir->fd, first, "demo", max, &why), 0);
	assert_true(store_is_pinned(first));
	assert_int_equal(retention_pin(dir->fd, first, "demo", 0, &why), 0);
	assert_int_equal(retention_pin(dir->fd, second, "demo", max, &why), -EDQUOT);
	assert_non_null(strstr(why.text, "session demo: 0.1M of snapshots are pinned"));
	assert_non_null(strstr(why.text, "half of [Snapshot] MaxUse=, 0.1M: unpin some first"));
	assert_false(store_is_pinned(second));
	assert_true(store_is_pinned(first));
	assert_int_equal(retention_pins_left(dir->fd, "demo", max, &why), -EDQUOT);
	assert_int_equal(retention_pins_left(dir->fd, "demo", max + 2, &why), 0);
	assert_int_equal(store_pin(first, false), 0);
	assert_int_equal(retention_pin(dir->fd, second, "demo", max, &why), 0);
}

/* Whose a file is it says itself */
static void test_apply_members(void **state)
{
	struct retention_limits limits = {.max_use = GIB, .keep_newest = true, .member_files = 1};
	struct retention_report report = {0};
	struct dir *dir = *state;
	struct fault why;

	make_files(dir);
	if (!store_takes_attributes(dir->fd))
		skip();
	for (size_t i = 1; i < 4; i++) {
		_cleanup_close_ int fd = open_file(dir, files[i]);
		char uid[8] = "";

		assert_false(store_is_members(fd));
		assert_int_equal(store_set_member(fd, 1000), 0);
		assert_true(store_is_members(fd));
		assert_int_equal(fgetxattr(fd, "user.flyrec.member_uid", uid, sizeof(uid)), 4);
		assert_string_equal(uid, "1000");
	}
	assert_int_equal(retention_apply(dir->fd, &limits, &report, &why), 0);
	assert_int_equal(report.files, 2);
	assert_true(is_there(dir, files[0]));
	assert_false(is_there(dir, files[1]));
	assert_false(is_there(dir, files[2]));
	assert_true(is_there(dir, files[3]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_apply_all, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_apply_some, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_apply_coresight, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_apply_age, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_apply_clock_set, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_pins, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_apply_members, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
