/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/tail-stream.h"

int tail_stream_open(sd_bus *bus, const char *session, int *ret_fd, char **ret_name,
		     struct fault *why)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_message_ sd_bus_message *where = NULL, *reply = NULL;
	const char *path = NULL;
	int r, fd;

	*ret_name = NULL;
	r = sd_bus_call_method(bus, NULL, BUS_PATH, BUS_MANAGER, "GetSession", &error, &where, "s",
			       session);
	if (r >= 0)
		r = sd_bus_message_read(where, "o", &path);
	if (r >= 0)
		r = sd_bus_call_method(bus, NULL, path, BUS_SESSION, "OpenTail", &error, &reply,
				       NULL);
	if (r < 0 && error.name)
		*ret_name = strdup(error.name);
	if (r < 0)
		return error.message ? fault_set(why, r, "%s", error.message)
				     : fault_errno(why, r, "cannot ask flyrecd");
	r = sd_bus_message_read(reply, "h", &fd);
	if (r >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* the first is the message's */
		r = fd < 0 ? -errno : 0;
	}
	if (r < 0)
		return fault_errno(why, r, "cannot make sense of flyrecd's answer");
	*ret_fd = fd;
	return 0;
}

static int take_fd(struct msghdr *message)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EBADF;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int tail_stream_receive(int fd, struct tail_message **ret, int *ret_fd)
{
	const size_t room = sizeof(struct tail_message) + TAIL_CPUS_MAX * sizeof(uint64_t);
	_cleanup_free_ struct tail_message *message = malloc(room);
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = message, .iov_len = room};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes),
	};
	_cleanup_close_ int passed = -EBADF;
	ssize_t n;

	if (!message)
		return -ENOMEM;
	n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	passed = take_fd(&m);
	if ((size_t)n < sizeof(*message) || message->n_cpus > TAIL_CPUS_MAX ||
	    (size_t)n != sizeof(*message) + message->n_cpus * sizeof(uint64_t) ||
	    (message->type == TAIL_SEGMENT) != (passed >= 0))
		return -EBADMSG;
	*ret = TAKE_PTR(message);
	*ret_fd = TAKE_FD(passed);
	return 1;
}

void tail_stream_arrived(int fd)
{
	(void)send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}
