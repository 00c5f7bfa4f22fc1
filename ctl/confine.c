/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "basic/fault-point.h"
#include "basic/log.h"
#include "basic/macro.h"
#include "ctl/confine.h"

#define NOBODY 65534 /* fixed in the kernel, too */

/* At their end sanitizers look into /proc and stop threads */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* What a process does with descriptors, memory, threads and time that it has */
static const int calls[] = {
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev),
	SCMP_SYS(lseek),
	SCMP_SYS(_llseek),
	SCMP_SYS(copy_file_range),
	SCMP_SYS(splice),
	SCMP_SYS(sendfile),
	SCMP_SYS(sendfile64),
	SCMP_SYS(fallocate),
	SCMP_SYS(ftruncate),
	SCMP_SYS(ftruncate64),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(fadvise64),
	SCMP_SYS(fadvise64_64),
	SCMP_SYS(arm_fadvise64_64),
	SCMP_SYS(fstat),
	SCMP_SYS(fstat64),
	SCMP_SYS(newfstatat),
	SCMP_SYS(fstatat64),
	SCMP_SYS(statx),
	SCMP_SYS(fcntl),
	SCMP_SYS(fcntl64),
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(close),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(ppoll_time64),
	SCMP_SYS(mmap),
	SCMP_SYS(mmap2),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(futex),
	SCMP_SYS(futex_time64),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(membarrier),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(tgkill),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_gettime64),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(clock_nanosleep_time64),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	SCMP_SYS(prlimit64),
	SCMP_SYS(ugetrlimit),
	SCMP_SYS(sysinfo),
	SCMP_SYS(uname),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* and with names, where Landlock allows it */
static const int file_calls[] = {
	SCMP_SYS(open),	      SCMP_SYS(openat),	    SCMP_SYS(openat2),	SCMP_SYS(stat),
	SCMP_SYS(stat64),     SCMP_SYS(lstat),	    SCMP_SYS(lstat64),	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(linkat),	    SCMP_SYS(rename),	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),  SCMP_SYS(unlink),	    SCMP_SYS(unlinkat), SCMP_SYS(fstatfs),
	SCMP_SYS(fstatfs64),  SCMP_SYS(getdents64),
};

static int add_calls(scmp_filter_ctx filter, const int *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, list[i], 0);

		if (r < 0 && r != -EDOM) /* not of this architecture */
			return r;
	}
	return 0;
}

/* Other calls fail as for lack of rights, which a library that tries one can live with */
static int filter_calls(bool files)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return -ENOMEM;
	r = add_calls(filter, calls, ARRAY_SIZE(calls));
	if (r >= 0 && files)
		r = add_calls(filter, file_calls, ARRAY_SIZE(file_calls));
	if (r >= 0) /* isatty(); TIOCSTI would put commands into the terminal */
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_EQ, TCGETS));
	if (r >= 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
				     SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG));
	if (r >= 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	/* a kernel without */
	return r == -ENOSYS || r == -EINVAL || r == -ECANCELED ? 0 : r;
}

static int become_nobody(void)
{
	if (geteuid() != 0 && getuid() != 0)
		return 0;
	/* in a user namespace that has no such user root is none */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return -errno;
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
		return -errno;
	if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
		return -errno;
	return 0;
}

static int confine(const struct confine_path *paths, size_t n, bool files)
{
	int r;

	tzset();
	if (SANITIZED)
		return 0;
	r = confine_no_new_privs();
	if (r >= 0)
		r = confine_files(paths, n);
	if (r >= 0 && !files)
		r = become_nobody();
	if (r >= 0)
		r = filter_calls(files);
	if (r >= 0)
		fault_point("file-confined");
	return r < 0 ? log_error_errno(r, "Failed to give up rights: %m") : 0;
}

int ctl_confine(void)
{
	return confine(NULL, 0, false);
}

int ctl_confine_but(const struct confine_path *paths, size_t n)
{
	return confine(paths, n, true);
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
	return ctl_confine_but(paths, n);
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
		r = but ? ctl_confine_but(&path, 1) : ctl_confine();
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
