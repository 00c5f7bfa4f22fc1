/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "daemon/control/control-relay.h"
#include "daemon/plumbing/guard.h"

#define CHUNK (16 * KIB)

struct relay {
	int peer_fd, inner_fd;
	sd_event_source *peer_source, *inner_source;
	const struct relay_owner *owner;
	void *userdata;
	struct relay_frame frame;
	bool finished;
	size_t begin, end; /* of what waits in bytes */
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

/* Between two messages, or before the first */
static bool at_boundary(const struct relay_frame *f)
{
	return f->authenticated && f->left == 0 && f->have == 0;
}

int relay_frame_check(struct relay_frame *f, const uint8_t *bytes, size_t size, size_t *ret_size)
{
	size_t at = 0;
	int r = 0;

	do {
		size_t n = 1;

		if (at == size)
			break;
		if (!f->authenticated) {
			r = check_auth(f, bytes[at]);
		} else if (f->left > 0) {
			n = MIN(size - at, f->left);
			f->left -= n;
		} else {
			n = MIN(size - at, sizeof(f->header) - f->have);
			memcpy(f->header + f->have, bytes + at, n);
			f->have += (uint32_t)n;
			if (f->have == sizeof(f->header))
				r = check_header(f);
		}
		at += n;
	} while (r >= 0 && !at_boundary(f));
	*ret_size = at;
	return r;
}

/* --- handing on */

/* Nothing more comes: sd-bus sees the end */
static void finish(struct relay *r)
{
	r->finished = true;
	(void)sd_event_source_set_enabled(r->peer_source, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(r->inner_source, SD_EVENT_OFF);
	(void)shutdown(r->inner_fd, SHUT_WR);
}

/*
 * sd-bus makes room for what it answers, however much of that waits already. So it gets a message
 * when it has read the one before and nothing waits. (Nor does it look at a message that it reads
 * together with the end of the greeting, until more comes.)
 */
static bool may_hand_on(const struct relay *r)
{
	int unread = 0;

	if (!at_boundary(&r->frame))
		return true;
	if (ioctl(r->inner_fd, SIOCOUTQ, &unread) >= 0 && unread > 0)
		return false;
	return r->owner->is_idle(r->userdata);
}

/* A message, or the part of one that has come. Return: 0 or negative errno. */
static int hand_on(struct relay *r)
{
	struct relay_frame next = r->frame;
	size_t size;
	ssize_t n;
	int e = relay_frame_check(&next, r->bytes + r->begin, r->end - r->begin, &size);

	if (e < 0) {
		finish(r);
		r->owner->on_cut(r->userdata, e);
		return e;
	}
	n = send(r->inner_fd, r->bytes + r->begin, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			finish(r);
		return -errno;
	}
	(void)relay_frame_check(&r->frame, r->bytes + r->begin, (size_t)n, &size);
	r->begin += (size_t)n;
	return 0;
}

/*
 * Before each wait for events: whatever has made sd-bus idle was one. The peer is read from only
 * when all that it sent has been handed on; what else it sends waits in its socket.
 */
static int on_prepare(sd_event_source *source, void *userdata)
{
	struct relay *r = userdata;
	bool idle = !r->finished && may_hand_on(r);

	while (idle && r->begin < r->end)
		idle = hand_on(r) >= 0 && may_hand_on(r);
	(void)sd_event_source_set_enabled(r->peer_source, idle ? SD_EVENT_ON : SD_EVENT_OFF);
	return 0;
}

/* sd-bus has hung up */
static int on_inner(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	finish(userdata);
	return 0;
}

static int on_peer(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct relay *r = userdata;
	ssize_t n = guard_receive(r->peer_fd, r->bytes, sizeof(r->bytes));

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		finish(r);
		if (n < 0)
			r->owner->on_cut(r->userdata, (int)n);
		return 0;
	}
	r->begin = 0;
	r->end = (size_t)n;
	return 0; /* on_prepare() goes on */
}

static int watch(struct relay *r, sd_event *event, int64_t priority)
{
	int e = sd_event_add_io(event, &r->peer_source, r->peer_fd, EPOLLIN, on_peer, r);

	/* This one is always on: it is there for on_prepare() */
	if (e >= 0)
		e = sd_event_add_io(event, &r->inner_source, r->inner_fd, 0, on_inner, r);
	if (e >= 0)
		e = sd_event_source_set_prepare(r->inner_source, on_prepare);
	if (e >= 0)
		e = sd_event_source_set_priority(r->peer_source, priority);
	return e < 0 ? e : sd_event_source_set_priority(r->inner_source, priority);
}

int relay_new(sd_event *event, int64_t priority, int peer_fd, const struct relay_owner *owner,
	      void *userdata, struct relay **ret, int *ret_fd)
{
	struct relay *r = calloc(1, sizeof(*r));
	int pair[2], e;

	if (!r)
		return -ENOMEM;
	r->owner = owner;
	r->userdata = userdata;
	r->peer_fd = peer_fd;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(r);
		return -errno;
	}
	r->inner_fd = pair[0];
	guard_refuse(peer_fd);
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

bool relay_greeted(const struct relay *r)
{
	return r->frame.authenticated;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	sd_event_source_disable_unref(r->peer_source);
	sd_event_source_disable_unref(r->inner_source);
	close_p(&r->inner_fd);
	free(r);
}
