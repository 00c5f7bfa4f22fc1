/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a session does with its segments, step by step; each step may wait for the disk and so runs
 * as a job, one at a time a session. What it needs is const meanwhile, what it has found out comes
 * back as a report. Nothing here logs: what is worth telling is in the report's notes.
 *
 *	open ─▶ begin_next ─▶ (workers change files) ─▶ finish_old ─▶ begin_next …
 *	at the end: close_current ─▶ finish_old
 *	sync: at any time but between begin_next and finish_old
 */
#pragma once

#include "basic/fault.h"
#include "engine/file-plan.h"
#include "writer/recover.h"
#include "writer/retention.h"
#include "writer/store.h"

#define RECORDING_NOTES_MAX  16
#define RECORDING_CLOCKS_MAX 8

/* What the steps need; changed between them only */
struct recording_input {
	int dir_fd;	       /* STATE/NAME/record */
	struct file_plan plan; /* of the next file */
	struct retention_limits limits;
	struct own_clock clocks[RECORDING_CLOCKS_MAX]; /* readings for the file of the next step */
	size_t n_clocks;
	char **cpustat; /* [n_cpus]: texts of the last CPUSTAT options, each may be NULL; or NULL */
	bool adopt;	/* the instance still holds what follows current.dat */
	struct recover_hand hand; /* to recording_open(): what an earlier process had in hand */
};

/* Lines for the log, in the order they happened */
struct recording_note {
	int level; /* LOG_DEBUG … LOG_ERR */
	struct fault fault;
};

struct recording_notes {
	struct recording_note items[RECORDING_NOTES_MAX];
	size_t n;
};

struct recording_report {
	struct recording_notes notes;
	unsigned n_cpus;
	uint64_t *evicted; /* [n_cpus]: sub-buffers removed by retention */
	uint64_t *unsure;  /* [n_cpus]: bytes that may not be on the disk */
	bool counted;	   /* the finished files were: the next three are of now */
	uint64_t kept_files;
	uint64_t kept_bytes; /* on the disk */
	struct retention_past past;
	bool names_fill;	/* of the current file: begin the next one soon */
	unsigned plain_evicted; /* segments removed by retention before they were compressed */
	char **finished;	/* names of all that came into the archive: to be announced */
	char archive[STORE_NAME_SIZE]; /* of the old one; "" if it was removed, being empty */
	uint64_t archived_id; /* of the current.dat that recording_open() finished; 0: none */
};

int recording_report_init(struct recording_report *report, unsigned n_cpus);
/* For the next step */
void recording_report_clear(struct recording_report *report);
void recording_report_done(struct recording_report *report);

struct recording;

int recording_new(struct recording **ret);

/* NULL is fine */
void recording_free(struct recording *recording);

/* As after recording_new(); how long what is left has been unreadable stays known */
void recording_close(struct recording *recording);

/* That is of no interest any more: the session is stopped, or fails for another reason */
void recording_forget_errors(struct recording *recording);

/**
 * recording_open() - step: put right what an earlier process left, then begin or continue
 * current.dat
 * Return: 0, or negative errno with @why.
 */
int recording_open(struct recording *recording, const struct recording_input *in,
		   struct recording_report *report, struct fault *why);

/**
 * recording_begin_next() - step: make the next current.dat; the one before stays open
 * On error everything is as before.
 */
int recording_begin_next(struct recording *recording, const struct recording_input *in,
			 struct recording_report *report, struct fault *why);

/**
 * recording_finish_old() - step: last names and statistics, synced, into the archive; closes it
 * A file without data is removed.
 */
int recording_finish_old(struct recording *recording, const struct recording_input *in,
			 struct recording_report *report, struct fault *why);

/**
 * recording_sync() - step: retention; names and statistics into current.dat, data to the disk;
 * finished files that somebody had open when they were finished are made dense, and what could not
 * be finished is tried again
 */
int recording_sync(struct recording *recording, const struct recording_input *in,
		   struct recording_report *report, struct fault *why);

/**
 * recording_probe_disk() - does the disk, which was gone, take writes to current.dat again?
 * Thread: job. Return: 0, or negative errno with @why.
 */
int recording_probe_disk(struct recording *recording, struct fault *why);

/* The task names that are known now into current.dat. Thread: job, as a part of another step */
void recording_refresh_names(struct recording *recording, const struct recording_input *in,
			     struct recording_report *report);

/* Between steps: current.dat is complete, make it the old one */
void recording_close_current(struct recording *recording);

/* A snapshot is being copied out of finished files: to delete them frees nothing. Any time. */
void recording_hold_open(struct recording *recording, bool hold);

/* current.dat and the one before, between steps; NULL: there is none */
struct trace_file *recording_file(const struct recording *recording);
struct trace_file *recording_old(const struct recording *recording);

/* file_age_offset_usec() when current.dat was made, or found */
int64_t recording_clock_usec(const struct recording *recording);
