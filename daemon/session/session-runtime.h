/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What can be asked of a session while it runs, beside its configuration: pause, change events,
 * wait for something to be done. None of it waits itself, none of it disturbs recording. Main
 * thread.
 */
#pragma once

#include "daemon/session/session.h"
#include "engine/account.h"
#include "engine/reach.h"

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
const struct account *session_count(struct session *session);

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
};

void session_usage(const struct session *session, struct session_usage *ret);

/* What vacuum, or a snapshot, has left of the session's snapshots */
void session_note_snapshots(struct session *session, uint64_t files, uint64_t bytes);

/**
 * session_reach() - microseconds from now back to what is there without a gap: of the files, or of
 * a flight session's ring buffers; 0: nothing yet, or the clock counts no time
 * @ret: of each CPU's ring buffer, or NULL: there are only files; valid until the next call
 * @ret_n: 0 then
 */
uint64_t session_reach(struct session *session, const struct reach **ret, unsigned *ret_n);

/* Threads that Pid= and Unit= have found, and processes among them, that are alive; 0 without */
void session_count_tasks(const struct session *session, uint64_t *ret_tasks,
			 uint64_t *ret_processes);

/* How a flight session takes its snapshots; "" for others */
const char *session_method(const struct session *session);

/* The name of its instance, "" when it has none */
const char *session_instance_name(const struct session *session);

/* --- for the other parts of the session */

/* Forget those who wait, after telling them */
void session_cancel_waits(struct session *session, const char *why);
/* The state has changed: is anyone waiting for this? */
void session_check_waits(struct session *session);
/* Those who wait for a rotation wait for the one that begins now; then its end */
void session_rotation_begins(struct session *session);
void session_rotation_done(struct session *session, int result, const char *text);
/* Workers are in another file: if it has the formats, make the change that waits. The state file is
 * to be written then. Returns true if it was made. */
bool session_apply_change(struct session *session);
/* Can the change that waits be made before the next segment? */
bool session_change_fits(const struct session *session);
void session_drop_change(struct session *session, int result, const char *why);
/* Take the counters over; @final: before pumps and instance go */
void session_sample(struct session *session);
void session_begin_counting(struct session *session);
