/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a session. Each has one file that writes it; the others read it, and change it by
 * that file's functions, which are below. session.c has the states and steps, session-choose.c
 * their order. Nobody but session.c and those who are called from outside calls session_advance():
 * whoever wants something calls session_want().
 */
#pragma once

#include "daemon/plumbing/fdstore.h"
#include "daemon/plumbing/priority.h"
#include "daemon/session/budget.h"
#include "daemon/session/compression.h"
#include "daemon/session/disk-watch.h"
#include "daemon/session/environment.h"
#include "daemon/session/last-hour.h"
#include "daemon/session/session.h"
#include "daemon/session/state.h"
#include "daemon/trigger/trigger-limit.h"
#include "daemon/trigger/trigger.h"
#include "engine/boot-trace.h"
#include "engine/drain.h"
#include "engine/flight.h"
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

/* How it records, from its start to its end: mode-record.c, mode-flight.c */
struct mode_ops {
	const char *dir; /* of its files, below STATE/NAME */
	bool drains;	 /* workers, into segments */
	bool salvage;	 /* only empties and undoes what an earlier process left */
	/* There is an instance: do what leads to session_opened() */
	int (*open)(struct session *session, struct fault *why);
	/* From session_opened(): tracing on, and what it needs */
	int (*begin)(struct session *session, struct fault *why);
	/* It records: tell how */
	void (*tell)(const struct session *session);
	/* Another [Storage] or [Snapshot] is in force; @storage: the first is different */
	void (*reload)(struct session *session, bool storage);
	/* From begin_stop(): what leads to session_settle() */
	void (*stop)(struct session *session);
	/* Begin a snapshot; the job @cut makes the file, or finds what belongs to it; then
	 * @cut_done, which may be NULL */
	void (*snapshot)(struct session *session, const struct snapshot_order *order);
	int (*cut)(struct session *session, const struct snapshot_order *order,
		   struct snapshot_result *made, struct fault *why);
	void (*cut_done)(struct session *session);
	/* What a CPU has moved so far */
	void (*count)(const struct session *session, unsigned cpu, struct ledger_moved *ret);
	/* Everything goes but files and instance; unless @keep, what an FD store has, too */
	void (*release)(struct session *session, bool keep);
};

extern const struct mode_ops mode_record, mode_salvage, mode_flight;

/* spec.c */
struct session_spec {
	struct session_config *config;	/* in force; NULL when stopped */
	struct session_config *pending; /* to be in force after the stop that is under way */
	struct session_config *change;	/* its events shall be traced, as soon as they can be */
	bool reload;			/* they are those of a new configuration */
};

/* claim.c */
struct session_claim {
	int dir_fd;	     /* STATE/NAME */
	struct state *state; /* as in its state file */
	struct instance *instance;
	bool adopted; /* it still holds what an earlier process has not taken */
	bool paused;
	struct fault missing; /* of Unit=: what is not traced, and why */
	char *notes;	      /* the job's that writes them: the state file's text */
	struct state *left;   /* of the instance that goes on tracing while the disk is gone */
	bool was_mounted;     /* STATE/NAME is a file system of its own */
	bool note_failed;     /* in the runtime directory, last time */
};

/* mode-record.c: from the start of a session to its end; recording and drain are always there */
struct session_record {
	struct recording *recording; /* nothing is open in other modes */
	struct drain *drain;	     /* likewise */
	/* of each mode: where files go, and what they look like */
	struct recording_input files;
	struct recording_report report;
	struct own_clock steps[RECORDING_CLOCKS_MAX - 1]; /* of clocks, not in a file yet */
	size_t n_steps;
	int notify_fd; /* eventfd, written by workers */
	sd_event_source *notify_source, *flush_source;

	uint64_t segment_usec; /* monotonic: when the segment began */
	uint64_t synced_usec;  /* monotonic: last sync */
	uint64_t synced_bytes; /* drain_total_bytes() then */
	uint64_t overshoot;    /* bytes beyond a segment's limit until the next was there, lately */
	bool date_doubted;     /* the clock was set, or an earlier process made current.dat */
	uint64_t dated_usec;   /* monotonic: when a segment was last begun because of that */
	uint64_t retry_usec;   /* monotonic: not before then rotate again */
	uint64_t lost_usec;    /* monotonic: when losses were last reported */
	bool undrained;	       /* the recording ends, and the disk has not taken all of it */
	bool held;	       /* nothing is drained until the next segment is there */
	int next_error;	       /* of a rotation, as last reported */
	int sync_error;	       /* of a sync, as last reported */
	bool mapped;	       /* as last reported */
};

/* names.c */
struct session_names {
	sd_event_source *source; /* the next look */
	uint64_t look_usec;	 /* monotonic: the last one */
	uint64_t fetched_forks;	 /* of the machine, when names were last fetched because of them */
	uint64_t synced_forks;	 /* the same of the last sync because of them */
};

/* mode-flight.c */
struct session_flight {
	struct flight *flight;
	uint64_t from_nsec, to_nsec; /* of the snapshot under way, in the instance's clock */
	uint64_t keep_free;	     /* bytes; 0: it is worth all the room there is */
	sd_event_source *tick_source;
};

/* claim.c */
struct session_disk {
	struct disk_watch watch;
	int trouble;   /* as last reported */
	unsigned told; /* bits of the kinds of trouble in the log since all was well */
	bool away;     /* it was gone at the last try to start */
	sd_event_source *again_source;
};

/* counts.c */
struct session_counts {
	struct ledger ledger;	/* over the life of this object */
	uint64_t sampled_usec;	/* monotonic */
	struct reach *reach;	/* [ledger.n_cpus] of a flight session, with the last sample */
	uint64_t events_before; /* of a flight session, that its instance had when it began */
	uint64_t kept_files, kept_bytes; /* as the last job left them */
	struct retention_past past;	 /* likewise */
	uint64_t snapshots, snapshot_bytes;
	uint64_t recording_usec; /* monotonic: since when */
	struct last_hour hour;	 /* by CLOCK_BOOTTIME */
};

struct overhead_ask;

/* overhead.c */
struct session_overhead {
	sd_event_source *source;  /* the next look; NULL: there is no MaxOverhead= */
	struct overhead_ask *ask; /* a count or a calibration is under way */
	struct budget budget;
	double nsec;	       /* of an event; 0: not measured yet */
	double share;	       /* of the machine's CPU time, in the second before the last look */
	uint64_t looked_usec;  /* monotonic */
	uint64_t events;       /* that had come by then */
	uint64_t cpu_usec;     /* likewise, of the recorder */
	uint64_t counted_usec; /* monotonic: the last count of each event */
	unsigned low;	       /* looks in succession that saw next to nothing */
	bool silent;	       /* the last one saw no events at all */
	bool helpless;	       /* as last reported: nothing is left to be switched off */
	bool unknown;	       /* likewise: what tracing costs cannot be measured */
	char **shed;	       /* "SYSTEM:NAME": not recorded for now */
	struct own_sheds told; /* those and earlier ones, for the files */
	bool untold;	       /* the file does not say all of that */
	uint64_t ended; /* by the trace's clock: what an earlier process had shed is recorded again
			 */
};

/* snapshots.c: those that are wanted */
struct session_orders {
	struct snapshot_turn *requests; /* the first may be under way */
	bool copying;			/* job beside the steps: snapshot_order_make of the first */
	bool coresight_said;		/* that this machine has none */
	struct snapshot_join *join;	/* what later triggers may still join; or NULL */
	struct trigger_limit member_limit; /* of what members of group flyrec ask for */
};

/* tails.c: those who follow */
struct session_tails {
	struct session_tail *list;
	sd_event_source *source; /* the next round */
	uint64_t segment;	 /* number of the file that all workers are in */
	uint64_t bytes;		 /* drain_total_bytes() after the last round */
	bool round;		 /* one is under way */
	uint64_t began_nsec;	 /* by the instance's clock: the last one */
	bool confirm;		 /* the next one follows soon */
	bool is_new;		 /* somebody waits for two rounds */
};

struct session {
	const struct environment *env;
	const struct session_events *events;
	char *name;
	const struct mode_ops *mode;
	struct session_spec spec;
	struct session_claim claim;
	struct session_record rec;
	struct session_names names;
	struct session_flight flight;
	struct session_overhead overhead;
	struct session_disk disk;
	struct session_counts counts;
	struct compression compression;
	struct session_orders orders;
	struct peers peers; /* snapshots.c */
	struct session_tails tails;
	struct triggers *triggers;
	struct boot_trace *boot_trace; /* snapshots.c: being saved, or NULL */

	/* session.c */
	enum session_state state;
	enum session_step step;
	unsigned wants;	  /* enum session_want */
	bool left_behind; /* failed, and what an earlier process left is still in the kernel */
	struct fault failure;
	struct fault deferred;	      /* see session_defer() */
	sd_event_source *wake_source; /* see session_want() */
	struct session_waiter *waiters;
};

/* It is being stopped, and no other start follows */
static inline bool session_ends(const struct session *s)
{
	return s->wants & WANT_STOP && !s->spec.pending;
}

/* Beside the steps a snapshot is being copied from the session's files */
static inline bool session_copies(const struct session *s)
{
	return s->orders.copying;
}

/* Finished segments are to be compressed */
static inline bool session_is_to_compress(const struct session *s)
{
	return s->spec.config && s->mode->drains && !s->mode->salvage &&
	       s->spec.config->storage.compress != STORAGE_COMPRESS_NO;
}

/* Recording, for somebody, and not about to stop */
static inline bool session_records(const struct session *s)
{
	return session_steady(s) && !s->mode->salvage;
}

/* Its instance is in memory that outlives the kernel */
static inline bool session_is_kept(const struct session *s)
{
	return !s->mode->salvage && instance_is_kept(s->claim.instance);
}

/* --- session.c */

/* These are wanted: session_advance() soon, from the event loop */
void session_want(struct session *session, unsigned wants);
/* Do the next thing, if nothing is under way */
void session_advance(struct session *session);
/* What is traced ends, and begins anew as spec.pending says */
void session_restart(struct session *session);
/* From session_start() on: of what an earlier process left only the rest is wanted */
void session_set_mode(struct session *session, const struct mode_ops *mode);
/* Why it failed, or what trouble it has: told with its state */
void session_set_failure(struct session *session, const struct fault *failure);
void session_start(struct session *session);
/* after recording_open, or at once where there are no segments */
void session_opened(struct session *session, int result, const struct fault *why);
/* Stopped or failed, with nothing left to do */
void session_settle(struct session *session, enum session_state state);
/* The disk is gone, and nothing is in hand: close everything there */
void session_leave_disk(struct session *session);
/* Undo everything but files; the instance is removed unless @keep_instance */
void session_release(struct session *session, bool keep_instance);
/* Begin a step of the workers, who are asked next */
void session_begin_step(struct session *session, enum session_step step);
/* Begin a step that is a job; without a thread for it it fails */
void session_start_job(struct session *session, enum session_step step);
/* End a step that could not be begun, from the event loop: whoever begins it need not expect that
 */
void session_defer(struct session *session, enum session_step step, const struct fault *why);
/* The workers have told something: is their step over? */
void session_check_workers(struct session *session);
/* Those who wait for a rotation wait for the one that begins now; then its end */
void session_rotation_begins(struct session *session);
void session_rotation_done(struct session *session, int result, const char *text);
/* Those who wait for this are told, and forgotten */
void session_tell(struct session *session, enum session_wait what, int result, const char *text);

/* --- spec.c */

/* What comes to an end is followed by a start like this; the one in force itself is fine */
int session_pend(struct session *session, const struct session_config *config);
/* The instance is another's: @config, consumed, is what it takes to undo it; the one in force waits
 */
void session_set_aside(struct session *session, struct session_config *config);
/* The pending one is in force, or none */
void session_take_pending(struct session *session);
/* None is pending; @in_force: none is in force either */
void session_forget_spec(struct session *session, bool in_force);
/* limits from the configuration and the file system, bytes */
uint64_t session_max_file_size(const struct session *session);
uint64_t session_max_prealloc(const struct session *session);
void session_segment_limits(const struct session *session, struct retention_limits *ret);
void session_snapshot_limits(const struct session *session, struct retention_limits *ret);
/* the same where a member of group flyrec has asked for it: at the cost of no other snapshots, and
 * of no session's segments */
void session_member_limits(const struct session *session, struct retention_limits *ret);
/* SubBufferSize=auto: what a new instance is to have; where files go is open */
void session_choose_subbuf_size(struct session *session);
/* Before it has begun, when that failed with @error: if for lack of room retention may help.
 * Return: worth another try. */
bool session_make_room(struct session *session, int error);
/* Workers are in another file: if it has the formats, make the change that waits. The state file is
 * to be written then. Returns true if it was made. */
bool session_apply_change(struct session *session);
/* Can the change that waits be made before the next segment? */
bool session_change_fits(const struct session *session);
void session_drop_change(struct session *session, int result, const char *why);
/* between steps: what the kernel refuses makes it fail, by a restart */
void session_renew_triggers(struct session *session);
/* before anything is traced */
int session_prepare_triggers(struct session *session, struct fault *why);

/* --- claim.c */

/* STATE/NAME, and below it @name, unless that is NULL */
int session_open_dir(struct session *session, const char *name, int *ret, struct fault *why);
/* What an earlier process of this boot has left in the kernel and is to be taken up; NULL:
 * nothing. What is not to be taken up is removed. */
int session_find_left(struct session *session, struct state **ret, struct fault *why);
/* Take it up, consumed: to go on, or, if it does not fit, to drain and undo it */
int session_attach(struct session *session, struct state *left, struct fault *why);
/* A new one, noted in the state file */
int session_create_instance(struct session *session, struct fault *why);
/* of its instance, "flyrec.NAME", and the group of its probes; malloc'ed */
int session_instance_names(const struct session *session, char **ret_name, char **ret_group);
/* Let go of it all; the instance and what tells of it goes, too, unless @keep */
void session_drop_claim(struct session *session, bool keep);
/* It shall go on tracing without us: session_find_left() finds it again */
void session_leave_claim(struct session *session);
/* STATE/NAME may be on another file system next time */
void session_forget_place(struct session *session);
/* Tracing on, unless an earlier process was asked to pause */
int session_trace(struct session *session, struct fault *why);
/* Unit=: trace the processes that are there now; say so when there are none, or some again */
void session_refresh_units(struct session *session);
/* Counters from which the segment's losses are counted; @boundary: see ledger_base() */
int session_note_base(struct session *session, bool boundary);
/* Tracing begins: it is counted from now on, unless an earlier process has noted from where, and
 * into the state file */
int session_note_start(struct session *session, struct fault *why);
/* So many bytes of a CPU may have been lost with an earlier process */
void session_note_in_flight(struct session *session, unsigned cpu, uint64_t bytes);
/* It is the next process's, which can rely on it that nothing is in our hands, if that is @in_order
 */
void session_note_handed_over(struct session *session, bool in_order);
/* These events are traced; these are watched */
void session_note_trace(struct session *session, const char *trace_text);
int session_note_watched(struct session *session, char *const *events, struct fault *why);
/* The state file's text for a job, which session_write_notes() is part of: it, and what the next
 * boot must know */
void session_prepare_notes(struct session *session);
int session_write_notes(void *userdata, struct fault *why);
/**
 * session_note_synced() - after a sync: what the disk has confirmed of the file
 * session_forget_synced() - before it is finished, and with the instance; any thread
 * session_forget_file() - likewise, of the file of this id, which was finished at the start; 0:
 * none
 */
void session_note_synced(struct session *session);
void session_forget_synced(const struct session *session);
void session_forget_file(struct session *session, uint64_t file_id);
/* What the file has lost since it was left, or confirmed, counts as not written, and is said */
void session_count_missing(struct session *session);
/* What is in the kernel, and how much the file has, of a session that lets go of its disk */
void session_note_away(struct session *session);
void session_forget_away(const struct session *session);

/* --- mode-record.c; in the order of a session's life */

/* Where its files go; half-made ones of an earlier process are removed */
int session_open_files(struct session *session, struct fault *why);
int session_prepare_files(struct session *session, struct fault *why);
/* What the next file's header says of the instance as it is now */
int session_prepare_segment(struct session *session, struct fault *why);
/* Microseconds between two flushes: FlushSec=, or less where what is flushed could not be synced in
 * time */
uint64_t session_tick_usec(const struct storage_config *storage);
/* bytes of a CPU's ring buffer */
uint64_t session_buffer_size(const struct session *session);
int session_run_open(void *userdata, struct fault *why);
/* Compare the instance with the configuration, and repair. False when the session ends over it. */
bool session_check_instance(struct session *session);
/* rotation: begin_next, NEXT, RETARGETING, FINISHING */
void session_begin_next(struct session *session);
int session_run_next(void *userdata, struct fault *why);
void session_on_next(struct session *session, int result, const struct fault *why);
void session_on_retargeted(struct session *session, int result, const struct fault *why);
int session_run_finish(void *userdata, struct fault *why);
void session_on_finished(struct session *session, int result, const struct fault *why);
void session_begin_sync(struct session *session);
int session_run_sync(void *userdata, struct fault *why);
void session_on_synced(struct session *session, int result, const struct fault *why);
/* end: DRAINING, CLOSING; or LEAVING */
void session_on_drained(struct session *session, int result, const struct fault *why);
int session_run_close(void *userdata, struct fault *why);
void session_on_closed(struct session *session, int result, const struct fault *why);
void session_on_left(struct session *session, int result, const struct fault *why);
/* What a job has found out, after each */
void session_harvest(struct session *session);
/* A segment or a snapshot: the memory that it took, some MB, is the machine's again */
void session_file_is_made(void);
/* The wall clock was set, or the machine suspended: what the clocks say now goes into the file */
void session_read_clocks(struct session *session);
/* What they say now, for a snapshot of another file's data */
void session_clocks_now(const struct session *session, struct own_clocks *ret);
/* The date of current.dat may be wrong by now */
void session_doubt_date(struct session *session);
/* between steps, while it is doubted: if it is too much, the next segment is wanted */
void session_check_date(struct session *session);

/* --- names.c: of tasks */

#define SESSION_FORKS_MAX 8192U /* new tasks, until names are fetched */
/* Data comes: fetch names if many tasks are new, or look again a little later */
void session_look_for_names(struct session *session);
void session_stop_looking(struct session *session);
/* Tasks made since the last sync because of them; that sync begins */
uint64_t session_new_forks(struct session *session);
void session_forks_synced(struct session *session, uint64_t forks);

/* --- overhead.c */

/* Tracing has begun; nothing without MaxOverhead= */
void session_overhead_begin(struct session *session);
/* Data comes: look at it soon */
void session_overhead_data(struct session *session);
/* Other events are to be traced: everything is on, and what is being counted is of no use */
void session_overhead_restore(struct session *session);
/* Which events were not recorded, for the next step. Return: 0 or -ENOMEM. */
int session_overhead_tell(const struct session *session, struct file_plan *plan);
/* @keep_instance: for the next process, with everything on */
void session_overhead_end(struct session *session, bool keep_instance);

/* --- mode-flight.c */

/* Method= or Memory= may be different now */
void session_change_flight(struct session *session);
int session_run_capture(void *userdata, struct fault *why);
void session_captured(struct session *session, int result, const struct fault *why);

/* --- claim.c: the disk */

#define SESSION_AGAIN_USEC (5 * USEC_PER_SEC)
/* Is a negative @error one of these, which are positive? */
bool session_is_error_of(int error, const int *errors, size_t n);
/* A start begins; it was a success */
void session_watch_disk(struct session *session);
void session_disk_is_back(struct session *session);
void session_report_trouble(struct session *session);
/* The disk is full, as far as we were told: retention may help */
bool session_disk_full(const struct session *session);
/* Start it again then; microseconds from now */
void session_try_again(struct session *session, uint64_t usec);
/* A start has failed: if it is for the disk, keep what there is, and try again later */
bool session_failed_for_disk(struct session *session, int error);
/* No more tries; unless handing over, the instance goes too */
void session_end_away(struct session *session, bool hand_over);

/* --- counts.c */

/* Tracing begins */
int session_begin_counting(struct session *session);
/* It began earlier: what was lost since is this segment's */
void session_count_from(struct session *session, const struct ledger_base *base, unsigned n_cpus);
/* Take the counters over; also before workers and instance go */
void session_sample(struct session *session);
/* Unless that was just done */
void session_sample_now_and_then(struct session *session);
/* Job, at a start: there are snapshots already */
void session_count_snapshots(struct session *session);
/* The finished files there are, as a job has counted them */
void session_count_kept(struct session *session, uint64_t files, uint64_t bytes);
/* A job has counted files */
void session_count_files(struct session *session, const struct recording_report *report);

/* --- snapshots.c: is there the trace of a boot that died? */

/**
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

/* --- snapshots.c */

extern const struct trigger_host session_trigger_host;
extern const struct peer_host session_peer_host;
/* Is there one whose turn it is? */
bool session_snapshot_waits(const struct session *session);
void session_begin_snapshot(struct session *session);
int session_run_cut(void *userdata, struct fault *why);
void session_cut_done(struct session *session, int result, const struct fault *why);
/* answer all that wait: the session has stopped or failed */
void session_drop_snapshots(struct session *session);

/* --- latency-feed.c: see struct trigger_host */

int session_open_latency(void *session, struct latency_feed *ret, struct fault *why);

/* --- tails.c */

/* Workers have told something: is a round over? */
void session_tail_check(struct session *session);
/* All workers are in the next file; recording_old() is the one before */
void session_tail_moved(struct session *session);
/* One more who follows, for OnLatency=: it gets all rounds, with their times, one a second */
int session_open_watch(struct session *session, int *ret_fd, struct fault *why);
/* @why: an enum tail_end */
void session_tail_end(struct session *session, unsigned why);
