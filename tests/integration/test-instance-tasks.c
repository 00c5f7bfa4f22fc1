/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pid=, Unit= and task names on the real tracefs: exactly the tasks asked for are traced, their
 * children too, and nothing at all while there are none. And the tracefs itself: not mounted, no
 * permission.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <tracefs.h>

#include "instance-lib.h"
#include "recorder/saved-cmdlines.h"
#include "recorder/tracefs.h"
#include "recorder/unit-group.h"

static struct trace_event openat_event = {(char *)"syscalls", (char *)"sys_enter_openat", NULL,
					  false};

/* --- pids */

/* A child that waits, then opens a file and has a child of its own do so */
struct child {
	pid_t pid;
	int go;
};

static struct child start_child(void)
{
	struct child child;
	int pipe_fds[2];
	char c;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	child.pid = fork();
	if (child.pid == 0) {
		close(pipe_fds[1]);
		if (read(pipe_fds[0], &c, 1) != 1)
			_exit(1);
		close(open("/flyrec-test-parent", O_RDONLY | O_CLOEXEC));
		if (fork() == 0) {
			close(open("/flyrec-test-grandchild", O_RDONLY | O_CLOEXEC));
			_exit(0);
		}
		_exit(wait(NULL) > 0 ? 0 : 1);
	}
	close(pipe_fds[0]);
	child.go = pipe_fds[1];
	return child;
}

static void finish_child(struct child child)
{
	int status;

	assert_int_equal(write(child.go, "x", 1), 1);
	close(child.go);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	assert_int_equal(status, 0);
}

/* Lines of the trace that are events, not comments */
static unsigned count_lines(const char *trace, const char *containing)
{
	unsigned n = 0;

	for (; *trace; trace += strcspn(trace, "\n"), trace += *trace == '\n') {
		const char *hit = strstr(trace, containing);

		n += *trace != '#' && hit && hit < trace + strcspn(trace, "\n");
	}
	return n;
}

static void test_pid(void **state)
{
	_cleanup_free_ char *trace = NULL;
	struct trace_config config = lib_config();
	struct child child = start_child();
	uint32_t pids[] = {(uint32_t)child.pid};
	struct instance *instance;
	struct fault why = {0};
	char comm[32];

	config.events = &openat_event;
	config.n_events = 1;
	config.pids = pids;
	config.n_pids = 1;
	instance = lib_create(&config);
	lib_assert_file("trace_options", "\nevent-fork\n");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_int_equal(instance_trace(instance, true, &why), 0);
	close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	finish_child(child);
	/* all traced tasks are gone, and still nothing else is traced */
	close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	assert_int_equal(instance_trace(instance, false, &why), 0);
	lib_trace(&trace);
	(void)snprintf(comm, sizeof(comm), "-%d ", (int)child.pid);
	assert_int_equal(count_lines(trace, comm), 1);
	assert_int_equal(count_lines(trace, "sys_openat("), 2);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	lib_assert_file("set_event_pid", "4194304");
	lib_destroy(instance);
}

static void *open_in_thread(void *go)
{
	char c;

	if (read(*(int *)go, &c, 1) == 1)
		close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	return NULL;
}

/* The kernel's list is of threads: those that a process has already must be in it. */
static void test_pid_threads(void **state)
{
	_cleanup_free_ char *trace = NULL;
	struct trace_config config = lib_config();
	uint32_t pids[] = {(uint32_t)getpid()};
	struct instance *instance;
	struct fault why = {0};
	pthread_t thread;
	int go[2];

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &go[0]), 0);
	config.events = &openat_event;
	config.n_events = 1;
	config.pids = pids;
	config.n_pids = 1;
	instance = lib_create(&config);
	lib_write("tracing_on", "1", false);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	lib_trace(&trace);
	assert_int_equal(instance_trace(instance, false, &why), 0);
	/* the thread's, and our own of the file "trace" */
	assert_int_equal(count_lines(trace, "sys_openat("), 2);
	close(go[0]);
	close(go[1]);
	lib_destroy(instance);
}

/* --- units */

static char *find_hierarchy(void)
{
	_cleanup_free_ char *text = NULL;
	char **dirs = NULL, *root = NULL;

	assert_int_equal(io_read_file_at(AT_FDCWD, "/proc/self/mountinfo", &text, NULL), 0);
	assert_int_equal(unit_group_parse_mounts(text, &dirs), 0);
	if (dirs && access(dirs[0], W_OK) == 0)
		root = strdup(dirs[0]);
	tracefs_list_free(dirs);
	return root;
}

static char *make_cgroup(const char *above, const char *name, const char *suffix)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s%s", above, name, suffix) > 0);
	assert_int_equal(mkdir(path, 0755), 0);
	return path;
}

static void enter(const char *cgroup, pid_t pid)
{
	_cleanup_free_ char *path = NULL;
	char text[16];

	assert_true(asprintf(&path, "%s/cgroup.procs", cgroup) > 0);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	assert_int_equal(io_write_string_at(AT_FDCWD, path, text, 0), 0);
}

/* Not running: no error, and nothing is traced */
static void assert_quiet(struct instance *instance)
{
	_cleanup_free_ char *trace = NULL;
	struct fault why = {0};

	lib_assert_file("set_event_pid", "4194304\n");
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_int_equal(instance_trace(instance, true, &why), 0);
	close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	lib_trace(&trace);
	assert_int_equal(count_lines(trace, "sys_openat("), 0);
}

/* The unit's process is in a control group of its own below the unit's. */
/* A write waits for all CPUs, with the event loop behind it: there is none where no process is new
 */
static void assert_refresh_writes_nothing(struct instance *instance)
{
	_cleanup_close_ int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	_cleanup_free_ char *path = NULL;
	struct inotify_event event;
	struct fault why;

	assert_true(asprintf(&path, "/proc/self/fd/%d/set_event_pid", instance_dir_fd(instance)) >
		    0);
	assert_true(inotify_add_watch(fd, path, IN_MODIFY) >= 0);
	assert_int_equal(instance_refresh_pids(instance, &why), 0);
	assert_int_equal(read(fd, &event, sizeof(event)), -1);
	assert_int_equal(errno, EAGAIN);
}

static void test_unit(void **state)
{
	_cleanup_free_ char *root = find_hierarchy(), *name = NULL, *trace = NULL;
	char *slice, *unit, *below, *units[] = {NULL, NULL};
	struct trace_config config = lib_config();
	struct instance *instance;
	struct fault why = {0};
	struct child child;

	if (!root)
		skip();
	assert_true(asprintf(&name, "%s.service", lib_name()) > 0);
	units[0] = name;
	config.events = &openat_event;
	config.n_events = 1;
	config.units = units;
	instance = lib_create(&config);
	assert_quiet(instance);
	assert_int_equal(instance_refresh_pids(instance, &why), 1);
	assert_non_null(strstr(why.text, name));

	child = start_child();
	slice = make_cgroup(root, lib_name(), ".slice");
	unit = make_cgroup(slice, name, "");
	below = make_cgroup(unit, "below", "");
	enter(below, child.pid);
	assert_int_equal(instance_refresh_pids(instance, &why), 0);
	assert_int_equal(instance_check(instance, &why), INSTANCE_OK);
	assert_refresh_writes_nothing(instance);
	finish_child(child);
	assert_int_equal(rmdir(below) | rmdir(unit) | rmdir(slice), 0);
	free(below);
	free(unit);
	free(slice);
	lib_trace(&trace);
	assert_int_equal(count_lines(trace, "sys_openat("), 2);
	assert_int_equal(instance_refresh_pids(instance, &why), 1);
	lib_destroy(instance);
}

/* --- saved_cmdlines */

static unsigned cmdlines_size(void)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(io_read_file_at(AT_FDCWD, TRACING "/saved_cmdlines_size", &text, NULL), 0);
	return (unsigned)strtoul(text, NULL, 10);
}

static void test_saved_cmdlines(void **state)
{
	unsigned before = cmdlines_size(), old = 77, wanted = before + 1000;
	struct fault why = {0};

	/* as large as can be already, while some other recorder runs */
	if (wanted > 32768)
		skip();
	assert_int_equal(saved_cmdlines_raise(1, &old, &why), 0);
	assert_int_equal(old, 0);
	assert_int_equal(cmdlines_size(), before);

	assert_int_equal(saved_cmdlines_raise(wanted, &old, &why), 0);
	assert_int_equal(old, before);
	assert_true(cmdlines_size() >= wanted);
	/* somebody else made it larger still: left so */
	assert_int_equal(saved_cmdlines_restore(wanted / 100, old, &why), 0);
	assert_true(cmdlines_size() >= wanted);
	assert_int_equal(saved_cmdlines_restore(wanted, old, &why), 0);
	assert_int_equal(cmdlines_size(), before);
}

/* --- the machine's tracefs */

enum {
	UNMOUNTED,
	UNMOUNTED_CANNOT,
	NO_PERMISSION,
};

/* In a mount namespace of its own: what does tracefs_usable() say? */
static void usable_in_child(int what, int error, const char *text)
{
	struct fault why = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
		struct __user_cap_data_struct none[2] = {0};
		int r;

		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(2);
		if (what != NO_PERMISSION && umount2(TRACING, MNT_DETACH) < 0)
			_exit(3);
		/* with debugfs there would be a second way to it */
		if (what != NO_PERMISSION)
			(void)umount2("/sys/kernel/debug", MNT_DETACH);
		if (what == UNMOUNTED_CANNOT && syscall(SYS_capset, &header, none) < 0)
			_exit(4);
		if (what == NO_PERMISSION && setresuid(65534, 65534, 65534) < 0)
			_exit(5);
		r = tracefs_usable(&why);
		print_message("           %s\n", why.text);
		_exit(r == -error && strstr(why.text, text) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* a mount namespace takes CAP_SYS_ADMIN */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

static void test_usable(void **state)
{
	usable_in_child(UNMOUNTED, 0, "");
	usable_in_child(UNMOUNTED_CANNOT, EPERM, "no tracefs is mounted");
	usable_in_child(NO_PERMISSION, EACCES, "no permission for " TRACING " as user 65534");
}

static void test_kptr(void **state)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(io_read_file_at(AT_FDCWD, "/proc/sys/kernel/kptr_restrict", &text, NULL),
			 0);
	assert_int_equal(kptr_restricted(), text[0] == '2');
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, lib_set_up, lib_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REAL(test_pid),	   REAL(test_pid_threads),
		REAL(test_unit),   REAL(test_saved_cmdlines),
		REAL(test_usable), REAL(test_kptr),
	};

	return lib_run(tests, ARRAY_SIZE(tests));
}
