/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a process that reads files can still do: each check in one of its own */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "ctl/confine.h"

/* The sum of what should have failed or worked and did not; 0 is right */
static int look(void *userdata)
{
	const int *fd = userdata;
	char c;
	int wrong = 0;

	wrong |= open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 ? 1 : 0;
	wrong |= socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 ? 2 : 0;
	wrong |= execl("/bin/true", "true", NULL) >= 0 ? 4 : 0;
	wrong |= geteuid() == 0 ? 8 : 0;
	wrong |= pread(*fd, &c, 1, 0) != 1 || write(*fd, &c, 1) != 1 ? 16 : 0;
	return wrong;
}

static int die(void *userdata)
{
	abort();
}

static void test_reader(void **state)
{
	char name[] = "/tmp/test-ctl-confine.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(ctl_confined("test", NULL, look, &fd), 0);
	assert_true(ctl_confined("test", NULL, die, NULL) < 0);
	(void)unlink(name);
	close(fd);
}

/* A folder's files, and no others */
static int look_in_folder(void *userdata)
{
	int wrong = 0;

	wrong |= open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? 1 : 0;
	wrong |= open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0 ? 2 : 0;
	wrong |= open("/etc/test-ctl-confine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 ? 4 : 0;
	wrong |= socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 ? 8 : 0;
	return wrong;
}

static void test_folder(void **state)
{
	assert_int_equal(ctl_confined("test", "/etc", look_in_folder, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_folder),
	};

#ifdef __SANITIZE_ADDRESS__
	return 77; /* ctl/confine.c leaves sanitizers their rights */
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
