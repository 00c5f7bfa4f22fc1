/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A running session: one configured recording from its kernel instance to its files. A small state
 * machine on the event loop; whatever may wait for a disk is a job, whatever moves data a worker.
 * Main thread.
 */
#pragma once

#include "config/config.h"
#include "daemon/session/environment.h"
#include "daemon/session/session-choose.h"
#include "daemon/session/snapshot-queue.h"
#include "daemon/trigger/trigger.h"

struct snapshot_order;
struct session;
struct together_shape;

/**
 * session_new() - an object for @name, stopped
 * @env, @events: the caller's, for as long as it is there
 */
int session_new(const struct environment *env, const struct session_events *events,
		const char *name, struct session **ret);

/* Must be stopped or failed. NULL is fine. */
void session_free(struct session *session);

const char *session_name(const struct session *session);
enum session_state session_state(const struct session *session);

/* Stopped or failed, and nothing is under way */
bool session_settled(const struct session *session);

/* Is this an error that may be gone when a disk is mounted, or mounted again? */
bool session_disk_may_return(int error);

/* Failed, and started again as soon as its disk is there */
bool session_waits_for_disk(const struct session *session);

/**
 * session_use_or_default() - MaxUse= of [Storage] or [Snapshot], for the files in a directory
 * @configured: may be STORAGE_DEFAULT
 * Any thread.
 */
uint64_t session_use_or_default(uint64_t configured, int dir_fd);

/* Recording, and not about to stop or restart */
bool session_steady(const struct session *session);

/* Why it failed, or what trouble it has while it records; one line, "" if none */
const char *session_failure(const struct session *session);

/* What causes snapshots of it */
struct triggers *session_triggers(const struct session *session);

/* KeepFree=, bytes, of one that records to this file system; 0 of others */
uint64_t session_keep_free(const struct session *session, dev_t device);

/* Bytes moved since the session began */
uint64_t session_total_bytes(const struct session *session);

/**
 * session_configure() - from now on it shall be like this
 * Starts it, restarts it if more of [Trace] than its events has changed, goes on with a new segment
 * if only its storage has, does nothing if nothing has. A failed session is tried again.
 * @config: copied; NULL: stop it, and undo in the kernel what an earlier process may have left
 */
int session_configure(struct session *session, const struct session_config *config);

/**
 * session_stop() - stop tracing, drain, finish the segment, remove the instance; or hand over:
 * leave the instance tracing and the file as it is for the next process
 * session_events.settled() is called when it is done.
 */
void session_stop(struct session *session, bool hand_over);

/*
 * @result 0 and the file's path, of a part its fd, or negative errno and why; with a path all the
 * same where there is a file, but it could not be pinned. Main thread.
 */
typedef void (*session_snapshot_done_t)(void *userdata, int result,
					const struct snapshot_result *made);

/* What somebody asks for */
struct snapshot_wish {
	uint64_t from_usec, to_usec; /* realtime; 0 and UINT64_MAX: from the first, to the last
					there is */
	const char *reason;	     /* a word of [a-z0-9-], part of the file's name; what follows
					after a blank, one line, goes into the file's text */
	struct snapshot_asker asker;
	bool coresight; /* a CoreSight snapshot too, whatever Coresight= says */
	bool pin;
};

/**
 * session_snapshot() - a trace.dat of a time range into STATE/NAME/snapshot
 * @done: called once, maybe before this returns
 * Return: 0, or negative errno with @why and @done is not called: -ENOTCONN not recording; -EINVAL
 * no such reason or range; -EUSERS too many of this user, or of members of group flyrec within
 * IntervalSec=.
 */
int session_snapshot(struct session *session, const struct snapshot_wish *wish,
		     session_snapshot_done_t done, void *userdata, struct fault *why);

/**
 * session_cancel_snapshots() - nobody waits any more for what an asker has ordered by @call
 * What has not begun is answered with -ECANCELED.
 */
void session_cancel_snapshots(struct session *session, const void *call);

/* --- for a snapshot of several sessions */

/* As session_snapshot(), of what @what says; its texts are copied, its parts are not. Those of
 * parts have been admitted as parts. */
int session_order_snapshot(struct session *session, const struct snapshot_order *what,
			   const char *reason, session_snapshot_done_t done, void *userdata,
			   struct fault *why);

/* May there be one more, as of now? What session_snapshot() refuses for its number. */
int session_admit_snapshot(struct session *session, const struct snapshot_asker *asker,
			   struct fault *why);

/* Clock, sub-buffer size and number of CPUs; the session must be recording */
void session_shape(const struct session *session, struct together_shape *ret);

/* --- what happens to the machine */

/* It has a file open all the time, or waits for its disk */
bool session_minds_mounts(const struct session *session);

/* What is mounted where has changed */
void session_mounts_changed(struct session *session);

/* Go on in a new segment soon */
void session_rotate(struct session *session);

/* The wall clock may have been set: the same, if the file's date is wrong by now */
void session_clock_set(struct session *session);

/* The machine was suspended: the same, where the clock of the events stood still */
void session_slept(struct session *session);

DEFINE_CLEANUP(struct session *, session_free)
