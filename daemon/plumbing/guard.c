/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/plumbing/guard.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define DROP_SIZE 4096

/* A socket that a thread closes, or that waits for one */
struct closing {
	struct closing *next;
	int fd;
	uid_t uid;
	bool at_work;
	atomic_int users; /* the guard, the thread: who comes last frees it */
	atomic_bool closed;
};

struct guard {
	struct closing *closings;
};

int guard_new(struct guard **ret)
{
	struct guard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return -ENOMEM;
	*ret = guard;
	return 0;
}

static void closing_unref(struct closing *c)
{
	if (atomic_fetch_sub(&c->users, 1) == 1)
		free(c);
}

static void *close_main(void *userdata)
{
	struct closing *c = userdata;

	(void)close(c->fd);
	atomic_store(&c->closed, true);
	closing_unref(c);
	return NULL;
}

static int start_closing(struct closing *c)
{
	sigset_t all, old;
	pthread_t thread;
	int r;

	atomic_fetch_add(&c->users, 1);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = -pthread_create(&thread, NULL, close_main, c);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0) {
		closing_unref(c);
		return r;
	}
	(void)pthread_detach(thread);
	c->at_work = true;
	return 0;
}

/* Forget what has been closed, begin with what waits */
static void check(struct guard *g)
{
	unsigned n = 0;

	for (struct closing **p = &g->closings, *c; (c = *p);) {
		if (atomic_load(&c->closed)) {
			*p = c->next;
			closing_unref(c);
			continue;
		}
		n += c->at_work;
		p = &c->next;
	}
	for (struct closing *c = g->closings; c && n < GUARD_THREADS_MAX; c = c->next)
		if (!c->at_work && start_closing(c) >= 0)
			n++;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	while (g->closings) {
		struct closing *c = g->closings;

		/* What no thread has begun with stays open until the process ends */
		g->closings = c->next;
		closing_unref(c);
	}
	free(g);
}

void guard_refuse(int fd)
{
	const int no = 0, yes = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
	/* Urgent data in its place: else a look does not see it, and receiving drops it with what
	 * it brings along */
	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof(yes));
}

bool guard_refuses(int fd)
{
	int passes;
	socklen_t size = sizeof(passes);

	return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &size) >= 0 && !passes;
}

ssize_t guard_receive(int fd, void *bytes, size_t size)
{
	struct iovec iov = {.iov_base = bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	/* There is no room for descriptors: the flag tells that there are some, and none was
	 * installed */
	if (message.msg_flags & MSG_CTRUNC)
		return -EPERM;
	if (n == 0)
		return 0;
	/* What has come meanwhile has not been looked at */
	n = recv(fd, bytes, (size_t)n, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

/* Nothing more gets in, and what is there holds no descriptor */
static bool drain(int fd)
{
	uint8_t bytes[DROP_SIZE];
	ssize_t n;

	(void)shutdown(fd, SHUT_RDWR);
	do
		n = guard_receive(fd, bytes, sizeof(bytes));
	while (n > 0 || n == -EINTR);
	return n != -EPERM;
}

void guard_close(struct guard *g, int fd, bool refuses, uid_t uid)
{
	struct closing *c;

	if (fd < 0)
		return;
	check(g);
	if (refuses || drain(fd)) {
		(void)close(fd);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return; /* better a descriptor less than a daemon that stands still */
	c->fd = fd;
	c->uid = uid;
	c->users = 1;
	c->next = g->closings;
	g->closings = c;
	check(g);
}

unsigned guard_count(struct guard *g, const uid_t *uid)
{
	unsigned n = 0;

	check(g);
	for (const struct closing *c = g->closings; c; c = c->next)
		n += !uid || c->uid == *uid;
	return n;
}
