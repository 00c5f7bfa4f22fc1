/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the daemon as a whole keeps: the state directory under its lock, and the size of the
 * kernel's table of task names. Main thread.
 */
#pragma once

#include "daemon/manager/daemon.h"

/**
 * daemon_open_state_dir() - open, or make, the state directory, and lock it until the process ends
 * Files belong to group flyrec from then on, where there is one. That it cannot be written to yet
 * is no error: daemon_find_state_dir() tries again.
 * Return: 0, -EBUSY when another daemon has it, or negative errno; it has been logged.
 */
int daemon_open_state_dir(struct daemon *daemon);

/**
 * daemon_find_state_dir() - see that it is open, and is what its path leads to
 * Another file system may have been mounted there since. -ESTALE: it was one of its own, and that
 * is no longer mounted.
 */
int daemon_find_state_dir(struct daemon *daemon, struct fault *why);

/**
 * daemon_leave_state_dir() - let go of it, so that its file system can be unmounted, unless a
 * session uses it; daemon_find_state_dir() opens it again
 */
void daemon_leave_state_dir(struct daemon *daemon);

/* What a next process finds is right, mounted or not */
void daemon_forget_mount(const struct daemon *daemon);

/* At the end */
void daemon_close_state_dir(struct daemon *daemon);

/**
 * daemon_watch_mounts() - sessions are told when something is mounted or unmounted
 */
int daemon_watch_mounts(struct daemon *daemon);

/* Be woken by that only as long as there is a session that minds */
void daemon_mind_mounts(struct daemon *daemon);

/**
 * daemon_raise_cmdlines() - have the kernel keep more task names than it does by itself; once
 * The size found is kept over a kill, in the state directory. Failure is only logged.
 */
void daemon_raise_cmdlines(struct daemon *daemon);

/* If an earlier process has done that and had no time to undo it */
void daemon_resume_cmdlines(struct daemon *daemon);

/**
 * daemon_watch_clock() - when the wall clock is set, sessions begin new segments
 * A file has one offset from its clock to the wall clock's, and its name is of that.
 */
int daemon_watch_clock(struct daemon *daemon);

/* Back to what it was, unless the recording is handed over */
void daemon_restore_cmdlines(struct daemon *daemon);
