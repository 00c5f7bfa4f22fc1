/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker with pipes for ring buffers and a memfd for the files. The program that uses it wraps
 * splice, epoll_wait and pwrite (see Makefile.am): splice gives only whole sub-buffers from a ring,
 * as the kernel does; epoll_wait is counted. Fails the test when something does not work. Deadlines
 * are long, nothing waits for them when all is right.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/macro.h"
#include "recorder/worker.h"

#define SUBBUF	    4096
#define N_CPUS	    3
#define ROOM	    (4 * MIB)
#define DEADLINE_MS 20000

/* What the wrapped calls do; the real thing after fixture_begin() */
extern struct world {
	_Atomic bool splice_empty; /* rings give nothing, as with a partial or mapped page */
	_Atomic int disk_error;	   /* errno of all data written to the file */
	_Atomic bool slow_pulls;   /* a ring that never runs dry: see test_free_while_draining() */
} world;

struct fixture {
	int ring[N_CPUS]; /* the ends to write to */
	int ring_read[N_CPUS];
	int file, notify;
	char *slots;
	struct staging_note note;
	struct staging staging;
	struct pump pumps[N_CPUS];
	struct pump *order[N_CPUS];
	struct pump_target next[N_CPUS];
	_Atomic int64_t bytes_left;
	struct worker *worker;
};

/* A worker of all CPUs that runs; f->next is where it goes with WORKER_RETARGET */
void fixture_begin(struct fixture *f, int64_t bytes_left);
void fixture_end(struct fixture *f);

/* @n sub-buffers with @commit bytes of events into a ring */
void fixture_put(struct fixture *f, unsigned cpu, unsigned n, uint32_t commit);

/* Bytes in a ring that nobody has taken yet */
unsigned fixture_in_ring(struct fixture *f, unsigned cpu);

/* Bytes written, of all CPUs; wait until they are so many sub-buffers */
uint64_t fixture_total(struct fixture *f);
void fixture_wait_total(struct fixture *f, uint64_t subbufs);

/* Has the worker written to the eventfd, within @ms? How often (in all since asked last) */
uint64_t fixture_notified(struct fixture *f, int ms);

/* Post a request, and wait until it is done and said so */
void fixture_request(struct fixture *f, enum worker_request what);

/* The size of a CPU's region that the file says, bytes; @file 0: the first, 1: that in f->next */
uint64_t fixture_size_in_file(struct fixture *f, unsigned file, unsigned cpu);

/* At most so many wake-ups in a while that is long enough for a spinning thread to be caught */
void fixture_assert_idle(unsigned at_most);
