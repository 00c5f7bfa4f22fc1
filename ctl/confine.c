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

/*
 * What a process does with descriptors, memory, threads and time that it has. Names, as not all
 * architectures and libraries know all of them.
 */
static const char calls[] =
	"read readv pread64 preadv write writev pwrite64 pwritev lseek _llseek "
	"copy_file_range splice sendfile sendfile64 fallocate ftruncate ftruncate64 fsync "
	"fdatasync fadvise64 fadvise64_64 arm_fadvise64_64 fstat fstat64 newfstatat fstatat64 "
	"statx fcntl fcntl64 dup dup2 dup3 close poll ppoll ppoll_time64 mmap mmap2 munmap "
	"mremap mprotect madvise brk futex futex_time64 set_robust_list rseq clone clone3 "
	"set_tid_address sched_yield sched_getaffinity membarrier getpid gettid getuid "
	"geteuid getgid getegid tgkill rt_sigaction rt_sigprocmask rt_sigreturn sigreturn "
	"sigaltstack restart_syscall clock_gettime clock_gettime64 clock_nanosleep "
	"clock_nanosleep_time64 gettimeofday time getrandom prlimit64 ugetrlimit sysinfo "
	"uname exit exit_group";

/* and with names, where Landlock allows it */
static const char file_calls[] =
	"open openat openat2 stat stat64 lstat lstat64 readlink readlinkat linkat rename "
	"renameat renameat2 unlink unlinkat fstatfs fstatfs64 getdents64";

static int add_calls(scmp_filter_ctx filter, const char *names)
{
	for (size_t n; *names; names += n + strspn(names + n, " ")) {
		char name[32];
		int number, r;

		n = strcspn(names, " ");
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, names);
		number = seccomp_syscall_resolve_name(name);
		if (number == __NR_SCMP_ERROR)
			continue;
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
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
	r = add_calls(filter, calls);
	if (r >= 0 && files)
		r = add_calls(filter, file_calls);
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
