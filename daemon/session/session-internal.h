/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a session that its modules share, as they are about one recording: what one of them
 * finds out the others go by. session.c has the states and steps, session-choose.c their order,
 * session-start.c the way from nothing to recording, session-job.c a segment's jobs; the others,
 * session-*.c, say at their top what they do. Those call no session_advance(), but session_wake().
 */
#pragma once

#include "daemon/plumbing/fdstore.h"
#include "daemon/plumbing/priority.h"
#include "daemon/plumbing/state-root.h"
#include "daemon/session/disk-watch.h"
#include "daemon/session/environment.h"
#include "daemon/session/session.h"
#include "daemon/session/state.h"
#include "daemon/trigger/trigger-limit.h"
#include "daemon/trigger/trigger.h"
#include "engine/account.h"
#include "engine/boot-trace.h"
#include "engine/coresight-job.h"
#include "engine/drain.h"
#include "engine/flight.h"
#include "engine/reach.h"
#include "engine/recording.h"

/* What a session waits for; only one thing at a time */
enum session_step {
	STEP_NONE,
	STEP_SAVING_BOOT, /* job: boot_trace_save, before there is an instance */
	STEP_OPENING,	  /* job: recording_open */
	STEP_NEXT,	  /* job: recording_begin_next */
	STEP_RETARGETING, /* workers */
	STEP_FINISHING,	  /* job: recording_finish_old, and recording goes on */
	STEP_SYNCING,	  /* job: recording_sync */
	STEP_FLUSHING,	  /* workers: all there is into the file, for a snapshot */
	STEP_CAPTURING,	  /* job: flight_capture */
	STEP_CUTTING,	  /* job: snapshot_order_find, or flight_export */
	STEP_NOTING,	  /* job: the state file */
	STEP_DRAINING,	  /* workers: to the end */
	STEP_LEAVING,	  /* workers: empty their hands */
	STEP_CLOSING,	  /* job: recording_finish_old, the last one */
};

/* Snapshots that are wanted. Written by session-snapshot.c alone. */
struct session_orders {
	struct snapshot_turn *requests; /* the first may be under way */
	bool copying;			/* job beside the steps: snapshot_order_make of the first */
	bool coresight_said;		/* that this machine has none */
	struct snapshot_join *join;	/* what later triggers may still join; or NULL */
	struct trigger_limit member_limit; /* of what members of group flyrec ask for */
};

struct session {
	const struct environment *env;
	const struct session_events *events;
	char *name;
	struct session_config *config;	/* in force; NULL when stopped */
	struct session_config *pending; /* to be in force after the stop that is under way */
	enum session_state state;
	enum session_step step;
	unsigned wants;	  /* enum session_want */
	bool salvage;	  /* only emptying and undoing what an earlier process left */
	bool left_behind; /* failed, and what an earlier process left is still in the kernel */
	struct fault failure;
	struct fault missing;	      /* of Unit=: what is not traced, and why */
	struct fault deferred;	      /* see session_defer() */
	sd_event_source *wake_source; /* see session_wake() */
	struct triggers *triggers;
	struct session_orders *orders; /* session-snapshot.c: snapshots wanted */

	int dir_fd;	      /* STATE/NAME */
	struct state *kernel; /* as in its state file */
	struct instance *instance;
	struct boot_trace *boot_trace; /* being saved, or NULL */
	bool kept;		       /* the instance is in memory that outlives the kernel */
	char *notes;		       /* the job's that writes them: the state file's text */
	struct recording_input files;
	struct recording_report report;
	struct recording *recording; /* of a flight session nothing is open */
	struct drain *drain;
	uint64_t *dropped_said;	     /* [drain_n_cpus()]: bytes, in the files before this one */
	struct flight *flight;	     /* NULL unless it is a flight session */
	uint64_t from_nsec, to_nsec; /* of its snapshot under way, in the instance's clock */
	uint64_t capture_keep_free;  /* bytes; 0: it is worth all the room there is */
	int notify_fd;		     /* eventfd, written by workers */
	sd_event_source *notify_source, *flush_source, *look_source;

	uint64_t segment_usec; /* monotonic: when the segment began */
	uint64_t synced_usec;  /* monotonic: last sync */
	uint64_t synced_bytes; /* drain_total_bytes() then */
	uint64_t overshoot;    /* bytes beyond a segment's limit until the next was there, lately */
	bool date_doubted;     /* the clock was set, or an earlier process made current.dat */
	uint64_t dated_usec;   /* monotonic: when a segment was last begun because of that */
	uint64_t retry_usec;   /* monotonic: not before then rotate again */
	uint64_t forks;	       /* of the machine, at the last sync because of them */
	uint64_t fetched_forks; /* when task names were last fetched because of them */
	uint64_t look_usec;	/* monotonic: when it was last asked whether to */
	uint64_t lost;		/* events, as last reported */
	uint64_t lost_usec;	/* monotonic: when that was */
	int trouble;		/* of the disk, as last reported */
	unsigned told;		/* bits of the kinds of trouble in the log since all was well */
	bool undrained;		/* the recording ends, and the disk has not taken all of it */
	bool held;		/* nothing is drained until the next segment is there */
	int next_error;		/* of a rotation, as last reported */
	int sync_error;		/* of a sync, as last reported */
	bool mapped;		/* as last reported */

	/* session-away.c */
	bool away;	  /* the disk was gone at the last try to start */
	bool was_mounted; /* STATE/NAME is a file system of its own */
	bool note_failed; /* in the runtime directory, last time */
	struct disk_watch disk;
	struct state *left; /* of the instance that goes on tracing while the disk is gone */
	sd_event_source *again_source;

	/* session-tail.c */
	struct session_tails *tails; /* session-tail.c */

	/* session-runtime.c */
	struct session_waiter *waiters;
	struct session_config *change; /* its events shall be traced, as soon as they can be */
	bool paused;
	struct account account;		 /* over the life of this object */
	uint64_t sampled_usec;		 /* monotonic */
	uint64_t kept_files, kept_bytes; /* as the last job left them */
	struct retention_past past;	 /* likewise */
	uint64_t snapshots, snapshot_bytes;
	struct reach *reach;	 /* [account.n_cpus] of a flight session, with the last sample */
	uint64_t recording_usec; /* monotonic: since when */
};

static inline bool session_is_flight(const struct session *s)
{
	return s->config && s->config->mode == SESSION_FLIGHT;
}

/* It is being stopped, and no other start follows */
static inline bool session_ends(const struct session *s)
{
	return s->wants & WANT_STOP && !s->pending;
}

/* Beside the steps a snapshot is being copied from the session's files */
static inline bool session_copies(const struct session *s)
{
	return s->orders->copying;
}

/* session_advance() soon, from the event loop: for those whose want is nothing that it waits for */
static inline void session_wake(struct session *s)
{
	(void)sd_event_source_set_enabled(s->wake_source, SD_EVENT_ONESHOT);
}

/* session.c: do the next thing, if nothing is under way */
void session_advance(struct session *session);
/* The one place where the state changes: whoever waits for that is told */
void session_set_state(struct session *session, enum session_state state);
void session_fail(struct session *session, const struct fault *why);
/* Stopped or failed, with nothing left to do */
void session_settle(struct session *session, enum session_state state);
/* begin a step that is a job; without a thread for it it fails */
void session_start_job(struct session *session, enum session_step step);
/* end a step that could not be begun, from the event loop: whoever begins it need not expect that
 */
void session_defer(struct session *session, enum session_step step, const struct fault *why);

/* session-job.c: of a session that records */
void session_begin_next(struct session *session);
int session_run_open(void *userdata, struct fault *why);
int session_run_next(void *userdata, struct fault *why);
int session_run_finish(void *userdata, struct fault *why);
int session_run_sync(void *userdata, struct fault *why);
int session_run_note(void *userdata, struct fault *why);
int session_run_close(void *userdata, struct fault *why);
void session_on_next(struct session *session, int result, const struct fault *why);
void session_on_finished(struct session *session, int result, const struct fault *why);
void session_on_synced(struct session *session, int result, const struct fault *why);
void session_on_closed(struct session *session, int result, const struct fault *why);
/* of what a job has found out, after each */
void session_harvest(struct session *session);

/* session.c */
int session_on_notify(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* session-fds.c: what the FD store has is taken up, and all is put there; out of it, or for the
 * next start */
int session_open_drain(struct session *session, struct fault *why);
void session_close_drain(struct session *session, bool keep);

/* session-files.c: limits from the configuration and the file system, bytes */
uint64_t session_max_file_size(const struct session *session);
uint64_t session_max_prealloc(const struct session *session);
void session_snapshot_limits(const struct session *session, struct retention_limits *ret);
/* the same where a member of group flyrec has asked for it: at the cost of no other snapshots, and
 * of no session's segments */
void session_member_limits(const struct session *session, struct retention_limits *ret);
/* Before it has begun, when that failed with @error: if for lack of room retention may help.
 * Return: worth another try. */
bool session_make_room(struct session *session, int error);
/* bytes of a CPU's ring buffer */
uint64_t session_buffer_size(const struct session *session);
/* what the next file's header says of the instance as it is now */
int session_prepare_segment(struct session *session, struct fault *why);
/* by how many microseconds the DATE of a file of the running session is behind what it is now;
 * negative errno if that is not known */
int session_date_off(struct session *session, const struct trace_file *file, int64_t *ret);
/* between steps, while date_doubted: if it is too much, the next segment is wanted */
void session_check_date(struct session *session);

/* session-configure.c: between steps. What the kernel refuses makes it fail, by a restart. */
void session_renew_triggers(struct session *session);
/* before anything is traced */
int session_prepare_triggers(struct session *session, struct fault *why);
/* between steps: the instance of OnEvent=, which is gone, anew */
void session_watch_again(struct session *session);

/* session-instance.c */
/* what an earlier process of this boot has left in the kernel, NULL if nothing */
int session_read_leftover(struct session *session, struct state **ret, struct fault *why);
/* is that what we want now? */
bool session_fits(const struct session *session, const struct state *left);
/* take it up: to go on, or, if it does not fit, to drain and undo it */
int session_attach(struct session *session, struct state *left, struct fault *why);
/* what it takes to attach an instance whose configuration is no longer ours */
int session_leftover_config(struct session *session, const struct state *left,
			    struct session_config **ret);
/* the state file, at a start: where there is no room for it retention makes some, if it can */
int session_write_state(struct session *session, struct fault *why);
/* a new one, noted in the state file */
int session_create_instance(struct session *session, struct fault *why);
/* of its instance, "flyrec.NAME", and the group of its probes; malloc'ed */
int session_instance_names(const struct session *session, char **ret_name, char **ret_group);

/* session-start.c */
void session_start(struct session *session);
/* after recording_open: pumps, workers, tracing on */
int session_begin_recording(struct session *session, struct fault *why);
/* Tracing on, unless an earlier process was asked to pause */
int session_trace(struct session *session, struct fault *why);
/* counters from which the segment's losses are counted, into session->kernel; see
 * session_read_stats() */
int session_note_base(struct session *session, bool boundary);
/* undo everything but files; tracing instance is removed unless @keep_instance */
void session_release(struct session *session, bool keep_instance);

/* after that: with a new instance */
void session_start_new(struct session *session);

/*
 * session-boot.c: is there the trace of a boot that died?
 * session_find_boot_trace() - Return: 1: it is to be saved, by STEP_SAVING_BOOT; 0: there is none;
 * negative errno: it is to be tried again later
 * session_boot_trace_done() - Return: 0: the session can be started anew, or negative errno,
 * likewise
 */
int session_find_boot_trace(struct session *session, struct fault *why);
int session_run_boot_trace(void *userdata, struct fault *why);
int session_boot_trace_done(struct session *session, int result, const struct fault *failure,
			    struct fault *why);
void session_warn_of_clock(struct session *session);
/* part of a job that session_start_job() has given s->notes: the state file, and what the next boot
 * must know beside it */
int session_write_notes(struct session *session, struct fault *why);

/* session-snapshot.c */
/* STATE/NAME/snapshot/@name is there: tell clients, and whoever ships files. Return: its path,
 * malloc'ed, or NULL. */
char *session_announce_snapshot(struct session *session, const char *name);
/* Is there one whose turn it is? */
bool session_snapshot_waits(const struct session *session);
void session_begin_snapshot(struct session *session);
int session_run_cut(void *userdata, struct fault *why);
void session_cut_done(struct session *session, int result, const struct fault *why);
/* A segment or a snapshot: the memory that it took, some MB, is the machine's again */
void session_file_is_made(void);
extern const struct trigger_host session_trigger_host;
/* answer all that wait: the session has stopped or failed */
void session_drop_snapshots(struct session *session);
/* None yet; NULL: no memory */
struct session_orders *session_orders_new(void);
/* All have been answered */
void session_orders_free(struct session_orders *orders);

/* session.c: after recording_open, or at once where there are no segments */
void session_opened(struct session *session, int result, const struct fault *why);

/* session-flight.c */
int session_begin_flight(struct session *session, struct fault *why);
void session_end_flight(struct session *session);
/* Method= or Memory= may be different now */
void session_change_flight(struct session *session);
void session_begin_capture(struct session *session, uint64_t from_usec, uint64_t to_usec);
int session_run_capture(void *userdata, struct fault *why);
void session_captured(struct session *session, int result, const struct fault *why);
/* Releases everything; the session is to be settled then */
void session_stop_flight(struct session *session);
int session_discard_flight(struct session *session, const struct state *left, struct fault *why);

int session_destroy_left(struct session *session, const struct state *left, struct fault *why);

/* session-notes.c */
/**
 * session_note_synced() - after a sync: what the disk has confirmed of the file
 * session_forget_synced() - before it is finished, and with the instance; any thread
 */
void session_note_synced(struct session *session);
void session_forget_synced(const struct session *session);
/**
 * session_forget_file() - likewise, of the file of this id, which was finished at the start; 0:
 * none
 */
void session_forget_file(struct session *session, uint64_t file_id);
/**
 * session_count_missing() - what the file has lost since it was left, or confirmed, counts as not
 * written, and is said
 */
void session_count_missing(struct session *session);
/**
 * session_note_away() - what is in the kernel, and how much the file has, of a session that lets go
 * of its disk
 * session_recall_away() - of an earlier process; of what is no longer there it is removed
 * Return: 0 or negative errno, -ENOENT there is none.
 */
void session_note_away(struct session *session);
void session_forget_away(const struct session *session);
int session_recall_away(const struct session *session, struct state **ret);
/* session-away.c */
/* Is a negative @error one of these, which are positive? */
bool session_is_error_of(int error, const int *errors, size_t n);
#define SESSION_AGAIN_USEC (5 * USEC_PER_SEC)
/* Start it again then; microseconds from now */
void session_try_again(struct session *session, uint64_t usec);
/* Is the instance of this state still that one? */
bool session_is_in_kernel(const struct session *session, const struct state *state);
/* A start has failed: if it is for the disk, keep what there is, and try again later */
bool session_failed_for_disk(struct session *session, int error);
/* No more tries; unless handing over, the instance goes too */
void session_end_away(struct session *session, bool hand_over);
/* dir_fd is where it was, and not what lies below a mount that is gone */
int session_check_place(struct session *session, struct fault *why);

/* session-tick.c */
/* Compare the instance with the configuration, and repair. False when the session ends over it. */
bool session_check_instance(struct session *session);
/* Unit=: trace the processes that are there now; say so when there are none, or some again */
void session_refresh_units(struct session *session);
/* Data comes: fetch task names if many tasks are new, or look again a little later */
void session_look(struct session *session);
/* Microseconds between two flushes: FlushSec=, or less where what is flushed could not be synced in
 * time */
uint64_t session_tick_usec(const struct storage_config *storage);
int session_on_flush(sd_event_source *source, uint64_t usec, void *userdata);
/* @boundary: as the workers noted them when they left the last file, not as they are now */
int session_read_stats(struct session *session, unsigned cpu, bool boundary, struct cpu_stats *ret);
void session_prepare_stats(struct session *session, bool final);
void session_report_trouble(struct session *session);
/* Log how many events were overwritten since the last time: once a minute, unless @at_once */
void session_report_losses(struct session *session, bool at_once);
/* The disk is full, as far as we were told: retention may help */
bool session_disk_full(const struct session *session);
