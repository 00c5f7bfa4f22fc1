/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the frame of a trace.dat has in both versions, taken over into another file in its own byte
 * order, whatever this machine's is: for pack.c and unpack.c. Any thread, one a stream.
 */
#pragma once

#include <stdio.h>

#include "formats/own-section.h"
#include "writer/region-read.h"

/* A text as it is in the file: bytes to put in front of it, where it is, and a newline behind it */
struct frame_text {
	uint8_t prefix[8];
	size_t prefix_size;
	struct trace_dat_extent text;
	bool newline;
};

/**
 * frame_number() - write a number of @size bytes
 * Return, here and below: 0 or negative errno.
 */
int frame_number(FILE *out, const struct trace_dat *dat, size_t size, uint64_t value);

/**
 * frame_names() - the task names without the newlines that fill them up, and their size in front
 * The last one has its newline, also where the file has lost it: trace-cmd cuts the names off when
 * they grow while it reads them.
 */
int frame_names(const struct trace_dat *dat, struct frame_text *ret, struct fault *why);

/**
 * frame_option() - write an option's head: @size bytes of data have to follow
 */
int frame_option(FILE *out, const struct trace_dat *dat, uint16_t id, uint32_t size);

/**
 * frame_options() - write the options that mean the same in both versions, in their order: all but
 * the places of ring buffers, and what names sections of version 7; and the number of CPUs, which
 * version 7 has nowhere else
 */
int frame_options(FILE *out, const struct trace_dat *dat, struct fault *why);

/**
 * frame_own() - the bytes of flyrec's own section: what the file's has, but the index of its chunks
 * @more: an entry to add, or NULL
 * @told: hears of an entry that is damaged and left out
 * @ret: malloc'ed; NULL with @ret_size 0: there is nothing to write
 */
int frame_own(const struct trace_dat *dat, const struct own_entry *more,
	      struct region_read_told told, uint8_t **ret, size_t *ret_size, struct fault *why);
