/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events of several CPUs and ring buffers in the order of their times; of equal times the lower
 * buffer, then the lower CPU comes first, as in trace-cmd. Where sub-buffers come from is the
 * caller's affair: a file's regions, or what a live tail gets. One thread; blocks may be let go of
 * by others.
 */
#pragma once

#include <stdatomic.h>

#include "basic/fault.h"
#include "decode/decode.h"

/* Whole sub-buffers, one behind the other */
struct merge_block {
	atomic_uint refs;
	uint64_t kept;	 /* serial of the struct merge_keep that has it last */
	uint64_t offset; /* in the file, for messages */
	size_t size;
	uint8_t bytes[];
};

/**
 * merge_block_new() - room for @size bytes; the caller's is the one reference
 */
struct merge_block *merge_block_new(size_t size);

/**
 * merge_block_unref() - any thread
 */
void merge_block_unref(struct merge_block *block);

/* The blocks that a set of events points into */
struct merge_keep {
	uint64_t serial; /* another one for each set, not 0 */
	struct merge_block **blocks;
	size_t n, room;
};

/**
 * merge_keep_clear() - let go of the blocks
 */
void merge_keep_clear(struct merge_keep *keep);
void merge_keep_done(struct merge_keep *keep);

struct merge_source {
	uint32_t cpu, buffer;
	/* The next sub-buffers, of which *ret becomes the merge's: 1, 0 nothing (now), or negative
	 */
	int (*read)(void *userdata, struct merge_block **ret, struct fault *why);
	void *userdata;
};

struct merge;

/**
 * merge_new() - of the sub-buffers of a file
 * @pair_leaves: show a function that calls no other as one event, see decoder_is_leaf()
 * @on_fault: a sub-buffer was broken, its rest is left out
 */
int merge_new(const struct decoder *decoder, const struct subbuf_layout *layout, bool pair_leaves,
	      void (*on_fault)(void *userdata, const char *text), void *userdata,
	      struct merge **ret);
struct merge *merge_free(struct merge *merge);
DEFINE_CLEANUP(struct merge *, merge_free)

/**
 * merge_add() - one CPU of one buffer; in the order in which equal times are wanted
 */
int merge_add(struct merge *merge, const struct merge_source *source);

/**
 * merge_next() - the next event
 * @keep: gets the blocks that @ret points into; until it is cleared, @ret is good
 * @ret: all but the task
 * Return: 1, 0 when all sources have nothing (now), or negative errno with the story in @why.
 */
int merge_next(struct merge *merge, struct merge_keep *keep, struct decode_event *ret,
	       struct fault *why);

/**
 * merge_set_until() - as if there were no events later than @until (now)
 * Where a function's end is later than that, it is not paired.
 */
void merge_set_until(struct merge *merge, uint64_t until);

/**
 * merge_peek() - the time of the event that merge_next() would return
 * Return: as merge_next().
 */
int merge_peek(struct merge *merge, uint64_t *ret, struct fault *why);

/**
 * merge_retry() - ask the sources that had nothing again
 */
void merge_retry(struct merge *merge);
