/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which segment is compressed, whether there is room for it, and that the file that takes its place
 * is as good, whatever happens meanwhile. renameat2 and pack_file are wrapped: at them others do
 * something to the segment.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/craft.h"
#include "tests/unit/tmp.h"
#include "writer/compress.h"
#include "writer/pack.h"

#define FIRST  "20260101T000000.000000Z.dat"
#define SECOND "20260102T000000.000000Z.dat"
#define THIRD  "20260103T000000.000000Z.dat"

static struct tmp tmp;
static atomic_bool cancel;

/* What others do when a copy has its data, and just before it gets its name; or NULL */
static void (*after_pack)(struct pack_result *result, int out_fd), (*before_rename)(void);
static bool no_exchange;

int __real_pack_file(const struct trace_dat *in, int out_fd, const struct pack_options *options,
		     struct pack_result *ret, struct fault *why);
int __wrap_pack_file(const struct trace_dat *in, int out_fd, const struct pack_options *options,
		     struct pack_result *ret, struct fault *why);
int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

int __wrap_pack_file(const struct trace_dat *in, int out_fd, const struct pack_options *options,
		     struct pack_result *ret, struct fault *why)
{
	int r = __real_pack_file(in, out_fd, options, ret, why);

	assert_true(options->check);
	if (r >= 0 && after_pack)
		after_pack(ret, out_fd);
	return r;
}

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (before_rename) {
		void (*hook)(void) = before_rename;

		before_rename = NULL;
		hook();
	}
	if (no_exchange && flags == RENAME_EXCHANGE) {
		errno = EINVAL;
		return -1;
	}
	return __real_renameat2(from_fd, from, to_fd, to, flags);
}

/* --- the choice */

static void choose(const char *kinds, size_t expected, uint64_t waiting)
{
	struct compress_item items[16] = {};
	struct compress_tally tally;
	size_t n = strlen(kinds);

	for (size_t i = 0; i < n; i++)
		items[i] = (struct compress_item){
			.bytes = kinds[i] == 'c' ? 10 : 100,
			.raw_bytes = kinds[i] == 'c' ? 100 : 0,
			.packed = kinds[i] == 'c' || kinds[i] == 'u',
			.refused = kinds[i] == 'x',
		};
	assert_int_equal(compress_choose(items, n, &tally), expected);
	assert_int_equal(tally.waiting, waiting);
	assert_int_equal(tally.raw_bytes, 10 * tally.bytes);
	assert_int_equal(tally.bytes, 10 * tally.files);
}

/* .: not compressed, c: compressed, u: of unknown size before, x: refused; oldest first */
static void test_choose(void **state)
{
	choose("", 0, 0);
	choose(".", 1, 0);
	choose("..", 0, 1);
	choose("....", 2, 3);
	choose("..c.", 1, 2);
	choose("cuc.", 4, 0);
	choose(".x.", 0, 1);
	choose("x.x.", 1, 1);
	choose("..c", 1, 2);
	choose("xxx", 3, 0);
}

static void test_fits(void **state)
{
	struct retention_limits limits = {.max_use = 1000, .live_reserve = 100};

	assert_true(compress_fits(400, 800, 100, &limits));
	assert_false(compress_fits(404, 800, 1000, &limits));
	assert_false(compress_fits(400, 801, 1000, &limits));
	assert_false(compress_fits(400, 800, 99, &limits));
	limits.keep_free = 50;
	assert_true(compress_fits(400, 800, 150, &limits));
	assert_false(compress_fits(400, 800, 149, &limits));
	limits.spare = UINT64_MAX; /* it is this that the room is for */
	assert_true(compress_fits(400, 800, 150, &limits));
}

/* --- files */

static void put(const char *name)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1767225600, .tv_nsec = 123}};
	struct craft c = craft_kinds[0];
	struct craft_dat places;
	int fd;

	craft_dat(&c, "CPU: 0\n", NULL, &places);
	tmp_write_bytes(&tmp, name, c.bytes, c.size);
	craft_done(&c);
	fd = openat(tmp.fd, name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0604), 0);
	assert_int_equal(futimens(fd, times), 0);
	(void)close(fd);
}

static int setup(void **state)
{
	tmp_init(&tmp);
	put(FIRST);
	put(SECOND);
	put(THIRD);
	cancel = false;
	after_pack = NULL;
	before_rename = NULL;
	no_exchange = false;
	return 0;
}

static int teardown(void **state)
{
	tmp_done(&tmp);
	return 0;
}

static int next_of(char **refused, uint64_t max_use, struct compress_report *ret)
{
	const struct compress_order order = {
		.dir_fd = tmp.fd, .limits.max_use = max_use, .refused = refused, .cancel = &cancel};
	struct fault why = {};
	int r = compress_next(&order, ret, &why);

	if (r < 0)
		assert_true(why.error == r && why.text[0]);
	return r;
}

static int next(struct compress_report *ret)
{
	return next_of(NULL, UINT64_MAX, ret);
}

static unsigned version_of(const char *name)
{
	int fd = openat(tmp.fd, name, O_RDONLY | O_CLOEXEC);
	unsigned version = 0;

	assert_true(fd >= 0);
	(void)trace_dat_version(fd, &version);
	(void)close(fd);
	return version;
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(tmp.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static bool pin(const char *name, bool on)
{
	int fd = openat(tmp.fd, name, O_RDONLY | O_CLOEXEC);
	int r = store_pin(fd, on);

	(void)close(fd);
	return r >= 0;
}

static bool is_pinned(const char *name)
{
	int fd = openat(tmp.fd, name, O_RDONLY | O_CLOEXEC);
	bool pinned = store_is_pinned(fd);

	(void)close(fd);
	return pinned;
}

/* The same bytes of each CPU in both files */
static void assert_same_data(const char *a, const char *b)
{
	struct trace_dat *dats[2];
	char path[200];

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", tmp.path, i == 0 ? a : b);
		assert_int_equal(trace_dat_open(path, &dats[i], NULL), 0);
		assert_int_equal(dats[i]->damages.n, 0);
	}
	for (unsigned cpu = 0; cpu < dats[0]->n_cpus; cpu++) {
		char bytes[2][16 * KIB];
		size_t size = dats[0]->buffers[0].regions[cpu].size;

		assert_int_equal(size, dats[1]->buffers[0].regions[cpu].size);
		assert_true(size > 0 && size <= sizeof(bytes[0]));
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(trace_dat_read(dats[i], bytes[i], size,
							dats[i]->buffers[0].regions[cpu].offset,
							NULL),
					 0);
		assert_memory_equal(bytes[0], bytes[1], size);
	}
	trace_dat_free(dats[0]);
	trace_dat_free(dats[1]);
}

/* Nothing has happened to it, and nothing else is there */
static void assert_untouched(const struct stat *before)
{
	struct stat st = stat_of(SECOND);

	assert_int_equal(st.st_ino, before->st_ino);
	assert_int_equal(st.st_size, before->st_size);
	assert_int_equal(version_of(SECOND), 6);
	assert_int_equal(tmp_count(&tmp), 3);
}

static void test_in_turn(void **state)
{
	struct stat was = stat_of(SECOND), st;
	struct compress_report report;
	int original = openat(tmp.fd, SECOND, O_RDONLY | O_CLOEXEC);
	char word[3];
	bool pins = pin(SECOND, true);

	assert_int_equal(next(&report), COMPRESS_DONE);
	assert_string_equal(report.name, SECOND);
	assert_int_equal(report.raw_bytes, was.st_blocks * 512);
	assert_int_equal(report.tally.waiting, 1);
	assert_int_equal(report.tally.files, 1);
	assert_int_equal(report.kept_files, 3);
	assert_int_equal(version_of(FIRST), 6);
	assert_int_equal(version_of(SECOND), 7);
	st = stat_of(SECOND);
	assert_int_equal(st.st_blocks * 512, report.bytes);
	assert_true(st.st_blocks < was.st_blocks);
	assert_int_equal(st.st_mode, was.st_mode);
	assert_memory_equal(&st.st_mtim, &was.st_mtim, sizeof(st.st_mtim));
	assert_int_equal(is_pinned(SECOND), pins);
	assert_same_data(FIRST, SECOND);
	/* who has the original open reads on */
	assert_int_equal(io_pread_all(original, word, sizeof(word), 0), 0);
	assert_memory_equal(word, "\x17\x08\x44", 3);
	assert_int_equal(fstat(original, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	(void)close(original);

	assert_int_equal(next(&report), COMPRESS_DONE);
	assert_string_equal(report.name, FIRST);
	assert_int_equal(report.tally.waiting, 0);
	assert_int_equal(next(&report), COMPRESS_NOTHING);
	assert_int_equal(report.tally.files, pins ? 2 : 0);
	assert_string_equal(report.name, "");
	assert_int_equal(version_of(THIRD), 6);
	assert_int_equal(tmp_count(&tmp), 3);
}

static void test_left_alone(void **state)
{
	char *refused[] = {(char *)SECOND, NULL};
	struct compress_report report;

	assert_int_equal(linkat(tmp.fd, FIRST, tmp.fd, "link", 0), 0);
	assert_int_equal(next_of(refused, UINT64_MAX, &report), COMPRESS_NOTHING);
	assert_int_equal(report.tally.waiting, 0);
	assert_int_equal(unlinkat(tmp.fd, "link", 0), 0);
	assert_int_equal(next_of(refused, UINT64_MAX, &report), COMPRESS_DONE);
	assert_string_equal(report.name, FIRST);
}

static void test_no_room(void **state)
{
	struct stat st = stat_of(SECOND);
	uint64_t used = 3 * (uint64_t)st.st_blocks * 512;
	struct compress_report report;

	assert_int_equal(next_of(NULL, used + used / 12 - 1, &report), COMPRESS_NO_ROOM);
	assert_string_equal(report.name, SECOND);
	assert_int_equal(report.tally.waiting, 2);
	assert_untouched(&st);
	assert_int_equal(next_of(NULL, used + used / 12, &report), COMPRESS_DONE);
}

static void test_canceled(void **state)
{
	struct stat st = stat_of(SECOND);
	struct compress_report report;

	cancel = true;
	assert_int_equal(next(&report), -ECANCELED);
	assert_untouched(&st);
}

static void hook_cancel(struct pack_result *result, int out_fd)
{
	cancel = true;
}

static void test_canceled_late(void **state)
{
	struct stat st = stat_of(SECOND);
	struct compress_report report;

	after_pack = hook_cancel;
	assert_int_equal(next(&report), -ECANCELED);
	assert_untouched(&st);
}

static void hook_grow(struct pack_result *result, int out_fd)
{
	char bytes[4096];

	for (unsigned i = 0; i < 16; i++) {
		memset(bytes, (int)i + 1, sizeof(bytes));
		assert_int_equal(io_pwrite_all(out_fd, bytes, sizeof(bytes), result->file_bytes),
				 0);
		result->file_bytes += sizeof(bytes);
	}
}

static void test_not_smaller(void **state)
{
	struct stat st = stat_of(SECOND);
	struct compress_report report;

	after_pack = hook_grow;
	assert_int_equal(next(&report), -ENOTSUP);
	assert_string_equal(report.name, SECOND);
	assert_untouched(&st);
}

static void test_damaged(void **state)
{
	struct compress_report report;
	struct stat st;

	tmp_write(&tmp, SECOND, "\x17\x08\x44tracing6");
	st = stat_of(SECOND);
	assert_true(next(&report) < 0);
	assert_string_equal(report.name, SECOND);
	assert_int_equal(stat_of(SECOND).st_ino, st.st_ino);
	assert_int_equal(tmp_count(&tmp), 3);
}

static void hook_remove(void)
{
	assert_int_equal(unlinkat(tmp.fd, SECOND, 0), 0);
}

static void hook_replace(void)
{
	hook_remove();
	put(SECOND);
}

static void hook_remove_copy(void)
{
	assert_int_equal(unlinkat(tmp.fd, "." SECOND ".new", 0), 0);
}

static void hook_pin(void)
{
	(void)pin(SECOND, true);
}

static void hook_unpin(void)
{
	(void)pin(SECOND, false);
}

/* By retention: it does not come back */
static void test_removed(void **state)
{
	struct compress_report report;

	for (unsigned i = 0; i < 2; i++) {
		no_exchange = i == 1;
		before_rename = hook_remove;
		assert_int_equal(next(&report), -ENOENT);
		assert_int_equal(faccessat(tmp.fd, SECOND, F_OK, 0), -1);
		assert_int_equal(tmp_count(&tmp), 2);
		put(SECOND);
	}
}

static void test_replaced(void **state)
{
	struct compress_report report;

	for (unsigned i = 0; i < 2; i++) {
		no_exchange = i == 1;
		before_rename = hook_replace;
		assert_int_equal(next(&report), -ENOENT);
		assert_int_equal(version_of(SECOND), 6);
		assert_int_equal(tmp_count(&tmp), 3);
	}
}

static void test_copy_removed(void **state)
{
	struct stat st = stat_of(SECOND);
	struct compress_report report;

	before_rename = hook_remove_copy;
	assert_int_equal(next(&report), -ENOENT);
	assert_untouched(&st);
}

static void test_pinned_meanwhile(void **state)
{
	struct compress_report report;
	bool pins = pin(FIRST, true);

	before_rename = hook_pin;
	assert_int_equal(next(&report), COMPRESS_DONE);
	assert_string_equal(report.name, SECOND);
	assert_int_equal(is_pinned(SECOND), pins);
	put("20260101T120000.000000Z.dat");
	before_rename = NULL;
	assert_int_equal(next(&report), COMPRESS_DONE);
	assert_int_equal(unlinkat(tmp.fd, SECOND, 0), 0);
	put(SECOND);
	(void)pin(SECOND, true);
	before_rename = hook_unpin;
	assert_int_equal(next(&report), COMPRESS_DONE);
	assert_string_equal(report.name, SECOND);
	assert_false(is_pinned(SECOND));
}

/* As on file systems that cannot exchange names */
static void test_without_exchange(void **state)
{
	struct compress_report report;

	no_exchange = true;
	assert_int_equal(next(&report), COMPRESS_DONE);
	assert_int_equal(version_of(SECOND), 7);
	assert_same_data(FIRST, SECOND);
	assert_int_equal(tmp_count(&tmp), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_fits),
#if HAVE_ZSTD
		TEST(test_in_turn),
		TEST(test_left_alone),
		TEST(test_no_room),
		TEST(test_canceled),
		TEST(test_canceled_late),
		TEST(test_not_smaller),
		TEST(test_damaged),
		TEST(test_removed),
		TEST(test_replaced),
		TEST(test_copy_removed),
		TEST(test_pinned_meanwhile),
		TEST(test_without_exchange),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
