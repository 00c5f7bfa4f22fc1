/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "daemon/control-relay.h"

#define CHUNK	(16 * KIB)
#define FDS_MAX 16

struct relay {
	int peer_fd, inner_fd;
	sd_event_source *peer_source, *inner_source;
	void (*on_cut)(void *userdata, int error);
	void *userdata;
	struct relay_frame frame;
	int fds[FDS_MAX]; /* they go with the first of the bytes */
	size_t n_fds;
	size_t begin, end; /* of what waits in bytes */
	size_t hold;	   /* here the greeting ends, and sd-bus has not read it yet; or 0 */
	uint8_t bytes[CHUNK];
};

/* --- the frame */

static int check_auth(struct relay_frame *f, uint8_t byte)
{
	static const char begin[] = "\nBEGIN\r\n";

	if (++f->skipped > RELAY_AUTH_MAX)
		return -EMSGSIZE;
	memmove(f->line, f->line + 1, sizeof(f->line) - 1);
	f->line[sizeof(f->line) - 1] = (char)byte;
	f->authenticated = memcmp(f->line, begin, sizeof(f->line)) == 0;
	return 0;
}

/* Fixed part: order, type, flags, version, body length, serial, length of the header fields */
static int check_header(struct relay_frame *f)
{
	uint32_t body, fields;
	uint64_t size;

	memcpy(&body, f->header + 4, sizeof(body));
	memcpy(&fields, f->header + 12, sizeof(fields));
	if (f->header[0] == 'l') {
		body = le32toh(body);
		fields = le32toh(fields);
	} else if (f->header[0] == 'B') {
		body = be32toh(body);
		fields = be32toh(fields);
	} else {
		return -EBADMSG;
	}
	if (f->header[3] != 1)
		return -EBADMSG;
	size = round_up(fields, 8) + body;
	if (size > RELAY_MESSAGE_MAX)
		return -EMSGSIZE;
	f->left = size;
	f->have = 0;
	return 0;
}

int relay_frame_check(struct relay_frame *f, const uint8_t *bytes, size_t size)
{
	int r = 0;

	while (size > 0 && r >= 0) {
		size_t n = 1;

		if (!f->authenticated) {
			r = check_auth(f, *bytes);
		} else if (f->left > 0) {
			n = MIN(size, f->left);
			f->left -= n;
		} else {
			n = MIN(size, sizeof(f->header) - f->have);
			memcpy(f->header + f->have, bytes, n);
			f->have += (uint32_t)n;
			if (f->have == sizeof(f->header))
				r = check_header(f);
		}
		bytes += n;
		size -= n;
	}
	return r;
}

/* --- handing on */

static void close_fds(struct relay *r)
{
	for (size_t i = 0; i < r->n_fds; i++)
		close(r->fds[i]);
	r->n_fds = 0;
}

/* Nothing more comes: sd-bus sees the end */
static void finish(struct relay *r)
{
	(void)sd_event_source_set_enabled(r->peer_source, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(r->inner_source, SD_EVENT_OFF);
	(void)shutdown(r->inner_fd, SHUT_WR);
	close_fds(r);
}

static void take_fds(struct relay *r, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (r->n_fds < FDS_MAX)
				r->fds[r->n_fds++] = fd;
			else
				close(fd);
		}
	}
}

static ssize_t receive(struct relay *r)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec iov = {.iov_base = r->bytes, .iov_len = sizeof(r->bytes)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(r->peer_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return -errno;
	take_fds(r, &message);
	return n;
}

static ssize_t pass_on(struct relay *r)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = {};
	size_t end = r->hold > r->begin ? r->hold : r->end;
	struct iovec iov = {.iov_base = r->bytes + r->begin, .iov_len = end - r->begin};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (r->n_fds > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * r->n_fds);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * r->n_fds);
		memcpy(CMSG_DATA(&control.align), r->fds, sizeof(int) * r->n_fds);
	}
	n = sendmsg(r->inner_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	close_fds(r);
	r->begin += (size_t)n;
	return n;
}

/* sd-bus has not read what we gave it: wait until it has, and take nothing more meanwhile */
static void wait_for(struct relay *r, bool inner)
{
	(void)sd_event_source_set_enabled(r->peer_source, inner ? SD_EVENT_OFF : SD_EVENT_ON);
	(void)sd_event_source_set_enabled(r->inner_source, inner ? SD_EVENT_ON : SD_EVENT_OFF);
}

/*
 * sd-bus forgets to look at messages that it reads together with the end of the greeting, until
 * more comes: so they come after it has read that.
 */
static bool greeting_unread(struct relay *r)
{
	int unread = 0;

	if (r->hold == 0 || r->begin < r->hold)
		return false;
	if (ioctl(r->inner_fd, SIOCOUTQ, &unread) >= 0 && unread > 0)
		return true;
	r->hold = 0;
	return false;
}

static int push(struct relay *r)
{
	while (r->begin < r->end) {
		ssize_t n = greeting_unread(r) ? -EAGAIN : pass_on(r);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			wait_for(r, true);
		else if (n < 0)
			finish(r);
		if (n < 0)
			return 0;
	}
	wait_for(r, false);
	return 0;
}

static int on_inner(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	return push(userdata);
}

static int on_peer(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct relay *r = userdata;
	ssize_t n = receive(r);
	int error;

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		finish(r);
		return 0;
	}
	error = 0;
	r->hold = 0;
	for (size_t i = 0; !r->frame.authenticated && i < (size_t)n && error >= 0; i++) {
		error = relay_frame_check(&r->frame, r->bytes + i, 1);
		r->hold = i + 1;
	}
	if (error >= 0)
		error = relay_frame_check(&r->frame, r->bytes + r->hold, (size_t)n - r->hold);
	if (!r->frame.authenticated)
		r->hold = 0;
	if (error < 0) {
		finish(r);
		r->on_cut(r->userdata, error);
		return 0;
	}
	r->begin = 0;
	r->end = (size_t)n;
	return push(r);
}

static int watch(struct relay *r, sd_event *event, int64_t priority)
{
	int e = sd_event_add_io(event, &r->peer_source, r->peer_fd, EPOLLIN, on_peer, r);

	if (e >= 0)
		e = sd_event_add_io(event, &r->inner_source, r->inner_fd, EPOLLOUT, on_inner, r);
	if (e >= 0)
		e = sd_event_source_set_priority(r->peer_source, priority);
	if (e >= 0)
		e = sd_event_source_set_priority(r->inner_source, priority);
	if (e >= 0)
		e = sd_event_source_set_enabled(r->inner_source, SD_EVENT_OFF);
	return e;
}

int relay_new(sd_event *event, int64_t priority, int peer_fd,
	      void (*on_cut)(void *userdata, int error), void *userdata, struct relay **ret,
	      int *ret_fd)
{
	struct relay *r = calloc(1, sizeof(*r));
	int pair[2], e;

	if (!r)
		return -ENOMEM;
	r->on_cut = on_cut;
	r->userdata = userdata;
	r->inner_fd = -EBADF;
	r->peer_fd = fcntl(peer_fd, F_DUPFD_CLOEXEC, 3);
	if (r->peer_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		e = -errno;
		relay_free(r);
		return e;
	}
	r->inner_fd = pair[0];
	e = watch(r, event, priority);
	if (e < 0) {
		close(pair[1]);
		relay_free(r);
		return e;
	}
	*ret = r;
	*ret_fd = pair[1];
	return 0;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	sd_event_source_disable_unref(r->peer_source);
	sd_event_source_disable_unref(r->inner_source);
	close_fds(r);
	close_p(&r->peer_fd);
	close_p(&r->inner_fd);
	free(r);
}
