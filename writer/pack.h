/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace.dat of any kind as one of version 7, compressed or not; formats/trace-dat-v7.h draws it.
 * Sections lie behind each other without gaps, as readers walk over them; the data of a CPU is in
 * chunks of whole sub-buffers, and an index of their times is in flyrec's own section. The place of
 * the options, at the file's beginning, is written last: a file that has none was not finished.
 *
 * Any thread; what is read may be read by others at the same time through other objects. Memory:
 * less than 16 MiB with chunks of 1 MiB, whatever the file.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "basic/fault.h"
#include "formats/trace-dat-read.h"

#define PACK_LEVEL 1
#define PACK_CHUNK MIB

struct pack_options {
	int level;	/* of zstd; 0: not compressed */
	uint32_t chunk; /* bytes of a chunk, rounded down to whole sub-buffers, at least one */
	bool check;	/* read all of it again and compare */
	const atomic_bool *cancel; /* set by another thread: stop; or NULL */
	/* Hears of what is damaged and was left out; NULL: that is an error */
	void (*told)(void *userdata, const char *line);
	void *userdata;
};

struct pack_result {
	uint64_t raw_bytes, packed_bytes; /* of the data of CPUs */
	uint64_t file_bytes;
};

/**
 * pack_file() - write @in as version 7
 * @out_fd: an empty file at its beginning, for reading and writing; its data is synced, its name
 *	is the caller's
 * Return: 0; or negative errno with a line in @why, and a file that is worth nothing: -ECANCELED,
 * -EBADMSG (damaged, and nobody is told; or not the same when read again), -EOPNOTSUPP (built
 * without zstd), -ENOSPC and others.
 */
int pack_file(const struct trace_dat *in, int out_fd, const struct pack_options *options,
	      struct pack_result *ret, struct fault *why);
