/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compressing by zstd, each block a frame with its size and a checksum of its content. Owner: the
 * caller; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "basic/fault.h"
#include "basic/macro.h"

struct compressor;

/**
 * compressor_new() - @level: of zstd
 * Return: 0, -ENOMEM, or -EOPNOTSUPP with a line in @why: built without zstd.
 */
int compressor_new(int level, struct compressor **ret, struct fault *why);
void compressor_free(struct compressor *c);
DEFINE_CLEANUP(struct compressor *, compressor_free)

/**
 * compressor_version() - of the library: "1.5.4"
 */
const char *compressor_version(void);

/**
 * compressor_bound() - bytes that a block of @size may become
 */
size_t compressor_bound(size_t size);

/**
 * compressor_block() - a block at once
 * @to: with room for compressor_bound() of it
 * @ret: bytes there
 */
int compressor_block(struct compressor *c, const void *bytes, size_t size, void *to, size_t *ret,
		     struct fault *why);

/**
 * compressor_begin() - a block that comes in pieces, @size bytes in all
 */
int compressor_begin(struct compressor *c, uint64_t size, struct fault *why);

/**
 * compressor_put() - the next piece of it
 * @end: it is the last one
 * @out: where what is compressed goes
 * Return: 0, or negative errno with a line in @why.
 */
int compressor_put(struct compressor *c, const void *bytes, size_t size, bool end, FILE *out,
		   struct fault *why);
