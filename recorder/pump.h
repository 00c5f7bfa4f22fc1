/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pump moves one CPU's sub-buffers from the kernel's ring buffer into that CPU's region of a
 * file:
 *
 *   trace_pipe_raw ──splice──▶ pipe ──splice──▶ region      full sub-buffers, by reference
 *   trace_pipe_raw ──readv──▶ memory ──pwrite──▶ region     or by copy, where that is cheaper
 *   trace_pipe_raw ──read────▶ slot ──pwrite──▶ region      the partial one, on the flush timer
 *
 * Pipe and memory are the worker's, shared by its pumps; the slot is the CPU's own. What a killed
 * process leaves in there is not lost when their fds are kept elsewhere: pump_adopt() and
 * pump_init() take them up again. A CPU has data in one of them at a time.
 *
 * readv takes what there is, so that a pump faster than the writer would chase it, and fill the
 * file with sub-buffers that are nearly empty. After a wake-up, which means that so much of the
 * ring buffer is full, it takes so much and no more: the quota. A flush goes the other way.
 *
 * Owner: the session makes and frees pumps on the main thread; pump_run() and pump_retarget() are
 * called by one worker thread only. No locks, no logging, no allocation in those.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "basic/fault.h"
#include "recorder/staging.h"

#define PUMP_STATS_SIZE 512

/* Where a CPU's data goes. Plain values from the writer; fds stay the caller's. */
struct pump_target {
	int data_fd;	    /* O_DIRECT where the file system takes it */
	int buffered_fd;    /* the same file through the page cache; the size is published here */
	uint64_t region;    /* file offset, bytes */
	uint64_t room;	    /* bytes the region can hold */
	uint64_t size;	    /* bytes there already, a multiple of the sub-buffer size */
	uint64_t size_at;   /* file offset of this CPU's 8-byte size */
	uint64_t chunk_max; /* preallocation, bytes at a time at most */
};

/* What a run ended with; negative errno beside these: the disk's (or the kernel's) error. */
enum pump_result {
	PUMP_E_EMPTY = 1, /* nothing more now */
	PUMP_E_MORE,	  /* the budget is used up, there may be more */
	PUMP_E_FULL,	  /* the region is full: give it another target */
	PUMP_E_HELD,	  /* another CPU's data waits in the pipe: nothing was taken */
};

struct pump {
	unsigned cpu;
	unsigned subbuf_size;
	int trace_fd;
	struct staging *staging;     /* the worker's */
	struct staging *left;	     /* what an earlier process had in another pipe, or NULL */
	char *slot;		     /* one sub-buffer, in the slots memfd */
	int stats_fd;		     /* per_cpu/cpuN/stats, or -1 */
	char stats[PUMP_STATS_SIZE]; /* its text when the last segment ended, NUL-terminated */
	struct pump_target target;
	uint64_t size;	    /* bytes in the region, including an incomplete sub-buffer */
	uint64_t allocated; /* bytes of the region with disk blocks behind them */
	uint64_t chunk;	    /* next preallocation */
	bool no_prealloc;   /* the file system has none */
	/* read by the main thread */
	_Atomic uint64_t published;	/* bytes in the current region that readers may rely on */
	_Atomic uint64_t total_bytes;	/* moved since pump_init() */
	_Atomic uint64_t subbufs;	/* moved since pump_init() */
	_Atomic uint64_t dropped_bytes; /* taken from the ring buffer and not written */
	_Atomic bool full;		/* the last run ended for want of room in the region */
	_Atomic int trouble;		/* 0, or the negative errno of the last run */
	_Atomic unsigned quota; /* written by the main thread: sub-buffers to read after a wake-up;
				   0: splice */
	_Atomic bool behind;	/* the last flush left something in the ring buffer */
	_Atomic bool mapped_elsewhere; /* somebody has mapped this CPU: splice gives nothing, read
					  does */
};

/**
 * pump_init() - take over a CPU's fds
 * @trace_fd: trace_pipe_raw, non-blocking; consumed
 * @stats_fd: per_cpu/cpuN/stats, or -1; consumed
 * @staging: shared with the other pumps of the worker; stays the caller's
 * @slot: one sub-buffer of page-aligned shared memory, maybe with data in it; stays the caller's
 * Thread: main.
 */
void pump_init(struct pump *pump, unsigned cpu, unsigned subbuf_size, int trace_fd, int stats_fd,
	       struct staging *staging, char *slot);

/**
 * pump_adopt() - take up what an earlier process left of this CPU
 * @left: the pump's own, or one that is of no use any more when it is in the file: then it is
 *        "emptied". Stays the caller's.
 * Thread: main, before any worker runs.
 */
void pump_adopt(struct pump *pump, struct staging *left);

/**
 * pump_set_target() - the first target, before any worker runs
 * Of a sub-buffer that an earlier process left torn between file and pipe the rest is dropped and
 * counted. What waits in the slot is taken for unwritten: see recover_file(). Thread: main.
 */
void pump_set_target(struct pump *pump, const struct pump_target *target);

/**
 * pump_pending() - bytes that are in hand, in the pipe or the slot, and in no file yet
 * Thread: main, between two runs.
 */
uint64_t pump_pending(const struct pump *pump);

/**
 * pump_written() - bytes of whole sub-buffers in the file, also those it does not tell of yet
 * Thread: main, between two runs.
 */
uint64_t pump_written(const struct pump *pump);

/**
 * pump_note_stats() - the kernel's counters as they are now, between two runs, into pump->stats
 * Thread: worker.
 */
void pump_note_stats(struct pump *pump);

/**
 * pump_retarget() - go on in another file (rotation)
 * What is in hand goes to the old file first, if that still takes it; the counters of this moment
 * are noted. Thread: worker.
 */
void pump_retarget(struct pump *pump, const struct pump_target *target);

/**
 * pump_run() - move what one CPU has ready into its region and publish it
 * @flush: the partial sub-buffer too
 * @budget: pipe-fulls to move at most
 * Thread: worker. Fds stay the pump's.
 * Return: an enum pump_result, or negative errno (-ENOSPC before anything was taken out of the ring
 * buffer where the file system preallocates; else it waits in the pipe, and the worker's other CPUs
 * with it: run the pump that holds it). Calling again is safe.
 */
int pump_run(struct pump *pump, bool flush, unsigned budget);

/* Bytes that one pull can bring */
uint64_t pump_capacity(const struct pump *pump);

/* Closes fds */
void pump_done(struct pump *pump);
