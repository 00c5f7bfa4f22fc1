/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the data of one CPU at a time is between ring buffer and file: a worker's pipe, which its
 * pumps share. It outlives a killed process when its fds are kept elsewhere, and so does a note,
 * in shared memory, of whose data is in it: written before anything is.
 *
 * Made by engine/drain on the main thread; used by one worker thread only.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pump;

/* In shared memory. The pipe is told by its inode: a note is of no other that bears its name. */
struct staging_note {
	uint64_t pipe;		   /* inode, 0: the note is free */
	_Atomic uint32_t pipe_cpu; /* whose data is in it: CPU + 1; 0: it is empty */
	uint32_t reserved;
};

struct staging {
	int pipe_read, pipe_write;
	unsigned pipe_subbufs;	   /* that fit */
	uint64_t in_pipe;	   /* bytes */
	struct pump *holder;	   /* whose data that is; NULL: empty */
	struct staging_note *note; /* NULL: an earlier version's, which had a pipe for each CPU */
	_Atomic bool emptied;	   /* only kept for what was in it, which is in the file now */
};

/**
 * staging_make() - with a new pipe, as large as may be
 * Thread: main. Return: 0 or negative errno.
 */
int staging_make(struct staging *staging, struct staging_note *note);

/**
 * staging_adopt() - with the pipe of an earlier process, maybe with data; @pipe_read is consumed on
 * success
 * Thread: main. Return: 0 or negative errno.
 */
int staging_adopt(struct staging *staging, struct staging_note *note, int pipe_read);

/* Of a pipe; 0: it is none */
uint64_t staging_inode(int pipe);

/* Closes; what is in it is gone unless it is open elsewhere */
void staging_done(struct staging *staging);

/* Data of this pump goes into it next. Thread: worker. */
void staging_hold(struct staging *staging, struct pump *pump);

/* All of it is in the file, or dropped. Thread: worker. */
void staging_release(struct staging *staging);
