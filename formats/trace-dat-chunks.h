/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The compressed data of a CPU in a file of version 7, which formats/trace-dat-v7.h draws: a number
 * and as many chunks, each with its head, which form a chain. Where it is broken the next chunk is
 * looked for by the magic of zstd. Where an index has the chunks, and agrees with the first and the
 * last of them, no others are looked at; what it says of one is compared when that is unpacked.
 */
#pragma once

#include <stdint.h>

#include "formats/trace-dat-damage.h"

struct trace_dat_data;
struct trace_dat_index;

/* Set up by the caller; all chunks of a file together use it */
struct chunk_source {
	struct trace_dat_data *data; /* what is found is added here */
	struct damages *damages;
	const struct trace_dat_index *index; /* or NULL */
	uint64_t index_place;		     /* in the file */
	int fd;
	uint64_t size;	    /* of the file */
	uint32_t page_size; /* of sub-buffers */
	unsigned n_resyncs; /* so often a next chunk was looked for, which a bad file must not have
			       us do without end */
};

/**
 * chunks_put() - add the chunks of one CPU to the data, by the index or as they are found
 * @place, @size: where they are, as the file says; the size may be wrong
 * @ret_end: place behind the last one that was found
 * Damages are told and stop nothing. Return: 0 or negative errno.
 */
int chunks_put(struct chunk_source *source, uint32_t cpu, uint64_t place, uint64_t size,
	       uint64_t *ret_end);

/**
 * chunks_find() - the chunks of the next CPU where nothing says their place
 * @end: of where they may be
 * @place: from here on, or from the next multiple of a sub-buffer's size; set to where they are
 * @ret_size: up to @end if their chain is broken
 * Return: 1, 0 there are none, or negative errno.
 */
int chunks_find(const struct chunk_source *source, uint64_t end, uint64_t *place,
		uint64_t *ret_size);
