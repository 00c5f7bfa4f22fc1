/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loss accounting of a session, per CPU. The kernel's counters are read here once for three
 * consumers: totals over the life of the daemon, the text at the end of each file (CPUSTAT), and
 * the log. They begin anew with each instance, those of the pumps with each start; the totals never
 * go back. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "recorder/instance.h"

/* Totals of a CPU */
struct ledger_cpu {
	uint64_t subbufs;	 /* taken out of the ring buffer and written */
	uint64_t bytes;		 /* the same in bytes */
	uint64_t overrun;	 /* events overwritten before anyone read them */
	uint64_t commit_overrun; /* events lost because the ring buffer was full of unfinished ones
				  */
	uint64_t dropped_events; /* events not taken, with overwrite off */
	uint64_t lost_events;	 /* events that the sub-buffers' headers say are missing */
	uint64_t torn;		 /* sub-buffers overwritten while a snapshot copied them */
	uint64_t evicted;	 /* sub-buffers that retention removed */
	uint64_t not_written;	 /* sub-buffers taken out and not written (disk full, I/O error) */
};

/* What a CPU's pump, or its snapshots, have moved so far; may begin anew */
struct ledger_moved {
	uint64_t subbufs, bytes, not_written, torn;
};

/* The kernel's counters of a CPU when the current segment began */
struct ledger_base {
	uint64_t overrun, commit_overrun, dropped_events, read_events;
	uint64_t in_flight; /* bytes in pipes that may have been lost since, by kills */
};

/* What a CPU has in a file */
struct ledger_file {
	uint64_t bytes;
	uint64_t dropped_bytes; /* not written, in this file and those before it */
	unsigned subbuf_size;
	bool ends;	/* it gets no more */
	bool undrained; /* and the ring buffer keeps the rest */
	const char *more;
};

struct ledger_source;

struct ledger {
	unsigned n_cpus;
	struct ledger_cpu *cpus;
	/* of all CPUs */
	uint64_t bytes;
	uint64_t events;      /* traced, whatever became of them */
	uint64_t lost;	      /* events, of all kinds */
	uint64_t not_written; /* sub-buffers: the events in them nobody has counted */
	uint64_t first_loss_usec, last_loss_usec; /* realtime; 0: nothing was lost yet */
	uint64_t untold;			  /* events lost since the last ledger_told() */

	/* ledger.c only */
	struct ledger_source *sources; /* [n_cpus]: counters as last read */
	bool overwrites, foreign;
};

/**
 * ledger_begin() - this instance begins to record; totals that are there already stay
 * What it has counted so far is not ours.
 * @overwrites: a flight session: what is overwritten is no loss
 * @foreign: what is counted there is not ours and does not go into the totals
 * Return: 0 or -ENOMEM.
 */
int ledger_begin(struct ledger *ledger, const struct instance *instance, bool overwrites,
		 bool foreign);
void ledger_done(struct ledger *ledger);

/* What it has counted since @base is ours, too */
void ledger_count_from(struct ledger *ledger, unsigned cpu, const struct ledger_base *base);

/**
 * ledger_read() - read the kernel's counters of a CPU, and add what has come since the last time
 * A counter that is lower than last time has begun anew, at 0. Where the kernel's cannot be read
 * they stay as they were.
 * @now_usec: realtime, noted if events were lost
 * Return: the counters, or NULL if they could not be read; valid until the next call.
 */
const struct cpu_stats *ledger_read(struct ledger *ledger, const struct instance *instance,
				    unsigned cpu, const struct ledger_moved *moved,
				    uint64_t now_usec);

/* The kernel's text of when a CPU's worker left the file that ends; beside the totals, which may be
 * of later */
void ledger_end_file(struct ledger *ledger, unsigned cpu, const char *stats);

/**
 * ledger_base() - from where the next segment counts
 * @boundary: as of ledger_end_file(), else of ledger_read()
 */
struct ledger_base ledger_base(const struct ledger *ledger, unsigned cpu, bool boundary);

/**
 * ledger_text() - the words of trace-cmd's CPUSTAT, counted from the segment's begin; then our own
 * What was not written is said in one file only, though it may be found when the next has begun.
 * @base: NULL: nothing was noted
 * Return: malloc'ed, or NULL: no memory, or nothing known.
 */
char *ledger_text(struct ledger *ledger, unsigned cpu, const struct ledger_base *base,
		  const struct ledger_file *file);

/* Sub-buffers that retention has removed */
void ledger_evict(struct ledger *ledger, unsigned cpu, uint64_t subbufs);

/* The log has the losses */
void ledger_told(struct ledger *ledger);
