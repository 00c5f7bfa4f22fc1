/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recorder/instance without root: on a copy of a recorded tracefs (tests/fixtures/tracefs), where
 * files can be changed behind its back. What only a kernel can answer is in
 * tests/integration/test-instance-*.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <tracefs.h>

#include "basic/io.h"
#include "recorder/instance.h"
#include "recorder/settings.h"
#include "recorder/tracefs.h"

#define RECORDED SOURCE_DIR "/tests/fixtures/tracefs"

/* A private, writable copy of the recorded tree */
static char tree[] = "/tmp/flyrec-tracefs.XXXXXX";

static int copy_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	_cleanup_free_ char *to = NULL, *text = NULL;
	_cleanup_close_ int fd = -EBADF;
	size_t size;

	if (asprintf(&to, "%s%s", tree, path + strlen(RECORDED)) < 0)
		return -1;
	if (type == FTW_D)
		return ftw->level == 0 ? 0 : mkdir(to, 0700);
	if (io_read_file_at(AT_FDCWD, path, &text, &size) < 0)
		return -1;
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : io_write_all(fd, text, size);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int set_up_tree(void **state)
{
	(void)strcpy(tree, "/tmp/flyrec-tracefs.XXXXXX");
	if (!mkdtemp(tree) || nftw(RECORDED, copy_entry, 8, FTW_PHYS) != 0)
		return -1;
	return tracefs_set_tracing_dir(tree);
}

static int remove_tree(void **state)
{
	(void)tracefs_set_tracing_dir(NULL);
	return nftw(tree, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *file, const char *text)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -EBADF;

	assert_true(asprintf(&path, "%s/instances/rec/%s", tree, file) > 0);
	fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
}

static void get(const char *file, char **ret)
{
	_cleanup_free_ char *path = NULL;

	assert_true(asprintf(&path, "%s/instances/rec/%s", tree, file) > 0);
	assert_int_equal(io_read_file_at(AT_FDCWD, path, ret, NULL), 0);
}

static struct trace_event events[] = {
	{(char *)"sched", (char *)"sched_switch", (char *)" prev_pid == 0 ", false},
	{(char *)"irq", NULL, NULL, false},
	{(char *)"nosuch", NULL, NULL, true},
};
static struct trace_trigger triggers[] = {
	{(char *)"sched", (char *)"sched_process_exit", (char *)"stacktrace", false},
};

static struct trace_config recorded_config(void)
{
	return (struct trace_config){
		.events = events,
		.n_events = ARRAY_SIZE(events),
		.triggers = triggers,
		.n_triggers = ARRAY_SIZE(triggers),
		.clock = (char *)"mono",
		.cpus = (char *)"0",
		.buffer_size = 4 * MIB,
		.subbuf_size = 16 * KIB,
		.buffer_percent = 25,
	};
}

static void test_attach(void **state)
{
	const struct trace_config config = recorded_config();
	_cleanup_(instance_freep) struct instance *instance = NULL;
	struct cpu_stats stats;
	struct fault why = {0};
	char **systems = NULL;

	assert_int_equal(instance_attach("absent", "g", &config, &instance, &why), -ENOENT);
	assert_non_null(strstr(why.text, "instances/absent: No such file"));
	assert_int_equal(instance_attach("../rec", "g", &config, &instance, &why), -EINVAL);
	assert_int_equal(instance_attach("rec", "g", &config, &instance, &why), 0);
	assert_string_equal(instance_name(instance), "rec");
	assert_int_equal(instance_subbuf_size(instance), 16384);
	assert_true(instance_n_cpus(instance) >= 1);
	assert_int_equal(instance_read_stats(instance, 0, &stats), 0);
	assert_int_equal(stats.entries, 2419);
	assert_int_equal(instance_read_stats(instance, 4000, &stats), -ENOENT);

	assert_int_equal(instance_systems(instance, &systems, &why), 0);
	assert_int_equal(tracefs_list_size(systems), 2);
	assert_string_equal(systems[0], "irq");
	assert_string_equal(systems[1], "sched");
	tracefs_list_free(systems);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
}

/* One file changed by somebody: what a check says, and what it writes into it */
static const struct meddling {
	const char *file, *text, *says, *writes;
} meddlings[] = {
	{"tracing_on", "1\n", "tracing had been switched on", "0"},
	{"trace_clock", "[local] global mono\n", "clock had been set to local", "mono"},
	{"buffer_size_kb", "1408\n", "buffer size had been set to 1408 KiB", "4096"},
	{"buffer_size_kb", "X\n", "buffer size had been set to X KiB", "4096"},
	{"buffer_percent", "50\n", "buffer_percent had been set to 50", "25"},
	{"tracing_cpumask", "0\n", "tracing_cpumask had been set to 0", "00000001"},
	{"current_tracer", "function\n", "tracer had been set to function", "nop"},
	{"set_event_pid", "1\n", "set_event_pid had been changed", ""},
	{"events/sched/sched_switch/filter", "none\n", "sched:sched_switch had been set to none",
	 " prev_pid == 0 "},
	{"events/sched/sched_switch/enable", "0\n", "sched:sched_switch had been disabled", "1"},
	{"events/irq/enable", "X\n", "irq had been disabled", "1"},
	{"events/sched/sched_process_exit/trigger", "# Available triggers:\n",
	 "triggers of sched:sched_process_exit had been removed", "stacktrace"},
};

static void test_meddling(void **state)
{
	const struct trace_config config = recorded_config();
	_cleanup_(instance_freep) struct instance *instance = NULL;
	struct fault why = {0};

	assert_int_equal(instance_attach("rec", "g", &config, &instance, &why), 0);
	assert_int_equal(instance_trace(instance, false, &why), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(meddlings); i++) {
		const struct meddling *m = &meddlings[i];
		_cleanup_free_ char *before = NULL, *after = NULL;

		get(m->file, &before);
		put(m->file, m->text);
		assert_int_equal(instance_check(instance, &why), strcmp(m->file, "trace_clock") == 0
									 ? INSTANCE_EMPTIED
									 : INSTANCE_REPAIRED);
		if (!strstr(why.text, m->says))
			fail_msg("%s: %s", m->file, why.text);
		get(m->file, &after);
		if (strncmp(after, m->writes, strlen(m->writes)) != 0)
			fail_msg("%s: wrote %s", m->file, after);
		put(m->file, before);
		assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	}
}

static void test_two_meddlings(void **state)
{
	const struct trace_config config = recorded_config();
	_cleanup_(instance_freep) struct instance *instance = NULL;
	struct fault why = {0};

	assert_int_equal(instance_attach("rec", "g", &config, &instance, &why), 0);
	put("buffer_percent", "0\n");
	put("current_tracer", "blk\n");
	assert_int_equal(instance_check(instance, &why), INSTANCE_REPAIRED);
	assert_non_null(strstr(why.text, "instances/rec: buffer_percent had been set to 0; "
					 "the tracer had been set to blk"));
}

static void test_gone(void **state)
{
	const struct trace_config config = recorded_config();
	_cleanup_(instance_freep) struct instance *instance = NULL;
	_cleanup_free_ char *path = NULL, *moved = NULL;
	struct fault why = {0};

	assert_int_equal(instance_attach("rec", "g", &config, &instance, &why), 0);
	assert_true(asprintf(&path, "%s/instances/rec", tree) > 0);
	assert_true(asprintf(&moved, "%s/instances/moved", tree) > 0);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_GONE);
	assert_non_null(strstr(why.text, "has been removed"));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_GONE);
	assert_non_null(strstr(why.text, "made anew by somebody else"));
	/* somebody else's is left alone */
	assert_int_equal(instance_destroy(TAKE_PTR(instance), &why), 0);
	assert_int_equal(access(path, F_OK), 0);
}

static void test_pids_marker(void **state)
{
	uint32_t pids[] = {4194303};
	struct trace_config config = recorded_config();
	_cleanup_(instance_freep) struct instance *instance = NULL;
	_cleanup_free_ char *list = NULL;
	struct fault why = {0};

	config.pids = pids;
	config.n_pids = 1;
	put("trace_options", "event-fork\n");
	assert_int_equal(instance_attach("rec", "g", &config, &instance, &why), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_REPAIRED);
	get("set_event_pid", &list);
	assert_string_equal(list, "4194304\n4194303\n");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	/* empty would mean: trace everything */
	put("set_event_pid", "");
	assert_int_equal(instance_check(instance, &why), INSTANCE_REPAIRED);
}

/* A directory that is no tracefs refuses everything: what was made must go again */
static void test_create_undone(void **state)
{
	const struct trace_config config = recorded_config();
	struct instance *instance = NULL;
	_cleanup_free_ char *path = NULL;
	struct fault why = {0};

	assert_int_equal(instance_create("rec", "g", &config, &instance, &why), -EEXIST);
	assert_non_null(strstr(why.text, "already"));
	assert_int_equal(instance_create("new", "g", &config, &instance, &why), -ENOENT);
	assert_non_null(strstr(why.text, "/instances/new/tracing_on: No such file"));
	assert_null(instance);
	assert_true(asprintf(&path, "%s/instances/new", tree) > 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_flips_tracing(void **state)
{
	struct trace_trigger off = {(char *)"a", (char *)"b", (char *)"traceoff:1", false};
	struct trace_config config = recorded_config();

	assert_false(settings_flips_tracing(&config));
	config.triggers = &off;
	config.n_triggers = 1;
	assert_true(settings_flips_tracing(&config));
}

#define ON_TREE(test) cmocka_unit_test_setup_teardown(test, set_up_tree, remove_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_TREE(test_attach),
		ON_TREE(test_meddling),
		ON_TREE(test_two_meddlings),
		ON_TREE(test_gone),
		ON_TREE(test_pids_marker),
		ON_TREE(test_create_undone),
		cmocka_unit_test(test_flips_tracing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
