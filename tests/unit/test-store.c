/* SPDX-License-Identifier: LGPL-2.1-or-later */
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
#include "basic/macro.h"
#include "tests/unit/tmp.h"
#include "writer/store.h"

#define USEC 1790000000123456ULL /* 20260921T141320.123456Z */

static bool no_noreplace;

int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (no_noreplace) {
		errno = EINVAL;
		return -1;
	}
	return __real_renameat2(from_fd, from, to_fd, to, flags);
}

static void test_open_dir(void **state)
{
	_cleanup_close_ int fd = -EBADF, again = -EBADF;
	struct fault why = {};
	struct stat st;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_int_equal(store_open_dir(tmp.fd, "record", &fd, &why), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 027, 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(store_open_dir(tmp.fd, "record", &again, &why), 0);
	tmp_done(&tmp);
}

static void test_open_dir_refused(void **state)
{
	struct fault why;
	struct tmp tmp;
	int fd = -EBADF;

	tmp_init(&tmp);
	tmp_write(&tmp, "file", "x");
	assert_int_equal(mkdirat(tmp.fd, "real", 0755), 0);
	assert_int_equal(symlinkat("real", tmp.fd, "link"), 0);
	why = (struct fault){};
	assert_int_equal(store_open_dir(tmp.fd, "file", &fd, &why), -ENOTDIR);
	assert_non_null(strstr(why.text, "file"));
	why = (struct fault){};
	assert_true(store_open_dir(tmp.fd, "link", &fd, &why) < 0);
	assert_non_null(strstr(why.text, "link"));
	why = (struct fault){};
	assert_int_equal(store_open_dir(tmp.fd, "missing/below", &fd, &why), -ENOENT);
	assert_non_null(strstr(why.text, "missing/below"));
	if (geteuid() == 0) {
		assert_int_equal(fchownat(tmp.fd, "real", 12345, 12345, 0), 0);
		why = (struct fault){};
		assert_int_equal(store_open_dir(tmp.fd, "real", &fd, &why), -EPERM);
		assert_non_null(strstr(why.text, "12345"));
		assert_int_equal(fchownat(tmp.fd, "real", 0, 0, 0), 0);
		assert_int_equal(fchmodat(tmp.fd, "real", 0770, 0), 0);
		why = (struct fault){};
		assert_int_equal(store_open_dir(tmp.fd, "real", &fd, &why), -EPERM);
		assert_non_null(strstr(why.text, "0770"));
	} else {
		assert_int_equal(fchmodat(tmp.fd, "real", 0555, 0), 0);
		assert_int_equal(store_open_dir(tmp.fd, "real", &fd, &why), -EACCES);
	}
	assert_int_equal(fd, -EBADF);
	tmp_done(&tmp);
}

static void test_archive_name(void **state)
{
	char name[STORE_NAME_SIZE], finishing[STORE_NAME_SIZE];
	uint64_t usec = 0;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_int_equal(store_archive_name(tmp.fd, USEC, name), 0);
	assert_string_equal(name, "20260921T141320.123456Z.dat");
	assert_true(store_parse_archive_name(name, &usec));
	assert_int_equal(usec, USEC);
	/* Taken, as a file, as one on its way, as a dangling link: the next microsecond */
	tmp_write(&tmp, name, "");
	store_finishing_name("20260921T141320.123457Z.dat", finishing);
	assert_string_equal(finishing, ".20260921T141320.123457Z.dat.finishing");
	tmp_write(&tmp, finishing, "");
	assert_int_equal(symlinkat("nowhere", tmp.fd, "20260921T141320.123458Z.dat"), 0);
	assert_int_equal(store_archive_name(tmp.fd, USEC, name), 0);
	assert_string_equal(name, "20260921T141320.123459Z.dat");
	/* Names sort by time, over the second's end too */
	assert_int_equal(store_archive_name(tmp.fd, 1790000000999999ULL, name), 0);
	assert_string_equal(name, "20260921T141320.999999Z.dat");
	assert_int_equal(store_archive_name(tmp.fd, 1790000001000000ULL, name), 0);
	assert_string_equal(name, "20260921T141321.000000Z.dat");
	assert_int_equal(store_archive_name(tmp.fd, 0, name), 0);
	assert_string_equal(name, "19700101T000000.000000Z.dat");
	/* Timestamps of a broken clock still make a name that is not too long */
	assert_int_equal(store_archive_name(tmp.fd, UINT64_MAX - 2000, name), 0);
	assert_true(strlen(name) < STORE_NAME_SIZE - 1);
	tmp_done(&tmp);
}

static void test_many_names_taken(void **state)
{
	char name[STORE_NAME_SIZE];
	struct tmp tmp;

	tmp_init(&tmp);
	for (unsigned i = 0; i < 1000; i++) {
		char taken[64];

		(void)snprintf(taken, sizeof(taken), "19700101T000000.%06uZ.dat", i);
		tmp_write(&tmp, taken, "");
	}
	/* Behind the last one: names sort in the order of recording */
	assert_int_equal(store_archive_name(tmp.fd, 0, name), 0);
	assert_string_equal(name, "19700101T000000.001000Z.dat");
	tmp_done(&tmp);
}

static void test_parse_archive_name(void **state)
{
	static const char *const bad[] = {
		"",
		"current.dat",
		".20260921T141320.123456Z.dat.finishing",
		"20260921T141320.123456Z",
		"20260921T141320.123456Z.dat.damaged",
		"20260921T141320.12345Z.dat",
		"20260921T141320.1234567Z.dat",
		"20260921T141320.123456.dat",
		"20260921T1413.123456Z.dat",
		"20261321T141320.123456Z.dat",
		"20260921T141320.-12345Z.dat",
		"20260921T141320.+12345Z.dat",
		"20260921T141320. 12345Z.dat",
		" 0260921T141320.123456Z.dat",
		"20260921T141320.123456Zx.dat",
	};
	uint64_t usec = 5;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (store_parse_archive_name(bad[i], &usec))
			fail_msg("\"%s\" is taken for an archive name", bad[i]);
	assert_int_equal(usec, 5);
	assert_true(store_parse_archive_name("20260921T141320.123456Z-signal.dat", &usec));
	assert_int_equal(usec, USEC);
}

static void test_list_finishing(void **state)
{
	char **names = NULL;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_int_equal(store_list_finishing(tmp.fd, &names), 0);
	assert_null(names[0]);
	free(names);
	tmp_write(&tmp, ".b.finishing", "");
	tmp_write(&tmp, ".a.finishing", "");
	tmp_write(&tmp, "c.finishing", "");
	tmp_write(&tmp, ".finishing.dat", "");
	tmp_write(&tmp, "current.dat", "");
	assert_int_equal(store_list_finishing(tmp.fd, &names), 0);
	assert_string_equal(names[0], ".a.finishing");
	assert_string_equal(names[1], ".b.finishing");
	assert_null(names[2]);
	free(names[0]);
	free(names[1]);
	free(names);
	tmp_done(&tmp);
	assert_true(store_list_finishing(-1, &names) < 0);
}

/* Of the newest snapshot that has it; what is no snapshot's name does not count */
static void test_ids(void **state)
{
	static const char older[] = "20260921T141320.123456Z-peer.dat",
			  newer[] = "20260921T141321.123456Z-event.dat";
	_cleanup_close_ int fd = -EBADF, other = -EBADF;
	char name[STORE_NAME_SIZE], id[100];
	struct tmp tmp;

	tmp_init(&tmp);
	if (!store_takes_attributes(tmp.fd)) {
		tmp_done(&tmp);
		skip();
	}
	tmp_write(&tmp, older, "");
	tmp_write(&tmp, newer, "");
	tmp_write(&tmp, "z.dat", "");
	fd = openat(tmp.fd, "z.dat", O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_add_id(fd, "h1-1"), 1);
	assert_int_equal(store_find_id(tmp.fd, "h1-1", name), -ENOENT);
	close_p(&fd);
	fd = openat(tmp.fd, older, O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_add_id(fd, "h1-1"), 1);
	assert_int_equal(store_add_id(fd, "h1-1"), 0);
	assert_int_equal(store_find_id(tmp.fd, "h1-1", name), 0);
	assert_string_equal(name, older);
	/* all of it, not a part */
	assert_int_equal(store_find_id(tmp.fd, "h1", name), -ENOENT);
	assert_int_equal(store_find_id(tmp.fd, "h1-11", name), -ENOENT);
	assert_int_equal(store_find_id(tmp.fd, "1-1", name), -ENOENT);
	for (int i = 2; i <= STORE_IDS_MAX; i++) {
		memset(id, 'x', sizeof(id)); /* as long as they may be */
		(void)snprintf(id + 93, sizeof(id) - 93, "%03d", i);
		assert_int_equal(store_add_id(fd, id), 1);
		assert_int_equal(store_find_id(tmp.fd, id, name), 0);
	}
	assert_int_equal(store_add_id(fd, "one-more"), -ENOSPC);
	assert_int_equal(store_add_id(fd, "h1-1"), 0);
	assert_int_equal(store_find_id(tmp.fd, "one-more", name), -ENOENT);
	other = openat(tmp.fd, newer, O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_add_id(other, "h1-1"), 1);
	assert_int_equal(store_find_id(tmp.fd, "h1-1", name), 0);
	assert_string_equal(name, newer);
	assert_true(store_find_id(-EBADF, "h1-1", name) < 0);
	tmp_done(&tmp);
}

static void test_set_aside(void **state)
{
	char name[STORE_NAME_SIZE], other[STORE_NAME_SIZE] = "untouched";
	_cleanup_free_ char *text = NULL;
	struct tmp tmp;

	tmp_init(&tmp);
	for (int i = 0; i < 2; i++) {
		no_noreplace = i;
		tmp_write(&tmp, "current.dat", "precious");
		assert_int_equal(store_set_aside(tmp.fd, "current.dat", name), 0);
		assert_memory_equal(name, "current.dat-", 12);
		assert_true(store_is_damaged(name));
		tmp_write(&tmp, ".20260921T141320.123456Z.dat.finishing", "more");
		assert_int_equal(
			store_set_aside(tmp.fd, ".20260921T141320.123456Z.dat.finishing", other),
			0);
		assert_true(store_is_damaged(other));
		assert_int_equal(tmp_count(&tmp), 2 * (i + 1));
	}
	assert_int_equal(io_read_file_at(tmp.fd, name, &text, NULL), 0);
	assert_string_equal(text, "precious");
	(void)strcpy(other, "untouched");
	assert_int_equal(store_set_aside(tmp.fd, "missing", other), -ENOENT);
	assert_string_equal(other, "untouched");
	assert_false(store_is_damaged("current.dat"));
	assert_false(store_is_damaged(".x.damaged"));
	no_noreplace = false;
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_dir),	   cmocka_unit_test(test_open_dir_refused),
		cmocka_unit_test(test_archive_name),	   cmocka_unit_test(test_many_names_taken),
		cmocka_unit_test(test_parse_archive_name), cmocka_unit_test(test_list_finishing),
		cmocka_unit_test(test_set_aside),	   cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
