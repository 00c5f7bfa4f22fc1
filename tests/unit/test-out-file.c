/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/out-file.h"
#include "tests/unit/tmp.h"

static void test_standard(void **state)
{
	struct out_file out;
	struct fault why;
	struct stat a, b;

	assert_true(out_file_is_standard(NULL));
	assert_true(out_file_is_standard("-"));
	assert_false(out_file_is_standard("./-"));
	assert_int_equal(out_file_open(&out, "-", -EBADF, "copy", 0, &why), 0);
	assert_int_equal(out.kind, OUT_FILE_STANDARD);
	assert_int_equal(fstat(out.fd, &a), 0);
	assert_int_equal(fstat(STDOUT_FILENO, &b), 0);
	assert_true(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
	assert_int_equal(out_file_publish(&out, &why), 0);
	out_file_done(&out);
	/* it is still ours */
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
	assert_true(access("-", F_OK) < 0);
}

static void write_text(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void assert_content(const char *path, const char *wanted)
{
	char text[64] = {};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, wanted);
	close(fd);
}

/* The older one stays until the new one is complete, and in the place of nothing is nothing */
static void test_file(void **state)
{
	struct tmp t, *tmp = &t;
	char path[300];
	struct out_file out;
	struct fault why;
	struct stat st;

	tmp_init(tmp);
	(void)snprintf(path, sizeof(path), "%s/out.dat", tmp->path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(out_file_open(&out, path, -EBADF, "copy", OUT_FILE_BINARY, &why),
				 0);
		write_text(out.fd, i == 0 ? "first" : "second");
		if (i == 0)
			assert_true(access(path, F_OK) < 0);
		else
			assert_content(path, "first");
		assert_int_equal(out_file_publish(&out, &why), 0);
		out_file_done(&out);
	}
	assert_content(path, "second");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(out_file_open(&out, path, -EBADF, "copy", 0, &why), 0);
	write_text(out.fd, "third");
	out_file_done(&out);
	assert_content(path, "second");
	tmp_done(tmp);
}

static void test_refused(void **state)
{
	struct tmp t, *tmp = &t;
	struct out_file out;
	struct fault why;
	char path[300];
	int fd;

	tmp_init(tmp);
	assert_int_equal(out_file_open(&out, tmp->path, -EBADF, "copy", 0, &why), -EISDIR);
	out_file_done(&out);
	(void)snprintf(path, sizeof(path), "%s/in.dat", tmp->path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(out_file_open(&out, path, fd, "export", 0, &why), -EINVAL);
	assert_non_null(strstr(why.text, "is the file to export"));
	out_file_done(&out);
	close(fd);
	(void)snprintf(path, sizeof(path), "%s/none/x", tmp->path);
	assert_int_equal(out_file_open(&out, path, -EBADF, "copy", 0, &why), -ENOENT);
	out_file_done(&out);
	tmp_done(tmp);
}

static void test_device(void **state)
{
	struct out_file out;
	struct fault why;

	assert_int_equal(out_file_open(&out, "/dev/null", -EBADF, "copy", 0, &why), 0);
	assert_int_equal(out.kind, OUT_FILE_EXISTING);
	write_text(out.fd, "x");
	assert_int_equal(out_file_publish(&out, &why), 0);
	out_file_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_standard),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
