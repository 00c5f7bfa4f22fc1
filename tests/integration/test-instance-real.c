/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recorder/instance on the real tracefs: each setting, event and trigger of [Trace] that this
 * kernel can do, each refusal with its text and nothing left behind. Dynamic events are
 * test-instance-dynamic's.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <tracefs.h>

#include "instance-lib.h"

/* --- settings */

static void test_defaults(void **state)
{
	const struct trace_config config = lib_config();
	struct instance *instance = lib_create(&config);
	struct fault why = {0};
	char **systems = NULL;
	int fd = -EBADF;

	lib_assert_file("tracing_on", "0");
	lib_assert_file("trace_clock", "[mono]");
	lib_assert_file("buffer_percent", "25");
	lib_assert_file("current_tracer", "nop");
	assert_int_equal(instance_subbuf_size(instance), 4096);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_int_equal(instance_trace(instance, true, &why), 0);
	lib_assert_file("tracing_on", "1");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_int_equal(instance_systems(instance, &systems, &why), 0);
	assert_null(systems);
	assert_int_equal(instance_open_cpu(instance, 0, &fd, &why), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(instance_open_cpu(instance, 4000, &fd, &why), -ENOENT);
	assert_non_null(strstr(why.text, "per_cpu/cpu4000/trace_pipe_raw"));
	lib_destroy(instance);
}

/* For a moment, so that something happens there */
static void run_on_cpu_0(void)
{
	cpu_set_t all, first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(first), &first), 0);
	usleep(50000);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void test_settings(void **state)
{
	char *options[] = {(char *)"nooverwrite", (char *)"record-tgid", (char *)"verbose",
			   (char *)"noverbose",	  (char *)"record-cmd",	 NULL};
	struct trace_config config = lib_config();
	struct instance *instance;
	struct cpu_stats stats;
	struct fault why = {0};

	config.clock = (char *)"boot";
	config.subbuf_size = 16 * KIB;
	config.buffer_size = 2 * MIB;
	config.buffer_percent = 50;
	config.cpus = (char *)"0";
	config.options = options;
	instance = lib_create(&config);
	assert_int_equal(instance_subbuf_size(instance), 16384);
	lib_assert_file("events/header_page", "size:16368");
	lib_assert_file("buffer_subbuf_size_kb", "16");
	lib_assert_file("trace_clock", "[boot]");
	lib_assert_file("buffer_percent", "50");
	lib_assert_file("tracing_cpumask", "1");
	lib_assert_file("trace_options", "\nnooverwrite\n");
	lib_assert_file("trace_options", "\nrecord-tgid\n");
	lib_assert_file("trace_options", "\nnoverbose\n");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);

	/* only the CPU asked for traces, and the times are of the clock asked for */
	lib_write("events/sched/enable", "1", false);
	assert_int_equal(instance_trace(instance, true, &why), 0);
	run_on_cpu_0();
	assert_int_equal(instance_trace(instance, false, &why), 0);
	assert_int_equal(instance_read_stats(instance, 0, &stats), 0);
	assert_true(stats.entries > 0 && stats.bytes > 0);
	assert_true(stats.oldest_usec > 0 && stats.oldest_usec <= stats.now_usec);
	if (instance_n_cpus(instance) > 1) {
		assert_int_equal(instance_read_stats(instance, 1, &stats), 0);
		assert_int_equal(stats.entries, 0);
	}
	lib_destroy(instance);
}

/* The kernel rounds sizes; a check must not take that for meddling. */
static void test_sizes(void **state)
{
	static const struct {
		uint64_t buffer, subbuf;
	} sizes[] = {
		{1, 0},
		{4 * KIB, 0},
		{10000, 0},
		{MIB + 1, 8 * KIB},
		{64 * KIB, 64 * KIB},
		{3 * MIB, 5 * KIB},
	};
	struct trace_config config = lib_config();
	struct fault why = {0};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct instance *instance;

		config.buffer_size = sizes[i].buffer;
		config.subbuf_size = sizes[i].subbuf;
		instance = lib_create(&config);
		assert_true(instance_subbuf_size(instance) >= sizes[i].subbuf);
		if (instance_check(instance, &why) != INSTANCE_OK)
			fail_msg("%zu: %s", i, why.text);
		lib_destroy(instance);
	}
}

/* Function tracing is refused by some kernels, this project's build host among them. */
static void refused_or_works(const struct trace_config *config, const char *text1,
			     const char *text2)
{
	struct instance *instance = NULL;
	struct fault why = {0};
	int r = instance_create(lib_name(), GROUP, config, &instance, &why);

	if (r < 0) {
		lib_assert_refused(config, -r, text1, text2);
		return;
	}
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	lib_destroy(instance);
}

static void test_refused_settings(void **state)
{
	char *option[] = {(char *)"nosuchoption", NULL};
	char *function[] = {(char *)"vfs_read", NULL};
	struct trace_config config;

	config = lib_config();
	config.clock = (char *)"sundial";
	lib_assert_refused(&config, EINVAL, "cannot set the clock to sundial", "/trace_clock: ");
	config = lib_config();
	config.buffer_percent = 101;
	lib_assert_refused(&config, EINVAL, "/buffer_percent: Invalid argument", "101");
	config = lib_config();
	config.cpus = (char *)"0,4000";
	lib_assert_refused(&config, ERANGE, "CPUs=0,4000", "this machine has CPUs 0 to");
	config = lib_config();
	config.options = option;
	lib_assert_refused(&config, EINVAL, "nosuchoption", "/trace_options: Invalid argument");
	config = lib_config();
	config.tracer = (char *)"nosuchtracer";
	lib_assert_refused(&config, EINVAL, "nosuchtracer", "/available_tracers");
	config = lib_config();
	config.buffer_size = TIB;
	lib_assert_refused(&config, ENOMEM, "BufferSize=", "more than half");
	config = lib_config();
	config.function_filter = function;
	refused_or_works(&config, "cannot filter functions", "/set_ftrace_filter: ");
}

static void test_function_tracer(void **state)
{
	struct trace_config config = lib_config();

	config.tracer = (char *)"function";
	refused_or_works(&config, "cannot set the tracer to function", "_tracer");
}

/* --- events */

static void test_events(void **state)
{
	struct trace_event events[] = {
		{(char *)"sched", (char *)"sched_switch", (char *)"prev_pid == 0", false},
		{(char *)"irq", NULL, NULL, false},
		{(char *)"nosuchsystem", NULL, NULL, true},
		{(char *)"sched", (char *)"nosuchevent", (char *)"x == 1", true},
	};
	struct trace_config config = lib_config();
	struct instance *instance;
	struct fault why = {0};
	char **systems = NULL;

	config.events = events;
	config.n_events = ARRAY_SIZE(events);
	instance = lib_create(&config);
	lib_assert_file("events/sched/sched_switch/filter", "prev_pid == 0");
	lib_assert_file("events/sched/sched_switch/enable", "1");
	lib_assert_file("events/sched/sched_waking/enable", "0");
	lib_assert_file("events/irq/enable", "1");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_int_equal(instance_systems(instance, &systems, &why), 0);
	assert_int_equal(tracefs_list_size(systems), 2);
	lib_assert_has(systems, 0, "irq");
	lib_assert_has(systems, 1, "sched");
	tracefs_list_free(systems);
	lib_destroy(instance);
}

/* Two Event= lines about the same events: the later counts, and a check knows it */
static void test_overlapping_filters(void **state)
{
	struct trace_event events[] = {
		{(char *)"sched", (char *)"sched_switch", (char *)"prev_pid == 1", false},
		{(char *)"sched", NULL, (char *)"common_pid != 0", false},
		{(char *)"sched", (char *)"sched_waking", (char *)"pid == 7", false},
		{(char *)"sched", (char *)"sched_waking", NULL, false},
	};
	struct trace_config config = lib_config();
	struct instance *instance;
	struct fault why = {0};

	config.events = events;
	config.n_events = ARRAY_SIZE(events);
	instance = lib_create(&config);
	lib_assert_file("events/sched/sched_switch/filter", "common_pid != 0");
	lib_assert_file("events/sched/sched_waking/filter", "pid == 7");
	if (instance_check(instance, &why) != INSTANCE_OK)
		fail_msg("%s", why.text);
	lib_write("events/sched/filter", "0", false);
	assert_int_equal(instance_check(instance, &why), INSTANCE_REPAIRED);
	lib_assert_file("events/sched/sched_switch/filter", "common_pid != 0");
	lib_assert_file("events/sched/sched_waking/filter", "pid == 7");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	lib_destroy(instance);
}

static void test_refused_events(void **state)
{
	struct trace_event event = {(char *)"sched", (char *)"foo", NULL, false};
	struct trace_trigger trigger = {(char *)"sched", (char *)"foo", (char *)"stacktrace",
					false};
	struct trace_config config = lib_config();

	config.events = &event;
	config.n_events = 1;
	lib_assert_refused(&config, ENOENT, "this kernel has no event sched:foo", "Event=");
	event.name = NULL;
	event.system = (char *)"nosuchsystem";
	lib_assert_refused(&config, ENOENT, "no events of system nosuchsystem", "");
	event.system = (char *)"..";
	lib_assert_refused(&config, ENOENT, "no events of system ..", "");
	event = (struct trace_event){(char *)"sched", (char *)"sched_switch",
				     (char *)"prev_pid ==", false};
	lib_assert_refused(&config, EINVAL,
			   "cannot set filter of sched:sched_switch: " TRACING "/instances/",
			   "/events/sched/sched_switch/filter: Invalid argument: Invalid value");
	event.filter = (char *)"nosuchfield == 1";
	lib_assert_refused(&config, EINVAL, "Field not found in \"nosuchfield == 1\" at character",
			   "");
	event.name = NULL;
	lib_assert_refused(&config, EINVAL, "cannot set filter of sched: ",
			   "events/sched/filter: no event takes it");

	config.n_events = 0;
	config.triggers = &trigger;
	config.n_triggers = 1;
	lib_assert_refused(&config, ENOENT, "EventTrigger=sched:foo", "no event sched:foo");
	trigger.name = (char *)"sched_switch";
	trigger.trigger = (char *)"nosuchtrigger";
	lib_assert_refused(&config, EINVAL, "cannot set trigger of sched:sched_switch",
			   "/sched_switch/trigger: Invalid argument");
	trigger.trigger = (char *)"stacktrace if nosuchfield == 1";
	lib_assert_refused(&config, EINVAL, "/trigger: Invalid argument", "Field not found");
}

static void test_triggers(void **state)
{
	struct trace_trigger triggers[] = {
		{(char *)"sched", (char *)"sched_process_exit", (char *)"stacktrace", false},
		{(char *)"sched", (char *)"sched_process_exit", (char *)"enable_event:kmem:kfree:3",
		 false},
		{(char *)"sched", (char *)"nosuchevent", (char *)"stacktrace", true},
	};
	struct trace_event event = {(char *)"sched", (char *)"sched_process_exit", NULL, false};
	struct trace_config config = lib_config();
	_cleanup_free_ char *trace = NULL;
	struct instance *instance;
	struct fault why = {0};
	char **systems = NULL;
	pid_t pid;

	config.events = &event;
	config.n_events = 1;
	config.triggers = triggers;
	config.n_triggers = ARRAY_SIZE(triggers);
	instance = lib_create(&config);
	lib_assert_file("events/sched/sched_process_exit/trigger", "stacktrace:unlimited");
	lib_assert_file("events/sched/sched_process_exit/trigger", "enable_event:kmem:kfree");
	if (instance_check(instance, &why) != INSTANCE_OK)
		fail_msg("%s", why.text);
	assert_int_equal(instance_systems(instance, &systems, &why), 0);
	assert_int_equal(tracefs_list_size(systems), 2);
	lib_assert_has(systems, 0, "kmem");
	lib_assert_has(systems, 1, "sched");
	tracefs_list_free(systems);

	assert_int_equal(instance_trace(instance, true, &why), 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(instance_trace(instance, false, &why), 0);
	lib_trace(&trace);
	assert_non_null(strstr(trace, "sched_process_exit"));
	assert_non_null(strstr(trace, "<stack trace>"));
	/* the counter went down, which is no meddling */
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	lib_destroy(instance);
}

/* A session whose own trigger stops tracing must not have it switched on again. */
static void test_traceoff_trigger(void **state)
{
	struct trace_trigger trigger = {(char *)"sched", (char *)"sched_process_exit",
					(char *)"traceoff", false};
	struct trace_config config = lib_config();
	struct instance *instance;
	struct fault why = {0};
	pid_t pid;

	config.triggers = &trigger;
	config.n_triggers = 1;
	instance = lib_create(&config);
	assert_int_equal(instance_trace(instance, true, &why), 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	lib_assert_file("tracing_on", "0");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	lib_assert_file("tracing_on", "0");
	lib_destroy(instance);
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, lib_set_up, lib_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REAL(test_defaults),
		REAL(test_settings),
		REAL(test_sizes),
		REAL(test_refused_settings),
		REAL(test_function_tracer),
		REAL(test_events),
		REAL(test_overlapping_filters),
		REAL(test_refused_events),
		REAL(test_triggers),
		REAL(test_traceoff_trigger),
	};

	return lib_run(tests, ARRAY_SIZE(tests));
}
