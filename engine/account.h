/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loss accounting of a session, per CPU, over the life of the daemon: what was recorded, what was
 * lost, and why. The kernel's counters begin anew with each instance and the pumps' with each
 * start; here they are added up, so that these never go back. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

struct cpu_account {
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

/* Counters as their sources have them now; they may begin anew */
struct account_raw {
	uint64_t subbufs, bytes, not_written;		  /* of the pump, or of snapshots */
	uint64_t torn;					  /* of snapshots */
	uint64_t overrun, commit_overrun, dropped_events; /* of the kernel */
};

struct account {
	unsigned n_cpus;
	struct cpu_account *cpus;
	struct account_raw *last;
	bool overwrites; /* a flight session: what is overwritten is no loss */
	uint64_t first_loss_usec, last_loss_usec; /* realtime; 0: nothing was lost yet */
};

/**
 * account_prepare() - room for @n_cpus; counts that are there already stay
 * Return: 0 or -ENOMEM.
 */
int account_prepare(struct account *account, unsigned n_cpus);
void account_done(struct account *account);

/**
 * account_begin() - a source of counters begins at @raw: what it has counted before is not ours
 */
void account_begin(struct account *account, unsigned cpu, const struct account_raw *raw);

/**
 * account_add() - add what has come since the last look
 * A counter that is lower than last time has begun anew, at 0.
 * @now_usec: realtime, noted if events were lost
 */
void account_add(struct account *account, unsigned cpu, const struct account_raw *raw,
		 uint64_t now_usec);

/* Sub-buffers that retention has removed */
void account_evict(struct account *account, unsigned cpu, uint64_t subbufs);

/* Events lost, of all CPUs and kinds */
uint64_t account_lost(const struct account *account);

/* Sub-buffers taken out and not written, of all CPUs: the events in them nobody has counted */
uint64_t account_not_written(const struct account *account);
