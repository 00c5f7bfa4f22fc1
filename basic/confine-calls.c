/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "basic/confine.h"
#include "basic/macro.h"

#define NOBODY 65534 /* fixed in the kernel, too */

/*
 * What a process does with descriptors, memory, threads and time that it has. Names, as not all
 * architectures and libraries know all of them.
 */
static const char calls[] =
	"read readv pread64 preadv recvmsg write writev pwrite64 pwritev lseek _llseek "
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
int confine_calls(bool files)
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

int confine_user(void)
{
	uid_t uid = geteuid();

	/* also files' own, which may be another one */
	if (uid != 0 && getuid() != 0)
		return setresuid(uid, uid, uid) < 0 ? -errno : 0;
	/* in a user namespace that has no such user root is none */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return -errno;
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
		return -errno;
	if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
		return -errno;
	return 0;
}

int confine_child(pid_t parent)
{
	int r = 0;

	if (!CONFINE_SANITIZED) {
		r = confine_no_new_privs();
		if (r >= 0)
			r = confine_files(NULL, 0);
		if (r >= 0)
			r = confine_user();
	}
	/* another user would have taken it away again; the parent may be gone by now */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r >= 0 && getppid() != parent)
		return -ECANCELED;
	return CONFINE_SANITIZED || r < 0 ? r : confine_calls(false);
}
