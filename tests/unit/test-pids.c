/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "recorder/pids.h"
#include "tests/unit/tmp.h"

static void test_count(void **state)
{
	static const char *const processes[] = {"proc/1", "proc/154", "proc/155", "proc/9000",
						"proc/self"};
	struct tmp t, *tmp = &t;
	uint64_t tasks, found;
	int proc;

	tmp_init(tmp);
	assert_int_equal(mkdirat(tmp->fd, "proc", 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
		assert_int_equal(mkdirat(tmp->fd, processes[i], 0700), 0);
	proc = openat(tmp->fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* 156 is a thread; the highest is nobody's number */
	assert_int_equal(pids_count_text("154\n155\n156\n4194304\n", proc, &tasks, &found), 0);
	assert_int_equal(tasks, 3);
	assert_int_equal(found, 2);
	assert_int_equal(pids_count_text("4194304\n", proc, &tasks, &found), 0);
	assert_int_equal(tasks, 0);
	assert_int_equal(found, 0);
	assert_int_equal(pids_count_text("", proc, &tasks, &found), 0);
	assert_int_equal(tasks, 0);
	close(proc);
	tmp_done(tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
