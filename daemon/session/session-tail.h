/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Those who follow a session's live file as it is written. While there is one, the ring buffers are
 * emptied ten times a second, partial sub-buffers too, and each is told what is complete; see
 * formats/tail-message.h. A reader that does not read is told less, never waited for. Main thread.
 */
#pragma once

#include "daemon/session/session.h"

/**
 * session_open_tail() - let somebody follow
 * @uid: for session_count_tails()
 * @ret_fd: the reader's end of a socket; the tail is over when that is closed
 * Return: 0, or negative errno with @why set: -ENOTCONN it does not record.
 */
int session_open_tail(struct session *session, uid_t uid, int *ret_fd, struct fault *why);

/**
 * session_count_tails() - how many follow
 * @uid: those of this user; NULL: all
 */
unsigned session_count_tails(const struct session *session, const uid_t *uid);

/* --- for the other parts of the session */

/* No tails yet; NULL: no memory. Freed by free(), after session_tail_end(). */
struct session_tails *session_tails_new(void);

/* Workers have told something: is a round over? */
void session_tail_check(struct session *session);
/* All workers are in the next file; segment.old is the one before */
void session_tail_moved(struct session *session);
/* @why: an enum tail_end */
void session_tail_end(struct session *session, unsigned why);
