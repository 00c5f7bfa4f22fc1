/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "basic/confine.h"
#include "basic/macro.h"
#include "tests/unit/tmp.h"

enum {
	CHILD_OK,
	CHILD_UNSUPPORTED = 77,
};

/* As there is no way back, each case has a process of its own */
static int in_child(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* 0 or errno */
static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int run_confined(void)
{
	const struct confine_path paths[] = {
		{"read", CONFINE_READ},
		{"write/file", CONFINE_READ | CONFINE_WRITE | CONFINE_MAKE},
		{"make", CONFINE_READ | CONFINE_WRITE | CONFINE_MAKE},
		{"is-not-there", CONFINE_READ},
	};
	int kept = open("secret/file", O_RDONLY | O_CLOEXEC), r;
	char c;

	if (confine_no_new_privs() < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 1;
	r = confine_files(paths, ARRAY_SIZE(paths));
	if (r == CONFINE_E_UNSUPPORTED)
		return CHILD_UNSUPPORTED;
	if (r != 0)
		return 2;
	if (try_open("read/file", O_RDONLY) != 0 || try_open("read", O_RDONLY) != 0)
		return 3;
	if (try_open("read/file", O_WRONLY) != EACCES ||
	    try_open("read/new", O_WRONLY | O_CREAT) != EACCES || unlink("read/file") >= 0)
		return 4;
	if (try_open("write/file", O_RDWR) != 0 || try_open("write", O_RDONLY) != EACCES ||
	    try_open("write/new", O_WRONLY | O_CREAT) != EACCES)
		return 5;
	if (try_open("make/new", O_WRONLY | O_CREAT | O_TRUNC) != 0 ||
	    mkdir("make/dir", 0700) < 0 || rename("make/new", "make/dir/other") < 0 ||
	    unlink("make/dir/other") < 0 || rmdir("make/dir") < 0)
		return 6;
	if (symlink("x", "make/link") >= 0)
		return 7;
	if (try_open("secret/file", O_RDONLY) != EACCES || try_open("secret", O_RDONLY) != EACCES)
		return 8;
	/* What is open stays so; and nothing is run */
	if (read(kept, &c, 1) != 1)
		return 9;
	(void)execl("/bin/true", "true", NULL);
	return errno == EACCES ? CHILD_OK : 10;
}

static int run_without_rights(void)
{
	int r = confine_no_new_privs();

	if (r >= 0)
		r = confine_files(NULL, 0);
	if (r != 0)
		return r == CONFINE_E_UNSUPPORTED ? CHILD_UNSUPPORTED : 1;
	if (try_open("read/file", O_RDONLY) != EACCES || try_open("/dev/null", O_RDWR) != EACCES ||
	    try_open("new", O_WRONLY | O_CREAT) != EACCES)
		return 2;
	/* Once more is no fault */
	return confine_files(NULL, 0) == 0 ? CHILD_OK : 3;
}

/* Without no_new_privs it takes CAP_SYS_ADMIN */
static int run_refused(void)
{
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 1;
	switch (confine_files(NULL, 0)) {
	case -EPERM:
		return CHILD_OK;
	case CONFINE_E_UNSUPPORTED:
		return CHILD_UNSUPPORTED;
	default:
		return 2;
	}
}

static void check(int (*run)(void))
{
	static const char *const dirs[] = {"read", "write", "make", "secret"};
	struct tmp tmp;
	int status;

	tmp_init(&tmp);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char name[32];

		assert_int_equal(mkdirat(tmp.fd, dirs[i], 0755), 0);
		(void)snprintf(name, sizeof(name), "%s/file", dirs[i]);
		tmp_write(&tmp, name, "x");
	}
	assert_int_equal(fchdir(tmp.fd), 0);
	status = in_child(run);
	assert_int_equal(chdir("/"), 0);
	tmp_done(&tmp);
	if (status == CHILD_UNSUPPORTED)
		skip();
	assert_int_equal(status, CHILD_OK);
}

static void test_confined(void **state)
{
	check(run_confined);
}

static void test_without_rights(void **state)
{
	check(run_without_rights);
}

static void test_refused(void **state)
{
	check(run_refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_confined),
		cmocka_unit_test(test_without_rights),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
