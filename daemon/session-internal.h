/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a session that its modules share: session.c (states), session-start.c (from nothing
 * to recording, or failed), session-tick.c (what the flush timer looks after).
 */
#pragma once

#include "daemon/drain.h"
#include "daemon/segment.h"
#include "daemon/session.h"
#include "daemon/state.h"

/* What a session waits for; only one thing at a time */
enum session_step {
	STEP_NONE,
	STEP_OPENING,	  /* job: segment_open */
	STEP_NEXT,	  /* job: segment_begin_next */
	STEP_RETARGETING, /* workers */
	STEP_FINISHING,	  /* job: segment_finish_old, and recording goes on */
	STEP_SYNCING,	  /* job: segment_sync */
	STEP_DRAINING,	  /* workers: to the end */
	STEP_LEAVING,	  /* workers: empty their hands */
	STEP_CLOSING,	  /* job: segment_finish_old, the last one */
};

struct session {
	struct daemon *daemon;
	char *name;
	struct session_config *config;	/* in force; NULL when stopped */
	struct session_config *pending; /* to be in force after the stop that is under way */
	enum session_state state;
	enum session_step step;
	bool stop_wanted, hand_over, rotate_wanted, sync_wanted;
	bool salvage; /* only emptying and undoing what an earlier process left */
	struct fault failure;

	int dir_fd;	      /* STATE/NAME */
	struct state *kernel; /* as in its state file */
	struct instance *instance;
	struct segment segment;
	struct drain drain;
	int notify_fd; /* eventfd, written by workers */
	sd_event_source *notify_source, *flush_source;

	uint64_t segment_usec; /* monotonic: when the segment began */
	uint64_t synced_usec;  /* monotonic: last sync */
	uint64_t synced_bytes; /* drain_total_bytes() then */
	uint64_t overshoot;    /* bytes beyond a segment's limit until the next was there, lately */
	uint64_t retry_usec;   /* monotonic: not before then rotate again */
	uint64_t forks;	       /* of the machine, at the last look at task names */
	uint64_t lost;	       /* events, as last reported */
	uint64_t lost_usec;    /* monotonic: when that was */
	int trouble;	       /* of the disk, as last reported */
	int next_error;	       /* of a rotation, as last reported */
	int sync_error;	       /* of a sync, as last reported */
	bool mapped;	       /* as last reported */
};

uint64_t session_now_usec(void);

/* session.c: do the next thing, if nothing is under way */
void session_advance(struct session *session);
void session_fail(struct session *session, const struct fault *why);
/* begin a step that is a job */
void session_start_job(struct session *session, enum session_step step);
int session_on_notify(sd_event_source *source, int fd, uint32_t revents, void *userdata);
uint64_t session_max_file_size(const struct session *session);

/* session-start.c */
void session_start(struct session *session);
/* after segment_open: pumps, workers, tracing on */
int session_begin_recording(struct session *session, struct fault *why);
/* what the next file's header says of the instance as it is now */
int session_prepare_segment(struct session *session, struct fault *why);
/* counters from which the segment's losses are counted; written to the state file */
int session_note_base(struct session *session, bool boundary, struct fault *why);
/* undo everything but files; tracing instance is removed unless @keep_instance */
void session_release(struct session *session, bool keep_instance);

/* session-tick.c */
int session_on_flush(sd_event_source *source, uint64_t usec, void *userdata);
/* @boundary: as the workers noted them when they left the last file, not as they are now */
int session_read_stats(struct session *session, unsigned cpu, bool boundary, struct cpu_stats *ret);
void session_prepare_stats(struct session *session, bool final);
void session_report_trouble(struct session *session);
/* The disk is full, as far as we were told: retention may help */
bool session_disk_full(const struct session *session);
