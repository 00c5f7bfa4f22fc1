/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace file of gdb as import reads it: its description, and its frames in order, as often as
 * they are wanted. What is read is checked; a window of it is in memory at a time. Main thread.
 */
#pragma once

#include "convert/convert.h"
#include "convert/gdb/gdb-record.h"

struct gdb_input;

/**
 * gdb_input_open() - read the description, and find the byte order of the frames
 * @import: stays the caller's, and must outlive the object
 *
 * A pipe is read to its end, into a file without a name in $TMPDIR or /var/tmp. Lines of the
 * description that mean nothing to us are logged. The byte order is that of --endian=, or that in
 * which the first frames make sense: little if both.
 * Return: 0; -EBADMSG: none of gdb's, or damaged; -EINVAL: --endian= is neither; -EINTR: asked to
 * stop; or negative errno.
 */
int gdb_input_open(const struct import *import, struct gdb_input **ret, struct fault *why);
struct gdb_input *gdb_input_free(struct gdb_input *input);
DEFINE_CLEANUP(struct gdb_input *, gdb_input_free)

/**
 * gdb_input_tfile() - the description
 */
const struct gdb_tfile *gdb_input_tfile(const struct gdb_input *input);

/**
 * gdb_input_big_endian() - the byte order of registers and memory
 */
bool gdb_input_big_endian(const struct gdb_input *input);

/* A frame, with what its blocks have together; pointers are good as long as it is at hand */
struct gdb_input_frame {
	uint32_t number;	     /* from 0 */
	struct gdb_tfile_frame head; /* its place in the file, for messages; its tracepoint */
	const uint8_t *bytes;	     /* the blocks, head.size bytes */
	struct gdb_shape shape;
	int64_t values[GDB_RECORD_VARIABLES]; /* of shape.variables; the last one counts */
	const uint8_t *registers;	      /* the first block of them, if shape.has_registers */
	uint32_t n_more, n_memory; /* blocks of variables without room in the shape; of memory */
};

typedef int gdb_input_take(void *userdata, const struct gdb_input_frame *frame);

/**
 * gdb_input_each() - hand over each frame, from the first one on
 * @take: returns 0 to go on, or negative errno, which ends it
 * Return: 0, or what @take returned; or, with the reason in @why, -EBADMSG: damaged, -EINTR: asked
 * to stop, or negative errno.
 */
int gdb_input_each(struct gdb_input *input, gdb_input_take *take, void *userdata,
		   struct fault *why);

/**
 * gdb_input_block() - the next block of the frame at hand
 * @pos: 0 for the first; moved on
 * Return: 1, 0 behind the last, -EBADMSG with the reason in @why.
 */
int gdb_input_block(const struct gdb_input *input, const struct gdb_input_frame *frame,
		    uint32_t *pos, struct gdb_tfile_block *ret, struct fault *why);

/**
 * gdb_input_value() - what the frame has of a variable
 * @number: 0: of none
 * Return: the value, NULL if it is not among frame->values.
 */
const int64_t *gdb_input_value(const struct gdb_input_frame *frame, uint32_t number);
