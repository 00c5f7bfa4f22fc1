/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "ctl/verbs.h"

static int connect_socket(const char *runtime_dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, n;

	n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", runtime_dir);
	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* Return: 1 moved some, 0 the end, or negative errno */
static int move(int from, int to)
{
	char buffer[16384];
	ssize_t n = read(from, buffer, sizeof(buffer));
	int r;

	if (n <= 0)
		return n < 0 && errno != ECONNRESET ? -errno : 0;
	r = io_write_all(to, buffer, (size_t)n);
	return r < 0 ? r : 1;
}

static int bridge(int fd)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = fd, .events = POLLIN}};

	for (;;) {
		int r;

		if (poll(fds, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (fds[1].revents) {
			r = move(fd, STDOUT_FILENO);
			if (r <= 0)
				return r;
		}
		if (fds[0].revents) {
			r = move(STDIN_FILENO, fd);
			if (r <= 0)
				return r;
		}
	}
}

enum ctl_status verb_stdio_bridge(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_close_ int fd = connect_socket(ctl->runtime_dir);
	int r = fd < 0 ? fd : bridge(fd);

	if (r < 0)
		(void)fprintf(stderr, "flyrecctl: %s/control: %s\n", ctl->runtime_dir,
			      strerror(-r));
	return r < 0 ? CTL_FAILED : CTL_DONE;
}
