/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "daemon/plumbing/guard.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/session-internal.h"
#include "engine/clock.h"
#include "formats/tail-message.h"

/*
 * Two rounds close together, so that what the first one found is shown soon, then a pause: at most
 * a tenth of a second until an event is shown. A round that finds nothing needs no second one.
 */
#define CONFIRM_USEC (20 * 1000)
#define PAUSE_USEC   (80 * 1000)
#define IDLE_USEC    (100 * 1000)
/* For latencies alone. Each round writes a sub-buffer of each CPU, however little is in it */
#define WATCH_USEC (900 * 1000)

/* Rounds to be told of after something came, and to one who is new */
#define ROUNDS_TOLD 2

struct session_tail {
	struct session_tail *next;
	struct session *session;
	int fd;
	uid_t uid;
	bool refuses; /* guard_refuses() */
	sd_event_source *source;
	uint64_t segment; /* it was told of this one; 0: of none */
	bool busy;	  /* and has not come to it */
	unsigned rounds;  /* still to be told of */
	bool watch;	  /* it looks for latencies, and is told of all */
	uint64_t skipped_segments, skipped_bytes;
};

static void tail_free(struct session_tail *t)
{
	LIST_REMOVE(t->session->tails.list, t);
	sd_event_source_disable_unref(t->source);
	guard_close(t->session->env->guard, t->fd, t->refuses, t->uid);
	free(t);
}

/* Return: 0 or negative errno, -EAGAIN: not now, it does not read */
static int send_message(const struct session_tail *t, const struct tail_message *message,
			size_t size, int pass_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec iov = {.iov_base = (void *)message, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass_fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control.bytes);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &pass_fd, sizeof(pass_fd));
	}
	return sendmsg(t->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* For reading only, and an open file of its own: how a reader seeks is its own affair */
static int reopen(int fd)
{
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return r < 0 ? -errno : r;
}

/* The file that is written now, if it has not been told of it and has come to the last one */
static int announce(struct session_tail *t)
{
	const struct session *s = t->session;
	const struct tail_message message = {
		.type = TAIL_SEGMENT,
		.segment = s->tails.segment,
		.skipped_segments = t->skipped_segments,
		.skipped_bytes = t->skipped_bytes,
	};
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (t->busy || t->segment == s->tails.segment)
		return 0;
	fd = reopen(drain_file_fd(s->rec.drain));
	r = fd < 0 ? fd : send_message(t, &message, sizeof(message), fd);
	if (r < 0)
		return r;
	t->segment = s->tails.segment;
	t->busy = true;
	t->skipped_segments = t->skipped_bytes = 0;
	return 0;
}

static int on_tail(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct session_tail *t = userdata;
	char drop[64];
	ssize_t n = guard_receive(fd, drop, sizeof(drop));

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		tail_free(t);
		return 0;
	}
	t->busy = false;
	(void)announce(t); /* else after the next round */
	return 0;
}

/* Return: a message with the sizes of all CPUs, or NULL */
static struct tail_message *describe_round(const struct session *s, size_t *ret_size)
{
	unsigned n_cpus = drain_n_cpus(s->rec.drain);
	size_t size = sizeof(struct tail_message) + n_cpus * sizeof(uint64_t);
	struct tail_message *message = calloc(1, size);

	if (!message)
		return NULL;
	message->type = TAIL_ROUND;
	message->n_cpus = n_cpus;
	message->segment = s->tails.segment;
	message->skipped_bytes = s->tails.began_nsec;
	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		struct drain_counts counts;

		drain_cpu(s->rec.drain, cpu, &counts);
		message->sizes[cpu] = counts.published | (counts.behind ? TAIL_BEHIND : 0);
	}
	*ret_size = size;
	return message;
}

static void tell_round(struct session *s, bool more)
{
	_cleanup_free_ struct tail_message *message = NULL;
	size_t size;

	for (struct session_tail *t = s->tails.list; t; t = t->next) {
		if (more)
			t->rounds = ROUNDS_TOLD;
		if (announce(t) < 0 || (t->rounds == 0 && !t->watch))
			continue;
		if (!message)
			message = describe_round(s, &size);
		if (message && send_message(t, message, size, -EBADF) >= 0 && t->rounds > 0)
			t->rounds--;
	}
}

static bool may_begin_round(const struct session *s)
{
	/* What is held belongs to the next file; while workers change files nobody knows whose the
	 * sizes are */
	return s->state == SESSION_RECORDING && !s->rec.held && s->step != STEP_RETARGETING &&
	       s->step != STEP_LEAVING;
}

/* When everything is older that this round is to find; 0: the clock cannot be read now */
static uint64_t clock_now(const struct session *s)
{
	uint64_t nsec;

	return clock_now_nsec(s->claim.instance, s->spec.config->trace.clock, &nsec) < 0 ? 0 : nsec;
}

static uint64_t next_usec(const struct session *s, bool more)
{
	bool follows = false;

	for (const struct session_tail *t = s->tails.list; t; t = t->next)
		follows |= !t->watch;
	if (!follows)
		return WATCH_USEC;
	return s->tails.confirm ? CONFIRM_USEC : more ? PAUSE_USEC : IDLE_USEC;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	if (!s->tails.list) {
		s->tails.source = sd_event_source_disable_unref(s->tails.source);
		return 0;
	}
	if (may_begin_round(s)) {
		s->tails.round = true;
		s->tails.began_nsec = clock_now(s);
		drain_tell_flushes(s->rec.drain, true);
		drain_flush(s->rec.drain);
		return 0; /* session_tail_check() goes on */
	}
	(void)timer_rearm(source, IDLE_USEC);
	return 0;
}

void session_tail_check(struct session *s)
{
	uint64_t bytes;
	bool more;

	if (!s->tails.round || !drain_flushed(s->rec.drain))
		return;
	s->tails.round = false;
	drain_tell_flushes(s->rec.drain, false);
	if (!s->tails.source)
		return;
	if (!may_begin_round(s)) { /* the next round tells */
		(void)timer_rearm(s->tails.source, CONFIRM_USEC);
		return;
	}
	bytes = drain_total_bytes(s->rec.drain);
	more = bytes != s->tails.bytes;
	s->tails.bytes = bytes;
	tell_round(s, more);
	s->tails.confirm = (more || s->tails.is_new) && !s->tails.confirm;
	s->tails.is_new = false;
	(void)timer_rearm(s->tails.source, next_usec(s, more));
}

void session_tail_moved(struct session *s)
{
	uint64_t bytes = 0, size;

	s->tails.segment++;
	for (unsigned cpu = 0; s->tails.list && cpu < drain_n_cpus(s->rec.drain); cpu++)
		if (trace_file_read_size(recording_old(s->rec.recording), cpu, &size) >= 0)
			bytes += size;
	for (struct session_tail *t = s->tails.list; t; t = t->next) {
		if (t->segment + 1 < s->tails.segment) { /* it was never told of the one before */
			t->skipped_segments++;
			t->skipped_bytes += bytes;
		}
		t->rounds = ROUNDS_TOLD;
		(void)announce(t);
	}
}

void session_tail_end(struct session *s, unsigned why)
{
	const struct tail_message message = {.type = TAIL_END, .segment = why};

	while (s->tails.list) {
		(void)send_message(s->tails.list, &message, sizeof(message), -EBADF);
		tail_free(s->tails.list);
	}
	s->tails.source = sd_event_source_disable_unref(s->tails.source);
	s->tails.round = s->tails.confirm = false;
	drain_tell_flushes(s->rec.drain, false);
}

static int start_ticking(struct session *s)
{
	int r;

	s->tails.is_new = true;
	if (s->tails.source) { /* the new one need not wait for the pause to be over */
		if (!s->tails.round)
			(void)timer_rearm(s->tails.source, 0);
		return 0;
	}
	s->tails.bytes = drain_total_bytes(s->rec.drain);
	s->tails.confirm = false;
	/* 1: to the microsecond; 0 would be a quarter of a second */
	r = sd_event_add_time_relative(s->env->event, &s->tails.source, CLOCK_MONOTONIC, 0, 1,
				       on_tick, s);
	if (r >= 0)
		r = sd_event_source_set_priority(s->tails.source, PRIORITY_CONTROL);
	return r;
}

static int open_tail(struct session *s, uid_t uid, bool watch, int *ret_fd, struct fault *why)
{
	struct session_tail *t;
	int pair[2], r;

	if (!s->mode->drains)
		return fault_set(why, -ENOTCONN,
				 "session %s is in flight mode, there is no file to follow: take a "
				 "snapshot of it",
				 s->name);
	if (s->state != SESSION_RECORDING || s->mode->salvage || drain_file_fd(s->rec.drain) < 0)
		return fault_set(why, -ENOTCONN, "session %s does not record, it is %s", s->name,
				 session_state_name(s->state));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return fault_errno(why, -errno, "cannot make a socket");
	guard_refuse(pair[0]);
	t = calloc(1, sizeof(*t));
	if (!t) {
		close(pair[0]);
		close(pair[1]);
		return fault_errno(why, -ENOMEM, "cannot open a tail");
	}
	*t = (struct session_tail){
		.next = s->tails.list,
		.session = s,
		.fd = pair[0],
		.uid = uid,
		.refuses = guard_refuses(pair[0]),
		.rounds = ROUNDS_TOLD,
		.watch = watch,
	};
	s->tails.list = t;
	r = sd_event_add_io(s->env->event, &t->source, t->fd, EPOLLIN, on_tail, t);
	if (r >= 0)
		r = sd_event_source_set_priority(t->source, PRIORITY_CONTROL);
	if (r >= 0)
		r = announce(t);
	if (r >= 0)
		r = start_ticking(s);
	if (r < 0) {
		tail_free(t);
		close(pair[1]);
		return fault_errno(why, r, "cannot open a tail");
	}
	*ret_fd = pair[1];
	return 0;
}

int session_open_tail(struct session *s, uid_t uid, int *ret_fd, struct fault *why)
{
	return open_tail(s, uid, false, ret_fd, why);
}

int session_open_watch(struct session *s, int *ret_fd, struct fault *why)
{
	return open_tail(s, 0, true, ret_fd, why);
}

unsigned session_count_tails(const struct session *s, const uid_t *uid)
{
	unsigned n = 0;

	for (const struct session_tail *t = s->tails.list; t; t = t->next)
		n += !t->watch && (!uid || t->uid == *uid);
	return n;
}
