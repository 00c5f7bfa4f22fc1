/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "daemon/plumbing/ship.h"

#define NAME "/ship"

int ship(const char *runtime_dir, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct iovec line[] = {{(char *)path, strlen(path)}, {(char *)"\n", 1}};
	_cleanup_close_ int fd = -EBADF;
	ssize_t sent;

	if (strlen(runtime_dir) + sizeof(NAME) > sizeof(address.sun_path))
		return -ENOENT; /* nobody can listen there */
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s" NAME, runtime_dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Refused: its unit was stopped, and has left the file behind */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	sent = writev(fd, line, ARRAY_SIZE(line));
	if (sent < 0)
		return -errno;
	return (size_t)sent == line[0].iov_len + 1 ? 0 : -EAGAIN;
}
