/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/memory-check: what snapshots may take, and what the control group has */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/manager/memory-check.h"
#include "tests/unit/config-dir.h"
#include "tests/unit/tmp.h"

static uint64_t wanted_by(struct config_dir *dir, unsigned n_cpus)
{
	assert_int_equal(config_dir_load(dir), 0);
	assert_int_equal(dir->n_faults, 0);
	return memory_wanted(dir->config, n_cpus);
}

static void test_wanted(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "etc/sessions.d/a.conf",
			 "[Session]\nMode=flight\n[Trace]\nEvent=sched\nBufferSize=32M\n");
	assert_int_equal(wanted_by(dir, 4), 64 * MIB); /* Memory= */
	assert_int_equal(wanted_by(dir, 1), 32 * MIB); /* there is no more to copy */
	config_dir_write(dir, "etc/sessions.d/b.conf",
			 "[Session]\nMode=flight\n[Trace]\nEvent=sched\nBufferSize=1G\n"
			 "[Snapshot]\nMemory=1T\n");
	assert_int_equal(wanted_by(dir, 4), 64 * MIB + 4 * GIB);
	config_dir_write(dir, "etc/sessions.d/c.conf", "[Trace]\nEvent=sched\n");
	config_dir_write(dir, "etc/sessions.d/d.conf",
			 "[Session]\nMode=flight\nEnabled=no\n[Trace]\nEvent=sched\n");
	assert_int_equal(wanted_by(dir, 4), 64 * MIB + 4 * GIB);
}

static void assert_limit(struct tmp *tmp, const char *groups, int expected, uint64_t bytes)
{
	uint64_t limit = 4242;

	tmp_write(tmp, "proc/self/cgroup", groups);
	assert_int_equal(memory_limit(tmp->fd, &limit), expected);
	assert_int_equal(limit, expected < 0 ? 4242 : bytes);
}

static void test_limit(void **state)
{
	struct tmp tmp;
	uint64_t limit;

	tmp_init(&tmp);
	assert_int_equal(memory_limit(tmp.fd, &limit), -ENOENT);
	tmp_write(&tmp, "sys/fs/cgroup/system.slice/flyrecd.service/memory.max", "536870912\n");
	assert_limit(&tmp, "0::/system.slice/flyrecd.service\n", 0, 512 * MIB);
	assert_limit(&tmp, "4:memory:/x\n1:name=systemd:/y\n0::/system.slice/flyrecd.service\n", 0,
		     512 * MIB);
	assert_limit(&tmp, "0::/system.slice\n", -ENOENT, 0);
	assert_limit(&tmp, "0::/\n", -ENOENT, 0);
	assert_limit(&tmp, "10::/system.slice/flyrecd.service\n", -ENOENT, 0);
	assert_limit(&tmp, "4:memory:/x\n", -ENOENT, 0);
	assert_limit(&tmp, "", -ENOENT, 0);
	tmp_write(&tmp, "sys/fs/cgroup/system.slice/flyrecd.service/memory.max", "max\n");
	assert_limit(&tmp, "0::/system.slice/flyrecd.service\n", -ENOENT, 0);
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wanted, config_dir_setup, config_dir_teardown),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
