/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/log.h"
#include "convert/convert.h"
#include "ctl/command.h"
#include "ctl/confine.h"

typedef int import_function(struct import *import, struct fault *why);

const char *const import_formats[] = {"gdb-tfile", "qemu4v", NULL};
static import_function *const functions[] = {import_gdb_tfile, import_qemu4v};

static volatile sig_atomic_t stopped_by; /* a signal, 0: none */

static void on_signal(int number)
{
	stopped_by = number;
}

/*
 * A file under a temporary name (where the file system has none without a name) must not be left
 * when we are stopped: reads end with EINTR, and the way out is that of any error.
 */
static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction old, action = {.sa_handler = on_signal};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &old) >= 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(numbers[i], &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

static int open_input(struct import *import, const char *path, struct fault *why)
{
	bool standard = strcmp(path, "-") == 0;
	struct stat st;

	import->name = standard ? "standard input" : path;
	import->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
			      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (import->fd < 0 || fstat(import->fd, &st) < 0)
		return fault_errno(why, -errno, "%s: cannot open", import->name);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return fault_set(why, -EINVAL, "%s: neither a file nor a pipe", import->name);
	(void)posix_fadvise(import->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

static enum ctl_status import_file(const struct ctl *ctl, import_function *run, const char *path)
{
	struct import import = {
		.options = &ctl->convert,
		.fd = -EBADF,
		.out = {.fd = -EBADF},
		.stop = &stopped_by,
	};
	struct fault why = {};
	int r = open_input(&import, path, &why);

	if (r >= 0)
		r = out_file_choose(&import.out, ctl->output, import.fd, "import", OUT_FILE_BINARY,
				    &why);
	if (r >= 0 &&
	    ctl_confine_writer(import.out.kind == OUT_FILE_NEW ? import.out.path : NULL, NULL) < 0)
		r = fault_set(&why, -EPERM, "%s: cannot import", import.name);
	if (r >= 0)
		r = run(&import, &why);
	event_file_free(import.file);
	close_p(&import.fd);
	out_file_done(&import.out);
	if (stopped_by && r == -EINTR) {
		(void)signal((int)stopped_by, SIG_DFL);
		(void)raise((int)stopped_by);
	}
	if (r < 0)
		log_error("%s", why.text);
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

enum ctl_status verb_import(struct ctl *ctl, int argc, char **argv)
{
	int format;

	if (argc != 2)
		return ctl_complain(ctl, "one FILE is wanted, or - for standard input");
	if (ctl->host)
		return ctl_complain(ctl, "works on local files, not with -H");
	format = command_format(ctl, "import", import_formats);
	if (format < 0)
		return CTL_USAGE;
	if (!ctl->output)
		return ctl_complain(ctl, "--output= is missing");
	catch_signals();
	return import_file(ctl, functions[format], argv[1]);
}
