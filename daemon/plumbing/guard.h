/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sockets of clients without trust. No call takes a descriptor, yet a client may pass some, and
 * then whoever drops the last reference to such a file does what its close() does: wait for
 * seconds, with a TCP socket that lingers. So none may get in: SO_PASSRIGHTS (Linux 6.16) refuses
 * them at the sender. Without it, they are noticed before they are received, and a socket that
 * holds some is closed by a thread of its own. Owner: the daemon. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "basic/macro.h"

#define GUARD_THREADS_MAX 16
#define GUARD_LEFT_MAX	  64 /* sockets that wait for such a thread */

struct guard;

int guard_new(struct guard **ret);
/* Threads that still wait go on by themselves; NULL is fine */
void guard_free(struct guard *guard);

/**
 * guard_refuse() - take no descriptors from now on, where the kernel can do that
 * @fd: a socket that listens or is connected; accepted sockets inherit it. Before anything is
 * received.
 */
void guard_refuse(int fd);

/* None is taken, so none waits in its queue if that is so from its beginning */
bool guard_refuses(int fd);

/**
 * guard_receive() - recv(2) that does not wait, of bytes without descriptors only
 * Return: bytes, 0 at the end, or negative errno: -EPERM descriptors are there, nothing was
 * received.
 */
ssize_t guard_receive(int fd, void *bytes, size_t size);

/**
 * guard_close() - close without waiting, whatever is in the queue
 * @fd: consumed; nobody else has it open
 * @refuses: what guard_refuses() said when it was new
 * @uid: whose it is
 */
void guard_close(struct guard *guard, int fd, bool refuses, uid_t uid);

/* Sockets of this user, NULL: of all, are not closed yet */
unsigned guard_count(struct guard *guard, const uid_t *uid);

DEFINE_CLEANUP(struct guard *, guard_free)
