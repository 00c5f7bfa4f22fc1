/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recorder/instance on the real tracefs while somebody else writes into it: each change is
 * noticed, named and repaired; a removed instance is noticed; an instance left by an earlier
 * process is adopted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <tracefs.h>

#include "instance-lib.h"

static struct trace_event events[] = {
	{(char *)"sched", (char *)"sched_switch", (char *)"prev_pid == 0", false},
	{(char *)"irq", NULL, NULL, false},
	{(char *)"timer", NULL, (char *)"common_pid != 0", false},
	{(char *)"sched", (char *)"sched_process_exit", NULL, false},
};
static struct trace_trigger triggers[] = {
	{(char *)"sched", (char *)"sched_process_exit", (char *)"stacktrace", false},
};
static char *options[] = {(char *)"nooverwrite", NULL};
static uint32_t pids[] = {1};

static struct trace_config full_config(void)
{
	struct trace_config config = lib_config();

	config.events = events;
	config.n_events = ARRAY_SIZE(events);
	config.triggers = triggers;
	config.n_triggers = ARRAY_SIZE(triggers);
	config.options = options;
	config.pids = pids;
	config.n_pids = 1;
	return config;
}

static const struct meddling {
	const char *file, *text;
	bool truncate;
	const char *says;
	const char *want; /* in the file after the repair */
} meddlings[] = {
	{"tracing_on", "0", false, "tracing had been switched off", "1"},
	{"trace_clock", "local", false, "the clock had been set to local", "[mono]"},
	{"buffer_size_kb", "1408", false, "buffer size had been set to 14", "10"},
	{"per_cpu/cpu0/buffer_size_kb", "100", false, "buffer size had been set to ", "10"},
	{"buffer_subbuf_size_kb", "16", false, "sub-buffer size had been set to 16384", "4"},
	{"buffer_percent", "0", false, "buffer_percent had been set to 0", "25"},
	{"tracing_cpumask", "1", false, "tracing_cpumask had been set to 1", ""},
	{"trace_options", "overwrite", false, "option nooverwrite had been undone",
	 "\nnooverwrite\n"},
	{"trace_options", "noevent-fork", false, "option event-fork had been undone",
	 "\nevent-fork\n"},
	{"set_event_pid", "", true, "set_event_pid had been changed", "4194304"},
	{"set_event_pid", "2", true, "set_event_pid had been changed", "4194304"},
	{"events/sched/sched_switch/filter", "0", false,
	 "filter of sched:sched_switch had been set to none", "prev_pid == 0"},
	{"events/timer/filter", "0", false, "filter of timer:", ""},
	{"events/sched/sched_process_exit/trigger", "!stacktrace", false,
	 "triggers of sched:sched_process_exit had been removed", "stacktrace"},
	{"events/sched/sched_switch/enable", "0", false, "sched:sched_switch had been disabled",
	 "1"},
	/* with a trigger on it the file then says "0*" */
	{"events/sched/sched_process_exit/enable", "0", false,
	 "sched:sched_process_exit had been disabled", "1"},
	{"events/irq/irq_handler_entry/enable", "0", false, "irq had been disabled", "1"},
	{"events/enable", "0", false, "irq had been disabled", "X"},
	{"set_event", "", true, "irq had been disabled", "sched:sched_switch"},
};

static void test_each(void **state)
{
	const struct trace_config config = full_config();
	struct instance *instance = lib_create(&config);
	struct fault why = {0};

	assert_int_equal(instance_trace(instance, true, &why), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(meddlings); i++) {
		const struct meddling *m = &meddlings[i];
		int expected;

		if (strcmp(m->file, "tracing_cpumask") == 0 && instance_n_cpus(instance) == 1)
			continue;
		lib_write(m->file, m->text, m->truncate);
		/* these two empty the ring buffer */
		expected = strcmp(m->file, "trace_clock") == 0 ||
					   strcmp(m->file, "buffer_subbuf_size_kb") == 0
				   ? INSTANCE_EMPTIED
				   : INSTANCE_REPAIRED;
		if (instance_check(instance, &why) != expected)
			fail_msg("%s: not noticed (%s)", m->file, why.text);
		print_message("           %s\n", why.text);
		if (!strstr(why.text, m->says))
			fail_msg("%s: %s", m->file, why.text);
		lib_assert_file(m->file, m->want);
		if (instance_check(instance, &why) != INSTANCE_OK)
			fail_msg("%s: still wrong: %s", m->file, why.text);
	}
	lib_destroy(instance);
}

/* What `trace-cmd reset` writes, in its order */
static void test_reset(void **state)
{
	static const struct {
		const char *file, *text;
		bool truncate;
	} writes[] = {
		{"current_tracer", "nop", false},
		{"events/sched/sched_process_exit/trigger", "!stacktrace", false},
		{"events/enable", "0", false},
		{"events/sched/filter", "0", false},
		{"events/irq/filter", "0", false},
		{"set_event_pid", "", true},
		{"trace_clock", "local", false},
		{"buffer_size_kb", "1408", false},
		{"tracing_cpumask", "ffffffff", false},
		{"tracing_on", "1", false},
	};
	const struct trace_config config = full_config();
	struct instance *instance = lib_create(&config);
	struct fault why = {0};

	assert_int_equal(instance_trace(instance, false, &why), 0);
	for (size_t i = 0; i < ARRAY_SIZE(writes); i++)
		if (strcmp(writes[i].file, "tracing_cpumask") != 0)
			lib_write(writes[i].file, writes[i].text, writes[i].truncate);
	assert_int_equal(instance_check(instance, &why), INSTANCE_EMPTIED);
	print_message("           %s\n", why.text);
	assert_non_null(strstr(why.text, "clock"));
	assert_non_null(strstr(why.text, "buffer size"));
	assert_non_null(strstr(why.text, "set_event_pid"));
	assert_non_null(strstr(why.text, "filter of sched:sched_switch"));
	assert_non_null(strstr(why.text, "triggers"));
	assert_non_null(strstr(why.text, "irq had been disabled"));
	assert_non_null(strstr(why.text, "tracing had been switched on"));
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	lib_assert_file("tracing_on", "0");
	lib_destroy(instance);
}

static char *directory(void)
{
	char *path;

	assert_true(asprintf(&path, TRACING "/instances/%s", lib_name()) > 0);
	return path;
}

static void test_removed(void **state)
{
	const struct trace_config config = full_config();
	struct instance *instance = lib_create(&config);
	_cleanup_free_ char *path = directory();
	struct fault why = {0};

	assert_int_equal(rmdir(path), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_GONE);
	assert_non_null(strstr(why.text, "has been removed"));
	assert_int_equal(mkdir(path, 0750), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_GONE);
	assert_non_null(strstr(why.text, "made anew by somebody else"));

	/* the new one is not ours: nothing is written to it, nor is it removed */
	assert_true(instance_trace(instance, false, &why) < 0);
	lib_assert_file("tracing_on", "1");
	assert_int_equal(instance_destroy(instance, &why), 0);
	lib_assert_file("tracing_on", "1");
	assert_int_equal(rmdir(path), 0);
}

static void test_exists(void **state)
{
	const struct trace_config config = lib_config();
	struct instance *instance = lib_create(&config), *second = NULL;
	struct fault why = {0};

	assert_int_equal(instance_create(lib_name(), GROUP, &config, &second, &why), -EEXIST);
	assert_null(second);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	lib_destroy(instance);
}

/* Busy: the fault names the file and who has it */
static void test_busy(void **state)
{
	const struct trace_config config = lib_config();
	struct instance *instance = lib_create(&config);
	_cleanup_free_ char *path = directory();
	struct fault why = {0};
	char who[32];
	int fd = -EBADF;

	assert_int_equal(instance_open_cpu(instance, 0, &fd, &why), 0);
	assert_int_equal(instance_destroy(instance, &why), -EBUSY);
	print_message("           %s\n", why.text);
	(void)snprintf(who, sizeof(who), "process %d ", (int)getpid());
	assert_non_null(strstr(why.text, "per_cpu/cpu0/trace_pipe_raw"));
	assert_non_null(strstr(why.text, who));
	assert_non_null(strstr(why.text, path));
	close(fd);
	assert_int_equal(rmdir(path), 0);
}

/* A reader that closes its file in time is no fault */
static void test_busy_for_a_moment(void **state)
{
	const struct trace_config config = lib_config();
	struct instance *instance = lib_create(&config);
	int ready[2], fd;
	char c;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (instance_open_cpu(instance, 0, &fd, NULL) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		usleep(60000);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	lib_destroy(instance);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
}

static void test_attach(void **state)
{
	char *uprobes[] = {(char *)"p:first /bin/true:0x1000", NULL};
	struct trace_config config = full_config();
	struct instance *instance = NULL;
	struct fault why = {0};

	config.uprobes = uprobes;
	assert_int_equal(instance_attach(lib_name(), GROUP, &config, &instance, &why), -ENOENT);
	instance = lib_create(&config);
	assert_int_equal(instance_trace(instance, true, &why), 0);
	instance_free(instance);

	/* as the next process finds it: tracing goes on */
	instance = NULL;
	assert_int_equal(instance_attach(lib_name(), GROUP, &config, &instance, &why), 0);
	lib_assert_file("tracing_on", "1");
	if (instance_check(instance, &why) != INSTANCE_OK)
		fail_msg("%s", why.text);
	assert_int_equal(instance_subbuf_size(instance), 4096);
	instance_free(instance);

	/* somebody meddled while nobody looked */
	lib_write("events/sched/sched_switch/enable", "0", false);
	assert_int_equal(instance_attach(lib_name(), GROUP, &config, &instance, &why), 0);
	lib_assert_file("events/sched/sched_switch/enable", "0");
	assert_int_equal(instance_trace(instance, true, &why), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_REPAIRED);
	lib_assert_file("events/sched/sched_switch/enable", "1");
	lib_destroy(instance);
}

/* The configuration changed meanwhile: the old one's probes go, too */
static void test_attach_to_destroy(void **state)
{
	char *uprobes[] = {(char *)"p:first /bin/true:0x1000", NULL};
	struct trace_config old = full_config();
	const struct trace_config new = lib_config();
	struct instance *instance = NULL;
	struct fault why = {0};

	old.uprobes = uprobes;
	instance_free(lib_create(&old));
	assert_int_equal(instance_attach(lib_name(), GROUP, &new, &instance, &why), 0);
	lib_destroy(instance);
}

/* Cheap enough to be done every few seconds: well below 5 ms even here */
static void test_cost(void **state)
{
	const struct trace_config config = full_config();
	struct instance *instance = lib_create(&config);
	struct timespec begin, end;
	struct fault why = {0};
	double usec;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < 100; i++)
		assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	usec = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
	       1e3 / 100;
	print_message("           a check takes %.0f us of CPU time\n", usec);
	assert_true(usec < 5000);
	lib_destroy(instance);
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, lib_set_up, lib_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REAL(test_each),    REAL(test_reset),
		REAL(test_removed), REAL(test_exists),
		REAL(test_busy),    REAL(test_busy_for_a_moment),
		REAL(test_attach),  REAL(test_attach_to_destroy),
		REAL(test_cost),
	};

	return lib_run(tests, ARRAY_SIZE(tests));
}
