/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/config: which files count, drop-ins, masks, defaults; files that cannot be read */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>

#include <cmocka.h>

#include "basic/io.h"
#include "daemon/manager/check-config.h"
#include "tests/unit/config-dir.h"

#define TRACES "[Trace]\nEvent=a:b\n"

static void load(struct config_dir *dir, const char *complaints)
{
	assert_int_equal(config_dir_load(dir), 0);
	assert_string_equal(dir->complaints, complaints);
}

static void test_nothing(void **state)
{
	struct config_dir *dir = *state;

	load(dir, "");
	assert_int_equal(dir->config->n_sessions, 0);
	assert_string_equal(dir->config->instance_prefix, "flyrec.");
	assert_null(config_find(dir->config, "x"));
}

static void test_sessions_sorted(void **state)
{
	static const char *const names[] = {"A", "a", "a-b", "a_b", "b"};
	struct config_dir *dir = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *name = NULL;

		assert_true(asprintf(&name, "%s/sessions.d/%s.conf", i % 2 ? "usr" : "etc",
				     names[i]) > 0);
		config_dir_write(dir, name, TRACES);
	}
	/* not configuration files */
	config_dir_write(dir, "etc/sessions.d/README", "x");
	config_dir_write(dir, "etc/sessions.d/c.conf~", "x");
	config_dir_write(dir, "etc/sessions.d/c.conf.rpmsave", "x");
	config_dir_write(dir, "etc/sessions.d/.c.conf", "x");
	config_dir_write(dir, "etc/sessions.d/.conf", "x");
	load(dir, "");
	assert_int_equal(dir->config->n_sessions, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(dir->config->sessions[i]->name, names[i]);
	assert_string_equal(strrchr(config_dir_session(dir, "a")->path, 'u'),
			    "usr/sessions.d/a.conf");
}

static void test_session_names(void **state)
{
	/* 56 characters are the most */
	static const char longest[] = "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrst";
	struct config_dir *dir = *state;
	_cleanup_free_ char *name = NULL, *longer = NULL;

	assert_int_equal(strlen(longest), 56);
	assert_true(asprintf(&name, "etc/sessions.d/%s.conf", longest) > 0);
	assert_true(asprintf(&longer, "etc/sessions.d/%sx.conf", longest) > 0);
	config_dir_write(dir, name, TRACES);
	load(dir, "");
	config_dir_write(dir, longer, TRACES);
	config_dir_write(dir, "etc/sessions.d/a.b.conf", TRACES);
	config_dir_write(dir, "etc/sessions.d/a b.conf", TRACES);
	load(dir,
	     "e etc/sessions.d/a b.conf:0: not a name for a session: letters, digits, '_' and "
	     "'-', at most 56\n"
	     "e etc/sessions.d/a.b.conf:0: not a name for a session: letters, digits, '_' and "
	     "'-', at most 56\n"
	     "e etc/sessions.d/abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstx.conf:0: "
	     "not a name for a session: letters, digits, '_' and '-', at most 56\n");
	assert_int_equal(dir->config->n_sessions, 1);
}

static void test_vendor(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "usr/sessions.d/x.conf", TRACES "[Session]\nDescription=vendor\n");
	config_dir_write(dir, "usr/sessions.d/y.conf", TRACES "[Session]\nDescription=vendor\n");
	config_dir_write(dir, "usr/sessions.d/z.conf", "[Wibble\n");
	config_dir_write(dir, "etc/sessions.d/y.conf", TRACES "[Session]\nDescription=admin\n");
	config_dir_link(dir, "etc/sessions.d/z.conf", "/dev/null");
	load(dir, "");
	assert_int_equal(dir->config->n_sessions, 2);
	assert_string_equal(config_dir_session(dir, "x")->description, "vendor");
	assert_string_equal(config_dir_session(dir, "y")->description, "admin");
}

static void test_drop_ins(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "usr/sessions.d/x.conf", TRACES "[Session]\nDescription=main\n");
	config_dir_write(dir, "usr/sessions.d/x.conf.d/50-a.conf",
			 "[Session]\nDescription=usr 50\n[Trace]\nEvent=c:d\n");
	config_dir_write(dir, "etc/sessions.d/x.conf.d/40-a.conf",
			 "[Session]\nDescription=etc 40\n[Trace]\nBufferSize=1M\n");
	config_dir_write(dir, "etc/sessions.d/x.conf.d/60-a.txt", "nonsense");
	load(dir, "");
	assert_string_equal(config_dir_session(dir, "x")->description, "usr 50");
	assert_int_equal(config_dir_session(dir, "x")->trace.n_events, 2);
	assert_int_equal(config_dir_session(dir, "x")->trace.buffer_size, MIB);

	/* same name: the administrator's counts */
	config_dir_write(dir, "etc/sessions.d/x.conf.d/50-a.conf", "[Trace]\nEvent=\nEvent=e:f\n");
	load(dir, "");
	assert_string_equal(config_dir_session(dir, "x")->description, "etc 40");
	assert_int_equal(config_dir_session(dir, "x")->trace.n_events, 1);
	assert_string_equal(config_dir_session(dir, "x")->trace.events[0].system, "e");

	/* an error in a drop-in leaves the session out, at the drop-in's line */
	config_dir_write(dir, "etc/sessions.d/x.conf.d/60-b.conf", "\n[Trace]\nPid=x\n");
	load(dir, "e etc/sessions.d/x.conf.d/60-b.conf:3: Pid=x: not a process number\n");
	assert_null(config_find(dir->config, "x"));
}

static void test_masked_drop_in(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "usr/sessions.d/x.conf", TRACES);
	config_dir_write(dir, "usr/sessions.d/x.conf.d/50-a.conf", "[Trace]\nEvent=c:d\n");
	config_dir_link(dir, "etc/sessions.d/x.conf.d/50-a.conf", "/dev/null");
	load(dir, "");
	assert_int_equal(config_dir_session(dir, "x")->trace.n_events, 1);
}

static void test_stray_drop_ins(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "etc/sessions.d/shced.conf.d/50-a.conf", "[Trace]\nEvent=c:d\n");
	load(dir, "w etc/sessions.d/shced.conf.d:0: ignored, there is no shced.conf\n");
	assert_int_equal(dir->config->n_sessions, 0);
	config_dir_link(dir, "etc/sessions.d/shced.conf", "/dev/null");
	load(dir, "");
}

static void test_daemon(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "etc/flyrecd.conf",
			 "[Daemon]\nWorkers=3\nLogLevel=debug\nAdminGroup=wheel\n"
			 "InstancePrefix=t.\n[Storage]\nMaxUse=1G\nFlushSec=1s\n"
			 "[Snapshot]\nLast=30s\n");
	config_dir_write(dir, "etc/flyrecd.conf.d/10.conf", "[Daemon]\nWorkers=4\nLogLevel=\n");
	config_dir_write(dir, "usr/flyrecd.conf.d/20.conf", "[Daemon]\nAdminGroup=100\n");
	config_dir_write(dir, "etc/sessions.d/x.conf", TRACES);
	config_dir_write(dir, "etc/sessions.d/y.conf",
			 TRACES "[Storage]\nMaxUse=2G\nFlushSec=2s\n"
				"FlushSec=\n[Snapshot]\nLast=0\n");
	load(dir, "");
	assert_int_equal(dir->config->workers, 4);
	assert_int_equal(dir->config->log_level, LOG_INFO);
	assert_string_equal(dir->config->admin_group, "100");
	assert_string_equal(dir->config->instance_prefix, "t.");
	assert_int_equal(config_dir_session(dir, "x")->storage.max_use, GIB);
	assert_int_equal(config_dir_session(dir, "x")->storage.flush_usec, USEC_PER_SEC);
	assert_int_equal(config_dir_session(dir, "x")->snapshot.last_usec, 30 * USEC_PER_SEC);
	/* its own; an empty value goes back to that of flyrecd.conf */
	assert_int_equal(config_dir_session(dir, "y")->storage.max_use, 2 * GIB);
	assert_int_equal(config_dir_session(dir, "y")->storage.flush_usec, USEC_PER_SEC);
	assert_int_equal(config_dir_session(dir, "y")->snapshot.last_usec, 0);
}

/* A wrong value leaves the default; the sessions are not to blame */
static void test_daemon_faults(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "etc/flyrecd.conf",
			 "[Daemon]\nWorkers=257\nLogLevel=loud\nAdminGroup=a b\n"
			 "InstancePrefix=.x\nInstancePrefix=a/b\nWrokers=1\n"
			 "[Storage]\nMaxUse=1X\nDirect=7\n[Trace]\nEvent=a:b\n");
	config_dir_write(dir, "etc/sessions.d/x.conf", TRACES);
	load(dir,
	     "e etc/flyrecd.conf:2: Workers=257: out of range, must be 0 to 256\n"
	     "e etc/flyrecd.conf:3: LogLevel=loud: must be one of error, warning, notice, info, debug\n"
	     "e etc/flyrecd.conf:4: AdminGroup=a b: not the name or number of a group\n"
	     "e etc/flyrecd.conf:5: InstancePrefix=.x: must be letters, digits, '_', '-' and '.', "
	     "not begin with '.', and be at most 64 long\n"
	     "e etc/flyrecd.conf:6: InstancePrefix=a/b: must be letters, digits, '_', '-' and '.', "
	     "not begin with '.', and be at most 64 long\n"
	     "w etc/flyrecd.conf:7: unknown key 'Wrokers' in [Daemon], did you mean 'Workers'?\n"
	     "e etc/flyrecd.conf:9: MaxUse=1X: not a size, a number of bytes or with K, M, G or T\n"
	     "e etc/flyrecd.conf:10: Direct=7: must be one of auto, yes, no\n"
	     "w etc/flyrecd.conf:11: unknown section [Trace], it belongs in a session's file\n");
	assert_int_equal(dir->n_faults, 9);
	assert_int_equal(dir->config->log_level, LOG_INFO);
	assert_string_equal(dir->config->instance_prefix, "flyrec.");
	assert_true(config_dir_session(dir, "x")->storage.max_use == STORAGE_DEFAULT);
}

/* --- files that cannot be read */

static void test_unreadable(void **state)
{
	struct config_dir *dir = *state;
	_cleanup_free_ char *fifo = NULL;

	config_dir_write(dir, "etc/sessions.d/dir.conf/x", "");
	config_dir_link(dir, "etc/sessions.d/gone.conf", "/nonexistent/file");
	config_dir_link(dir, "etc/sessions.d/zero.conf", "/dev/zero");
	config_dir_link(dir, "etc/sessions.d/loop.conf", "loop.conf");
	assert_true(asprintf(&fifo, "%s/etc/sessions.d/fifo.conf", dir->path) > 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	config_dir_write(dir, "etc/sessions.d/good.conf", TRACES);
	config_dir_write(dir, "etc/sessions.d/good.conf.d/x.conf/x", "");
	config_dir_write(dir, "etc/flyrecd.conf/x", "");
	assert_int_equal(config_dir_load(dir), 0);
	assert_non_null(strstr(dir->complaints, "e etc/flyrecd.conf:0: this is a directory"));
	assert_non_null(
		strstr(dir->complaints, "e etc/sessions.d/dir.conf:0: this is a directory"));
	assert_non_null(
		strstr(dir->complaints, "e etc/sessions.d/fifo.conf:0: not a regular file\n"));
	assert_non_null(strstr(dir->complaints,
			       "e etc/sessions.d/gone.conf:0: cannot open: No such "
			       "file or directory\n"));
	assert_non_null(strstr(dir->complaints, "e etc/sessions.d/good.conf.d/x.conf:0: this is a "
						"directory, not a file\n"));
	assert_non_null(strstr(dir->complaints,
			       "e etc/sessions.d/loop.conf:0: cannot open: Too many "
			       "levels of symbolic links\n"));
	assert_non_null(
		strstr(dir->complaints, "e etc/sessions.d/zero.conf:0: not a regular file\n"));
	assert_null(strstr(dir->complaints, "traces nothing"));
	assert_int_equal(dir->config->n_sessions, 0);
}

static void test_not_directories(void **state)
{
	struct config_dir *dir = *state;

	config_dir_write(dir, "etc/sessions.d", "x");
	config_dir_write(dir, "etc/flyrecd.conf.d", "x");
	load(dir, "e etc/flyrecd.conf.d:0: cannot read the directory: Not a directory\n"
		  "e etc/sessions.d:0: cannot read the directory: Not a directory\n"
		  "e etc/sessions.d:0: cannot read the directory: Not a directory\n");
}

/* As another user, since root may read everything */
static void test_no_permission(void **state)
{
	struct config_dir *dir = *state;
	_cleanup_free_ char *path = NULL;
	int status;
	pid_t pid;

	config_dir_write(dir, "etc/sessions.d/x.conf", TRACES);
	assert_true(asprintf(&path, "%s/etc/sessions.d/x.conf", dir->path) > 0);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(chmod(dir->path, 0755), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && seteuid(65534) < 0)
			_exit(2);
		if (config_dir_load(dir) < 0)
			_exit(3);
		_exit(strcmp(dir->complaints, "e etc/sessions.d/x.conf:0: cannot open: Permission "
					      "denied\n") == 0
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_config_dir_missing(void **state)
{
	struct config_dir *dir = *state;
	_cleanup_free_ char *etc = NULL, *away = NULL;

	assert_true(asprintf(&etc, "%s/etc", dir->path) > 0);
	assert_true(asprintf(&away, "%s/away", dir->path) > 0);
	config_dir_write(dir, "usr/sessions.d/x.conf", TRACES);
	assert_int_equal(rename(etc, away), 0);
	load(dir, "w etc:0: cannot read the directory: No such file or directory\n");
	assert_non_null(config_find(dir->config, "x"));
	config_dir_write(dir, "etc", "a file");
	assert_int_equal(config_dir_load(dir), -ENOTDIR);
	assert_string_equal(dir->complaints,
			    "e etc:0: cannot read the directory: Not a directory\n");
	assert_null(dir->config);
}

/* --- flyrecd --check-config */

static int run_check_config(struct config_dir *dir, char **ret_stderr)
{
	_cleanup_free_ char *etc = NULL, *out = NULL;
	int saved = dup(STDERR_FILENO), fd, status;

	assert_true(asprintf(&etc, "%s/etc", dir->path) > 0);
	assert_true(asprintf(&out, "%s/stderr", dir->path) > 0);
	fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(saved >= 0 && fd >= 0);
	(void)dup2(fd, STDERR_FILENO);
	status = check_config(etc);
	(void)dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	assert_int_equal(io_read_file_at(AT_FDCWD, out, ret_stderr, NULL), 0);
	return status;
}

static void test_check_config(void **state)
{
	static const struct {
		const char *text;
		int status;
		const char *complaint;
	} cases[] = {
		{TRACES, 0, NULL},
		{TRACES "Evnt=a:b\n", 1, "3: unknown key 'Evnt' in [Trace], did you mean 'Event'?"},
		{TRACES "Pid=x\n", 1, "3: Pid=x: not a process number"},
	};
	struct config_dir *dir = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = NULL, *expected = NULL;

		config_dir_write(dir, "etc/sessions.d/x.conf", cases[i].text);
		assert_int_equal(run_check_config(dir, &text), cases[i].status);
		assert_true(asprintf(&expected, "%s/etc/sessions.d/x.conf:%s\n", dir->path,
				     cases[i].complaint ? cases[i].complaint : "") > 0);
		assert_string_equal(text, cases[i].complaint ? expected : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_sessions_sorted, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_session_names, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_vendor, config_dir_setup, config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_drop_ins, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_masked_drop_in, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_stray_drop_ins, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_daemon, config_dir_setup, config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_daemon_faults, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_not_directories, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_no_permission, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_config_dir_missing, config_dir_setup,
						config_dir_teardown),
		cmocka_unit_test_setup_teardown(test_check_config, config_dir_setup,
						config_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
