/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the data of one CPU at a time is between ring buffer and file: a worker's pipe, or its
 * memory, which its pumps share. It outlives a killed process when its fds are kept elsewhere, and
 * so does a note, in shared memory, of whose data it is: written before there is any. In the memory
 * a sub-buffer whose time is not 0 is in no file yet.
 *
 * Made by engine/drain on the main thread; used by one worker thread only.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "basic/macro.h"

#define STAGING_MEMORY (2 * MIB)

struct pump;

/* In shared memory. The pipe is told by its inode: a note is of no other that bears its name. */
struct staging_note {
	uint64_t pipe;	      /* inode, 0: the note is free */
	_Atomic uint32_t cpu; /* whose data it is: CPU + 1; 0: there is none */
	uint32_t reserved;
};

struct staging {
	int pipe_read, pipe_write;
	unsigned pipe_subbufs;	   /* that fit */
	uint64_t in_pipe;	   /* bytes */
	char *memory;		   /* STAGING_MEMORY bytes; NULL: none */
	uint64_t populated;	   /* bytes of it that are there for certain */
	uint64_t memory_at;	   /* where that begins in it which is in no file yet */
	uint64_t in_memory;	   /* bytes of that */
	struct pump *holder;	   /* whose data it is; NULL: there is none */
	struct staging_note *note; /* NULL: an earlier version's, which had a pipe for each CPU */
	_Atomic bool emptied;	   /* only kept for what was in it, which is in the file now */
};

/**
 * staging_make() - with a new pipe, as large as may be; a note that is not free keeps its CPU
 * Thread: main. Return: 0 or negative errno.
 */
int staging_make(struct staging *staging, struct staging_note *note);

/**
 * staging_adopt() - with the pipe of an earlier process, maybe with data; @pipe_read is consumed on
 * success
 * Thread: main. Return: 0 or negative errno.
 */
int staging_adopt(struct staging *staging, struct staging_note *note, int pipe_read);

/**
 * staging_use_memory() - STAGING_MEMORY bytes, page-aligned and shared, maybe with data that an
 * earlier process has read; stays the caller's
 * Thread: main, before any worker runs.
 */
void staging_use_memory(struct staging *staging, char *memory, unsigned subbuf_size);

/* Of a pipe; 0: it is none */
uint64_t staging_inode(int pipe);

/* Closes; what is in the pipe is gone unless it is open elsewhere */
void staging_done(struct staging *staging);

/* Data of this pump comes next. Thread: worker. */
void staging_hold(struct staging *staging, struct pump *pump);

/* All of it is in the file, or dropped. Thread: worker. */
void staging_release(struct staging *staging);

/**
 * staging_populate() - so many bytes of the memory, which takes none until it is used; a copy into
 * it that fails in the middle would lose data Thread: worker. Return: are they there?
 */
bool staging_populate(struct staging *staging, uint64_t size);

/* Bytes in it */
static inline uint64_t staging_bytes(const struct staging *staging)
{
	return staging->in_pipe + staging->in_memory;
}
