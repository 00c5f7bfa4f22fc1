/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a session does with its files, step by step; each step may wait for the disk and so runs as
 * a job, one at a time a session. Nothing here logs: what is worth telling comes back as notes.
 */
#pragma once

#include <stdatomic.h>

#include "engine/file-plan.h"
#include "writer/retention.h"

#define SEGMENT_NOTES_MAX 16

/* Lines for the log, in the order they happened */
struct segment_note {
	int level; /* LOG_DEBUG … LOG_ERR */
	struct fault fault;
};

struct segment_notes {
	struct segment_note items[SEGMENT_NOTES_MAX];
	size_t n;
};

/* All that the steps need; filled in by the session on the main thread before each job */
struct segment {
	int dir_fd;	       /* STATE/NAME/record */
	struct file_plan plan; /* of the next file */
	struct retention_limits limits;
	atomic_bool held_open;	    /* a snapshot is being copied out of finished files */
	uint64_t *evicted;	    /* [n_cpus]: sub-buffers removed by retention, to be counted */
	uint64_t *unsure;	    /* [n_cpus]: bytes that may not be on the disk, to be counted */
	uint64_t kept_files;	    /* finished files, at the last look */
	uint64_t kept_bytes;	    /* on the disk */
	struct retention_past past; /* of them */
	bool sparse_left;	    /* finished files may wait to be made dense */
	bool unfinished_left;	    /* something could not be finished: to be tried again */
	uint64_t archived_id;	    /* of the current.dat that was finished at the start; 0: none */
	uint64_t eio_usec;	    /* monotonic: first read error of what is left; survives done */
	bool scan_tasks;	    /* look at /proc as well */
	char **cpustat;		    /* [n_cpus]: texts of the last CPUSTAT options */
	bool adopt;		    /* the instance still holds what follows current.dat */
	char *slots;		    /* partial sub-buffers an earlier process left, or NULL */
	struct trace_file *file;    /* current.dat; NULL: none open */
	struct trace_file *old;	    /* the one before, on its way to the archive */
	int64_t clock_usec;	    /* file_age_offset_usec() when current.dat was made, or found */
	int64_t old_clock_usec;	    /* of the one before */
	char old_name[64];	    /* its name now */
	char archive[64];	    /* its name then; "" if it was removed, being empty */
	char **finished;	    /* names of all that came into the archive: to be announced */
	struct segment_notes notes;
};

/* Frees what it owns, and closes files */
void segment_done(struct segment *segment);

/**
 * segment_open() - step: put right what an earlier process left, then begin or continue current.dat
 * Return: 0 with file set, or negative errno with @why.
 */
int segment_open(struct segment *segment, struct fault *why);

/**
 * segment_begin_next() - step: make the next current.dat; the old one becomes old_name, still open
 * On error everything is as before.
 */
int segment_begin_next(struct segment *segment, struct fault *why);

/**
 * segment_finish_old() - step: last names and statistics, synced, into the archive; closes it
 * A file without data is removed.
 */
int segment_finish_old(struct segment *segment, struct fault *why);

/**
 * segment_close_current() - between steps: current.dat is complete, make it the old one
 */
void segment_close_current(struct segment *segment);

/* The task names that are known now into current.dat; not a step of its own */
void segment_refresh_names(struct segment *segment);

/**
 * segment_sync() - step: retention; names and statistics into current.dat, data to the disk;
 * finished files that somebody had open when they were finished are made dense, and what could not
 * be finished is tried again
 */
int segment_sync(struct segment *segment, struct fault *why);

/**
 * segment_probe_disk() - does the disk, which was gone, take writes to current.dat again?
 * Thread: job. Return: 0, or negative errno with @why.
 */
int segment_probe_disk(struct segment *segment, struct fault *why);
