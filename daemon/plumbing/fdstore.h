/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service manager's FD store (sd_notify, FDSTORE=1) keeps what a kill would lose: each worker's
 * pipe with the pages in it, the memfd that says whose they are, the memfd with partial
 * sub-buffers, and the trace fds that keep the instance those pages belong to. Without a service
 * manager all of it does nothing.
 *
 * Names: SESSION.workerN.pipe, SESSION.notes, SESSION.slots, SESSION.cpuN.trace; of an earlier
 * version also SESSION.cpuN.pipe. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

struct fdstore;

/**
 * fdstore_new() - take over what the service manager passed
 * Other fds (sockets) are left alone; see sd_listen_fds_with_names(3).
 */
int fdstore_new(struct fdstore **ret);

/* Closes what nobody took: pipes first, their pages point into the instances that trace fds keep.
 */
void fdstore_free(struct fdstore *store);

/**
 * fdstore_take() - an fd kept from an earlier process; the caller's now, and still in the store
 * Return: the fd, or -ENOENT.
 */
int fdstore_take(struct fdstore *store, const char *session, const char *what);

/*
 * Put one into the store; it stays the caller's too. Nothing is done without a service manager,
 * nor, which is logged once, when there are so many that the service manager would not take it, or
 * could not start the next process with all their names.
 */
void fdstore_put(struct fdstore *store, const char *session, const char *what, int fd);

/**
 * fdstore_keep() - @fd is the next start's, in this process or, of what is in the store, in another
 * Closed if there is no memory.
 */
void fdstore_keep(struct fdstore *store, const char *session, const char *what, int fd);

/* Out of the store again */
void fdstore_drop(struct fdstore *store, const char *session, const char *what);

/**
 * fdstore_flush() - wait until the service manager has let go of all that was dropped, some seconds
 * at most: an instance whose files it still holds cannot be removed
 */
void fdstore_flush(struct fdstore *store);

/* Drop and close what fdstore_keep() kept of a session */
void fdstore_drop_session(struct fdstore *store, const char *session);

/**
 * fdstore_drop_rest() - drop and close everything that nobody took, and nobody will
 * @may_take: may this session take what it has in there?
 */
void fdstore_drop_rest(struct fdstore *store, bool (*may_take)(void *userdata, const char *session),
		       void *userdata);
