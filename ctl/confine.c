/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "basic/fault-point.h"
#include "basic/log.h"
#include "basic/macro.h"
#include "ctl/confine.h"

static int confine(const struct confine_path *paths, size_t n, bool files)
{
	int r;

	tzset();
	if (CONFINE_SANITIZED)
		return 0;
	r = confine_no_new_privs();
	if (r >= 0)
		r = confine_files(paths, n);
	if (r >= 0 && !files)
		r = confine_user();
	if (r >= 0)
		r = confine_calls(files);
	if (r >= 0)
		fault_point("file-confined");
	return r < 0 ? log_error_errno(r, "Failed to give up rights: %m") : 0;
}

int ctl_confine(void)
{
	return confine(NULL, 0, false);
}

int ctl_confine_writer(const char *output, const char *read)
{
	const unsigned all = CONFINE_READ | CONFINE_WRITE | CONFINE_MAKE;
	const char *temporary = getenv("TMPDIR");
	_cleanup_free_ char *folder = strdup(output ? output : "");
	struct confine_path paths[3];
	size_t n = 0;
	char *slash;

	if (!folder)
		return log_error_errno(-ENOMEM, "Failed to give up rights: %m");
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	paths[n++] = (struct confine_path){temporary && *temporary ? temporary : "/var/tmp", all};
	if (output)
		paths[n++] = (struct confine_path){slash ? folder : ".", all};
	if (read)
		paths[n++] = (struct confine_path){read, CONFINE_READ};
	return confine(paths, n, true);
}

int ctl_confined(const char *name, const char *but, int (*run)(void *userdata), void *userdata)
{
	const struct confine_path path = {but, CONFINE_READ};
	int status, r;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid < 0)
		return log_error_errno(-errno, "%s: cannot start a process: %m", name);
	if (pid == 0) {
		r = but ? confine(&path, 1, true) : ctl_confine();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user would take it away again */
		if (r >= 0)
			r = run(userdata);
		_exit(r < 0 || fflush(stdout) != 0 ? 127 : r);
	}
	do
		r = waitpid(pid, &status, 0) < 0 ? -errno : 0;
	while (r == -EINTR);
	if (r < 0)
		return log_error_errno(r, "%s: cannot wait for a process: %m", name);
	if (!WIFEXITED(status)) {
		log_error("%s: the process that reads it died by signal %d", name,
			  WTERMSIG(status));
		return -EBADMSG;
	}
	return WEXITSTATUS(status) == 127 ? -EIO : WEXITSTATUS(status);
}
