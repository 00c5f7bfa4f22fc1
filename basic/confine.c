/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "basic/confine.h"
#include "basic/macro.h"

/* Headers may be older than the kernel; only ever compared with what it says */
#define ACCESS_TRUNCATE	 (UINT64_C(1) << 14) /* ABI 3, Linux 6.2 */
#define ACCESS_IOCTL_DEV (UINT64_C(1) << 15) /* ABI 5, Linux 6.10 */

#define ABI_REFER     2 /* before it nothing can be renamed to another directory */
#define ABI_TRUNCATE  3
#define ABI_IOCTL_DEV 5

#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_MAKE                                                       \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |      \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |    \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_REFER)
/* Of which no rule gives any: somebody else might follow a symbolic link */
#define ACCESS_NEVER (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_SYM | ACCESS_IOCTL_DEV)
#define ACCESS_OF_FILES \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE)

int confine_no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static uint64_t known_access(long abi)
{
	uint64_t access = ACCESS_READ | ACCESS_MAKE | ACCESS_NEVER | LANDLOCK_ACCESS_FS_WRITE_FILE |
			  ACCESS_TRUNCATE;

	if (abi < ABI_IOCTL_DEV)
		access &= ~ACCESS_IOCTL_DEV;
	if (abi < ABI_TRUNCATE)
		access &= ~ACCESS_TRUNCATE;
	return access;
}

static uint64_t wanted_access(unsigned rights)
{
	return (rights & CONFINE_READ ? ACCESS_READ : 0) |
	       (rights & CONFINE_WRITE ? LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE : 0) |
	       (rights & CONFINE_MAKE ? ACCESS_MAKE : 0);
}

static int allow(int ruleset_fd, uint64_t known, const struct confine_path *path)
{
	_cleanup_close_ int fd = open(path->path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = {
		.allowed_access = wanted_access(path->rights) & known,
		.parent_fd = fd,
	};
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ACCESS_OF_FILES;
	return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

int confine_files(const struct confine_path *paths, size_t n)
{
	struct landlock_ruleset_attr attr;
	_cleanup_close_ int fd = -EBADF;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int r = 0;

	/* EOPNOTSUPP: built in, but not among lsm=; EPERM: by a seccomp filter */
	if (abi < 0 && errno != ENOSYS && errno != EOPNOTSUPP && errno != EPERM)
		return -errno;
	if (abi < ABI_REFER)
		return CONFINE_E_UNSUPPORTED;
	attr = (struct landlock_ruleset_attr){.handled_access_fs = known_access(abi)};
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = allow(fd, attr.handled_access_fs, &paths[i]);
	if (r >= 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	return r;
}
