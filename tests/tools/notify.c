/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See notify.h.
 */
#include "tests/tools/notify.h"

#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int notify_bind(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int one = 1, fd;

	if (strlen(path) >= sizeof(address.sun_path))
		errx(2, "Too long for a socket: %s", path);
	strcpy(address.sun_path, path);
	unlink(path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0)
		err(2, "Cannot make the socket %s", path);
	return fd;
}

static void take_control(const struct cmsghdr *c, struct notify_message *m)
{
	if (c->cmsg_level != SOL_SOCKET)
		return;
	if (c->cmsg_type == SCM_RIGHTS) {
		m->n_fds = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(m->fds, CMSG_DATA(c), m->n_fds * sizeof(int));
	} else if (c->cmsg_type == SCM_CREDENTIALS) {
		struct ucred cred;

		memcpy(&cred, CMSG_DATA(c), sizeof(cred));
		m->pid = cred.pid;
	}
}

int notify_receive(int fd, struct notify_message *ret_message)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * NOTIFY_MAX_FDS) +
			   CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {ret_message->text, sizeof(ret_message->text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	do {
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		if (errno == EAGAIN)
			return 0;
		err(2, "recvmsg");
	}
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		errx(2, "A message was too long or its fds could not be taken (RLIMIT_NOFILE)");
	ret_message->text[n] = 0;
	ret_message->pid = 0;
	ret_message->n_fds = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		take_control(c, ret_message);
	return 1;
}

void notify_close_fds(struct notify_message *message)
{
	for (unsigned int i = 0; i < message->n_fds; i++)
		close(message->fds[i]);
	message->n_fds = 0;
}
