/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recorder/instance on the real tracefs: dynamic events, made, found gone, refused, and undone
 * whatever fails behind them.
 */
#include <errno.h>
#include <fcntl.h>

#include <tracefs.h>

#include "instance-lib.h"

static void test_hist_and_synthetic(void **state)
{
	_cleanup_free_ char *readme = NULL;
	char *synthetic[] = {(char *)GROUP "_lat u64 delta; pid_t pid", NULL};
	struct trace_trigger triggers[] = {
		{(char *)"sched", (char *)"sched_waking",
		 (char *)"hist:keys=pid:ts0=common_timestamp.usecs", false},
		{(char *)"sched", (char *)"sched_switch",
		 (char *)"hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_"
			 "waking).trace(" GROUP "_lat,$lat,next_pid)",
		 false},
	};
	struct trace_config config = lib_config();
	struct instance *instance;
	struct fault why = {0};
	char **systems = NULL;

	config.synthetic_events = synthetic;
	config.triggers = triggers;
	config.n_triggers = ARRAY_SIZE(triggers);
	assert_int_equal(io_read_file_at(AT_FDCWD, TRACING "/README", &readme, NULL), 0);
	if (!strstr(readme, "onmatch(")) {
		lib_assert_refused(&config, EOPNOTSUPP, "SyntheticEvent=" GROUP "_lat",
				   "CONFIG_SYNTH_EVENTS");
		config.synthetic_events = NULL;
		lib_assert_refused(&config, EINVAL, "cannot set trigger of sched:sched_waking",
				   "hist:keys=pid");
		return;
	}
	instance = lib_create(&config);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_int_equal(instance_systems(instance, &systems, &why), 0);
	lib_assert_has(systems, 0, "sched");
	lib_assert_has(systems, 1, "synthetic");
	tracefs_list_free(systems);
	lib_destroy(instance);
}

static void test_uprobe(void **state)
{
	char *uprobes[] = {(char *)"p:first /bin/true:0x1000 ip=%ip", (char *)"p /bin/true:0x1001",
			   NULL};
	struct trace_event event = {(char *)GROUP, (char *)"first", (char *)"ip != 0", false};
	struct trace_config config = lib_config();
	_cleanup_free_ char *dynamic = NULL;
	struct instance *instance;
	struct fault why = {0};
	char **systems = NULL;

	config.uprobes = uprobes;
	config.events = &event;
	config.n_events = 1;
	instance = lib_create(&config);
	assert_int_equal(io_read_file_at(AT_FDCWD, TRACING "/dynamic_events", &dynamic, NULL), 0);
	assert_non_null(strstr(dynamic, "p:" GROUP "/first /bin/true:"));
	assert_non_null(strstr(dynamic, "p:" GROUP "/probe2 /bin/true:"));
	lib_assert_file("events/" GROUP "/first/enable", "1");
	lib_assert_file("events/" GROUP "/first/filter", "ip != 0");
	lib_assert_file("events/" GROUP "/probe2/enable", "1");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_int_equal(instance_systems(instance, &systems, &why), 0);
	assert_int_equal(tracefs_list_size(systems), 1);
	lib_assert_has(systems, 0, GROUP);
	tracefs_list_free(systems);

	/* taken away by somebody: disabled first, else the kernel refuses */
	lib_write("events/" GROUP "/first/enable", "0", false);
	assert_int_equal(io_write_string_at(AT_FDCWD, TRACING "/dynamic_events",
					    "-:" GROUP "/first", O_APPEND),
			 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_REPAIRED);
	assert_non_null(strstr(why.text, GROUP ":first had been removed"));
	lib_assert_file("events/" GROUP "/first/enable", "1");
	lib_assert_file("events/" GROUP "/first/filter", "ip != 0");
	lib_destroy(instance);
}

/* A probe that works: this program's own function */
__attribute__((noinline)) static int probed(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* Where in this program's file a function begins: its mapping's offset plus the distance */
static unsigned long file_offset_of(const void *address)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long first, last, offset, at = (unsigned long)address;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &first, &last, &offset) == 3 && at >= first &&
		    at < last)
			return at - first + offset;
	fail();
	return 0;
}

static void test_uprobe_fires(void **state)
{
	_cleanup_free_ char *definition = NULL, *trace = NULL;
	char exe[256] = {0}, *uprobes[] = {NULL, NULL};
	struct trace_config config = lib_config();
	struct instance *instance;
	struct fault why = {0};

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_true(asprintf(&definition, "p:hit %s:0x%lx", exe,
			     file_offset_of((const void *)probed)) > 0);
	uprobes[0] = definition;
	config.uprobes = uprobes;
	instance = lib_create(&config);
	assert_int_equal(instance_trace(instance, true, &why), 0);
	assert_int_equal(probed(1), 2);
	assert_int_equal(instance_trace(instance, false, &why), 0);
	lib_trace(&trace);
	assert_non_null(strstr(trace, "hit: "));
	lib_destroy(instance);
}

static void test_refused_dynamic(void **state)
{
	char *uprobes[] = {(char *)"p:good /bin/true:0x1000", (char *)"p:bad /nonexistent:0x1000",
			   NULL};
	char *kprobes[] = {(char *)"p:bad nosuchfunction_at_all", NULL};
	struct trace_config config = lib_config();

	config.uprobes = uprobes;
	lib_assert_refused(
		&config, ENOENT, "cannot make the event " GROUP ":bad",
		"/dynamic_events: No such file or directory: Failed to find the given file");
	config = lib_config();
	config.kprobes = kprobes;
	lib_assert_refused(&config, access(TRACING "/kprobe_events", F_OK) == 0 ? ENOENT : EINVAL,
			   "cannot make the event " GROUP ":bad", "/dynamic_events: ");
	uprobes[1] = (char *)"p:sched/bad /bin/true:0x1000";
	config = lib_config();
	config.uprobes = uprobes;
	lib_assert_refused(&config, EINVAL, "Uprobe=p:sched/bad", "group");
}

/* Every step that can fail comes after others that must be undone */
static void test_undo_of_all(void **state)
{
	char *uprobes[] = {(char *)"p:good /bin/true:0x1000", NULL};
	struct trace_event events[] = {
		{(char *)"sched", NULL, NULL, false},
		{(char *)GROUP, (char *)"good", (char *)"nosuchfield == 1", false},
	};
	struct trace_trigger triggers[] = {
		{(char *)"sched", (char *)"sched_switch", (char *)"stacktrace", false},
		{(char *)"sched", (char *)"sched_switch", (char *)"nosuch", false},
	};
	struct trace_config config = lib_config();

	config.uprobes = uprobes;
	config.events = events;
	config.n_events = 2;
	lib_assert_refused(&config, EINVAL, "cannot set filter of " GROUP ":good",
			   "Field not found");
	config.n_events = 1;
	config.triggers = triggers;
	config.n_triggers = 2;
	lib_assert_refused(&config, EINVAL, "(nosuch)", "/trigger");
}

/* Killed after making the probe and before the instance: the next start must get past it. */
static void test_leftover_probe(void **state)
{
	char *uprobes[] = {(char *)"p:first /bin/true:0x1000", NULL};
	struct trace_config config = lib_config();
	struct instance *instance;

	assert_int_equal(io_write_string_at(AT_FDCWD, TRACING "/dynamic_events",
					    "p:" GROUP "/first /bin/true:0x1000", O_APPEND),
			 0);
	config.uprobes = uprobes;
	instance = lib_create(&config);
	assert_int_equal(instance_destroy(instance, NULL), 0);
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, lib_set_up, lib_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REAL(test_hist_and_synthetic), REAL(test_uprobe),      REAL(test_uprobe_fires),
		REAL(test_refused_dynamic),    REAL(test_undo_of_all), REAL(test_leftover_probe),
	};

	return lib_run(tests, ARRAY_SIZE(tests));
}
