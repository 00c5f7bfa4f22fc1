/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "basic/in-root.h"
#include "basic/io.h"

int in_root_open(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;

	/* EAGAIN: something was renamed meanwhile, and the kernel could not vouch for ".." */
	for (unsigned tries = 0; tries < 100; tries++) {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

int in_root_read(int root_fd, const char *path, size_t limit, char **ret)
{
	_cleanup_close_ int fd = in_root_open(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r = fd < 0 ? fd : io_read_regular(fd, limit, &data, &size);

	if (r < 0)
		return r;
	while (size > 0 && strchr(" \t\r\n", data[size - 1]))
		size--;
	data[size] = '\0';
	*ret = TAKE_PTR(data);
	return 0;
}

int in_root_link(int root_fd, const char *path, char **ret)
{
	_cleanup_close_ int fd = in_root_open(root_fd, path, O_PATH | O_NOFOLLOW);
	char target[PATH_MAX];
	const char *slash;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = readlinkat(fd, "", target, sizeof(target) - 1);
	if (n < 0)
		return errno == ENOENT ? -EINVAL : -errno; /* "": no link at all */
	target[n] = '\0';
	slash = strrchr(target, '/');
	*ret = strdup(slash ? slash + 1 : target);
	return *ret ? 0 : -ENOMEM;
}
