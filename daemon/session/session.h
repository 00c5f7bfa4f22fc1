/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A running session: one configured recording from its kernel instance to its files. A small state
 * machine on the event loop; whatever may wait for a disk is a job, whatever moves data a worker.
 * Main thread.
 */
#pragma once

#include "config/config.h"
#include "daemon/session/environment.h"
#include "daemon/session/last-hour.h"
#include "daemon/session/peers.h"
#include "daemon/session/session-choose.h"
#include "daemon/session/snapshot-queue.h"
#include "daemon/trigger/trigger.h"
#include "engine/ledger.h"
#include "engine/reach.h"

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

/* What another host asks for, by whoever tells us of it */
struct limited_wish {
	const char *id;		     /* own_id_valid() */
	uint64_t from_usec, to_usec; /* realtime; to_usec: UINT64_MAX: now */
	const char *reason; /* a word, and maybe a line of text: goes into the file's text */
	uid_t uid;
};

/**
 * session_snapshot_limited() - a snapshot for another host: of a window up to PeerMaxSec=, not
 * taken before that has ended, and within Burst= for all of them; no other snapshot makes way for
 * it
 * Where a file has this id, or most of the window, that is the answer.
 * @done: called once, maybe before this returns; whoever hangs up meanwhile cancels nothing
 * Return: 0, or negative errno with @why and @done is not called: -ENOTCONN, -EINVAL, -EACCES:
 * PeerMaxSec=0. @done may get others: -EUSERS, -ENODATA.
 */
int session_snapshot_limited(struct session *session, const struct limited_wish *wish,
			     peers_done_t done, void *userdata, struct fault *why);

/**
 * session_trigger() - a program wants this moment to be kept: as a trigger, with Last= and PostSec=
 * @text: a line that says why, for the file's text
 * @asker: for the limits of group flyrec
 * Return: 0: there will be a snapshot; or negative errno with @why, as of session_snapshot() and
 * triggers_on_call().
 */
int session_trigger(struct session *session, const char *text, const struct snapshot_asker *asker,
		    struct fault *why);

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

/* --- Compress= */

typedef void (*session_compress_done_t)(void *userdata);

/**
 * session_compress() - compress one segment of it, if it is to and one may wait
 * Not while another session does.
 * @done: called when that is over, however it ended; the session may be gone by then
 * Return: 1: it is under way, and @done will be called; 0: there is nothing to do; or negative
 * errno.
 */
int session_compress(struct session *session, session_compress_done_t done, void *userdata);

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

/* --- what can be asked of it while it runs: none of it waits, none of it disturbs recording */

enum session_wait {
	WAIT_ROTATED, /* text: the finished file's path, "" if there was nothing in it */
	WAIT_STARTED,
	WAIT_STOPPED,
	WAIT_CHANGED, /* events have been changed */
};

/* What came of it: @result 0, or negative errno and @text says why */
typedef void (*session_done_t)(void *userdata, int result, const char *text);

/**
 * session_wait() - call @done, once, when it has happened or cannot happen any more
 * It may be called before this returns. WAIT_ROTATED asks for a new segment, too.
 * Return: 0 or -ENOMEM.
 */
int session_wait(struct session *session, enum session_wait what, session_done_t done,
		 void *userdata);

/**
 * session_pause() - tracing_on; everything else goes on
 * Return: 0; -ENOTCONN when it does not record; or negative errno with @why set.
 */
int session_pause(struct session *session, bool pause, struct fault *why);
bool session_paused(const struct session *session);

/**
 * session_change_events() - trace these events from now on, in the same instance
 * Where an event's system is not in the header of current.dat, a new segment is begun first.
 * @config: its trace.events is what is wanted; the rest must be as it is in force; copied
 * @done: as in session_wait(); NULL: nobody asks (it is logged)
 * Return: 0 (@done is or will be called), or negative errno with @why set: -ENOTCONN it does not
 * record, -EBUSY another change is under way.
 */
int session_change_events(struct session *session, const struct session_config *config,
			  session_done_t done, void *userdata, struct fault *why);

/* In force, NULL when stopped */
const struct session_config *session_config_in_force(const struct session *session);

/**
 * session_count() - loss accounting as it is now; at most some milliseconds old
 */
const struct ledger *session_count(struct session *session);

/* Sub-buffers of this session that were deleted on request, by CPU */
void session_count_evicted(struct session *session, const uint64_t *subbufs, unsigned n_cpus);

/* A session's files: finished ones and the one being written, with their bytes on the disk */
struct session_usage {
	uint64_t files, bytes;
	uint64_t snapshots, snapshot_bytes; /* of a flight session part of bytes */
	uint64_t segment_usec;		    /* realtime: when the segment began; 0: none */
	uint64_t started_usec;		    /* realtime: recording since; 0: it does not */
	uint64_t max_use;		    /* bytes that segments may take; 0: it has none */
	uint64_t lasts_usec;		    /* so long at the rate of the last day; 0: unknown */
	uint64_t packed_files;		    /* segments that are compressed */
	uint64_t packed_bytes, raw_bytes;   /* they take, and took before */
	uint64_t packing_waits;		    /* segments that are to be compressed */
};

void session_usage(const struct session *session, struct session_usage *ret);

/* Why the last segment was not compressed; "": it was, or none was to be */
const char *session_compress_failure(const struct session *session);

/* What vacuum, or a snapshot, has left of the session's snapshots */
void session_note_snapshots(struct session *session, uint64_t files, uint64_t bytes);

/**
 * session_reach() - microseconds from now back to what is there without a gap: of the files, or of
 * a flight session's ring buffers; 0: nothing yet, or the clock counts no time
 * @ret: of each CPU's ring buffer, or NULL: there are only files; valid until the next call
 * @ret_n: 0 then
 */
uint64_t session_reach(struct session *session, const struct reach **ret, unsigned *ret_n);

/**
 * session_last_hour() - what came and was lost, minute by minute, oldest first
 * A flight session is not woken to be counted: its rows are as long as nobody asked.
 * @ret: [LAST_HOUR_ROWS + 1]; end_usec is realtime
 * Return: their number.
 */
unsigned session_last_hour(struct session *session, struct last_hour_row *ret);

/* Events that came since it began to record; of flight sessions only, else 0 */
uint64_t session_events(struct session *session);

/* Microseconds of CPU time that the threads which drain it have used, over the life of this object
 */
uint64_t session_cpu_usec(const struct session *session);

/* Threads that Pid= and Unit= have found, and processes among them, that are alive; 0 without */
void session_count_tasks(const struct session *session, uint64_t *ret_tasks,
			 uint64_t *ret_processes);

/* Events that it does not record for now, because of MaxOverhead=; NULL-terminated; NULL: none */
char *const *session_shed(const struct session *session);

/* How a flight session takes its snapshots; "" for others */
const char *session_method(const struct session *session);

/* How its ring buffers are drained now, "read" or "splice"; "" when they are not */
const char *session_drain(const struct session *session);

/* The name of its instance, "" when it has none */
const char *session_instance_name(const struct session *session);

/* The path of its trace_marker, malloc'ed; "": it has no instance; NULL: no memory */
char *session_marker(const struct session *session);
/* Bytes of its sub-buffers, likewise 0 */
unsigned session_subbuf_size(const struct session *session);

/* --- following the live file as it is written; see formats/tail-message.h */

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

DEFINE_CLEANUP(struct session *, session_free)
