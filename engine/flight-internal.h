/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flight.c (methods), flight-capture.c and flight-take.c (from the kernel) and
 * flight-export.c (to the disk) share.
 */
#pragma once

#include <pthread.h>

#include "engine/flight.h"
#include "recorder/ring-copy.h"
#include "writer/carry.h"

/* One CPU's part of a capture */
struct flight_cpu {
	struct ring_copy copy;		/* mapped */
	const struct carry_item *items; /* else: of the carry */
	size_t next, end;		/* of those */
	char *buffer;			/* page-aligned; NULL: nothing of this CPU */
	size_t buffer_size;		/* bytes, of which no more is touched than it takes */
	char *memory;			/* where the buffer is; stays for the next capture */
	size_t memory_size;
	size_t lead;	     /* sub-buffers to be ahead of the kernel, mapped */
	size_t chunk;	     /* sub-buffers written at a time */
	size_t n;	     /* sub-buffers in the buffer */
	uint64_t written;    /* bytes in the file */
	uint64_t first_nsec; /* of the first sub-buffer there */
	struct cpu_stats stats;
	bool has_stats;
	struct ledger_moved counts; /* of exports, for flight_add_counts() */
};

struct flight {
	struct flight_params params;
	enum flight_method method;
	bool automatic;	  /* Method=auto: another one if that cannot be had */
	bool swap_failed; /* the last capture, over that */
	bool taken;	  /* something out of the kernel, by the last capture */
	unsigned n_cpus, subbuf_size;
	struct flight_cpu *cpus;     /* [n_cpus]; the job's while one is under way */
	struct ledger_moved *counts; /* [n_cpus]; main thread */
	struct carry *carry;	     /* NULL: nothing taken yet */
	uint64_t from_nsec, to_nsec;
	size_t share;	   /* of Memory=, a CPU's, in sub-buffers */
	struct fault *why; /* of the step under way, behind lock */
	pthread_mutex_t lock;
};

/* The memory of the buffers too: nothing more will be captured */
void flight_drop_memory(struct flight *flight);

/* As many sub-buffers as may be taken out of the kernel, by its counters of now */
uint64_t flight_count_subbufs(struct flight *flight);

/* A fault of an item of parallel work; the first one stays. Return: @error. */
int flight_fault(struct flight *flight, int error, const char *format, ...) _printf_(3, 4);

/**
 * flight_fill() - the next sub-buffers of a CPU, oldest first
 * @ret_n: fewer than @max: those were the last
 */
int flight_fill(struct flight *flight, struct flight_cpu *cpu, char *to, size_t max, size_t *ret_n);

/* Is the copy far enough ahead of the kernel to wait for the disk? */
bool flight_is_ahead(const struct flight *flight, struct flight_cpu *cpu);

/* Sub-buffers that flight_fill() may still give, at most */
size_t flight_left(const struct flight *flight, const struct flight_cpu *cpu);

/* The CPUs of one thread, in turn, so that each is ahead of its writer soon */
struct flight_group {
	struct flight *flight;
	unsigned n; /* of groups: CPU i is in group i % n */
};

/**
 * flight_fill_group() - buffers of group @group's CPUs, and as much into them as goes before
 * anything is written
 * Return: 0 or negative errno, told as flight_fault() does.
 */
int flight_fill_group(struct flight_group *g, unsigned group);

/**
 * flight_take() - capture by swap or drain: all of the ring buffer into the carry, then the buffers
 */
int flight_take(struct flight_group *g);

/* Of one CPU, at most */
size_t flight_ring_subbufs(const struct flight *flight);
