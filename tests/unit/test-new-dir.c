/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/new-dir.h"
#include "tests/unit/tmp.h"

static void test_new_dir(void **state)
{
	struct new_dir dir;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_int_equal(new_dir_open(&dir, tmp.fd, "a/", 0755), 0);
	assert_int_equal(io_write_file_at(dir.fd, "x", "x", 1, 0644), 0);
	assert_int_equal(mkdirat(dir.fd, "sub", 0755), 0);
	assert_int_equal(symlinkat("/etc", dir.fd, "sub/link"), 0);
	assert_int_equal(tmp_count(&tmp), 1);
	new_dir_done(&dir); /* not published: gone */
	assert_int_equal(tmp_count(&tmp), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);

	assert_int_equal(new_dir_open(&dir, tmp.fd, "a", 0755), 0);
	tmp_write(&tmp, "a", "came in between");
	assert_int_equal(new_dir_publish(&dir), -EEXIST);
	new_dir_done(&dir);
	assert_int_equal(new_dir_open(&dir, tmp.fd, "a", 0755), -EEXIST);
	assert_int_equal(new_dir_open(&dir, tmp.fd, ".", 0755), -EEXIST);
	assert_int_equal(new_dir_open(&dir, tmp.fd, "/", 0755), -EEXIST);
	assert_int_equal(new_dir_open(&dir, tmp.fd, "", 0755), -ENOENT);
	assert_int_equal(new_dir_open(&dir, tmp.fd, "none/b", 0755), -ENOENT);
	assert_int_equal(new_dir_open(&dir, tmp.fd, "b", 0755), 0);
	assert_int_equal(new_dir_publish(&dir), 0);
	new_dir_done(&dir);
	assert_int_equal(tmp_count(&tmp), 2);
	assert_int_equal(remove_tree_at(tmp.fd, "b"), 0);
	assert_int_equal(remove_tree_at(tmp.fd, "b"), 0);
	assert_int_equal(remove_tree_at(tmp.fd, "a"), -ENOTDIR);
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
