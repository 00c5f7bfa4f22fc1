/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One snapshot of several sessions. Main thread.
 */
#pragma once

#include "daemon/manager/manager.h"

/**
 * together_snapshot() - one trace.dat of several sessions into the first one's snapshots
 * Each session is a ring buffer of the file with the session's name. One that recorded nothing in
 * that time is an empty one.
 * @done: called once, later
 * Return: 0, or negative errno with @why set and @done is not called: -EINVAL fewer than two, or
 * one twice; -ENOTCONN one does not record; -EOPNOTSUPP their clocks, sub-buffer sizes or numbers
 * of CPUs differ; -EUSERS as of session_snapshot(), for one of them.
 */
int together_snapshot(struct manager *manager, struct session *const *sessions, size_t n,
		      const struct snapshot_wish *wish, session_snapshot_done_t done,
		      void *userdata, struct fault *why);
