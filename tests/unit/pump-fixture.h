/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pump with a pipe in the place of trace_pipe_raw, a memfd in that of the file, and sub-buffers
 * that can be told apart. The program that uses it wraps splice, fallocate, pwrite, read and readv
 * (see Makefile.am), so that disks can fill up, fail and be slow to order; without orders they do
 * the real thing. Fails the test when something does not work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "basic/macro.h"
#include "recorder/pump.h"

/* Where things are in the file */
#define REGION	      (64 * KIB)
#define ROOM	      (8 * MIB)
#define SIZE_AT	      1024
#define OTHER_SIZE_AT 2048 /* of another target, which a test makes */

/* What the wrapped calls do next: an errno, or a length to stop at; 0: the real thing */
struct order {
	int error;
	size_t most;
};

struct calls {
	struct order queue[16];
	unsigned n, next;
	unsigned calls; /* that there were */
};

/* What the wrapped calls see and do; all zero after fixture_open() but for the fds */
extern struct world {
	int trace_fd, direct_fd;
	int read_error;	     /* of the trace fd; 0: the real thing */
	bool splice_empty;   /* of the trace fd: EAGAIN, as with a partial or mapped page */
	bool direct_refused; /* EINVAL for all that goes to direct_fd */
	unsigned direct_calls;
	const struct staging_note *note;
	uint32_t noted;		 /* what it said when something was last pulled by splice */
	struct calls pull, push; /* splice from the trace fd, and into the file */
	struct calls fallocate, pwrite_data, pwrite_size;
	off_t allocated_from, allocated_to; /* by the last fallocate */
} world;

/* One more order for a kind of calls, behind those that it has */
void world_order(struct calls *calls, int error, size_t most);

struct fixture {
	unsigned subbuf;
	int ring; /* the end of the fake ring buffer to write to */
	int file, direct;
	char *slot, *memory;
	struct staging_note note;
	struct staging staging;
	struct pump pump;
	struct pump_target target;
	uint64_t made; /* sub-buffers */
};

/*
 * A pump that has no target yet; @f->target is one for it.
 * @pipe_read: the pipe of a killed process with this CPU's data, or -1; @slot: malloc'ed, @subbuf
 * bytes; both taken over
 */
void fixture_open(struct fixture *f, unsigned subbuf, int pipe_read, char *slot);

/* The same with an empty slot and its target set */
void fixture_begin(struct fixture *f, unsigned subbuf);
void fixture_end(struct fixture *f);

/* Sub-buffer number @n: its timestamp is 1000 + n, every byte of its data n */
void fixture_make_subbuf(char *bytes, unsigned size, uint64_t n, uint32_t commit);

/* The same with memory to read into, @quota sub-buffers in a run */
void fixture_begin_read(struct fixture *f, unsigned subbuf, unsigned quota);

/* No sub-buffer is left in that memory, and it is nobody's */
void fixture_assert_no_memory_used(struct fixture *f);

/* Write the next @n full ones to the ring buffer; or such with @commit bytes of events to @fd */
void fixture_put(struct fixture *f, unsigned n);
void fixture_put_into(struct fixture *f, int fd, unsigned n, uint32_t commit);

/* Sub-buffers that nobody has taken yet */
unsigned fixture_in_ring(struct fixture *f);

/* Is there a sub-buffer in the slot? */
bool fixture_slot_used(struct fixture *f);

/* The size that the file says at @at, bytes */
uint64_t fixture_size_in_file(struct fixture *f, uint64_t at);

/* The file holds exactly sub-buffers @first … @first + @n - 1, and says so */
void fixture_assert_data(struct fixture *f, uint64_t first, uint64_t n);
