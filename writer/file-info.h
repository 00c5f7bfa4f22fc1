/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a list of recordings says about a trace.dat: from when until when, of how many CPUs. Reads
 * the header, and the first and last sub-buffer of each CPU. Any thread.
 */
#pragma once

#include "basic/macro.h"

struct file_info {
	uint64_t bytes;	     /* on the disk */
	uint64_t raw_bytes;  /* of one that flyrecd has compressed: before; else the same */
	uint64_t start_usec; /* realtime of the first data; 0: the file does not tell */
	uint64_t end_usec;   /* realtime of the last event */
	unsigned n_cpus;
};

/**
 * file_info_read() - a finished file, or one that is being written
 * @name: its last part; where the clock counts no time its own time is the start
 * Return: 0 or negative errno if it is no trace.dat.
 */
int file_info_read(int fd, const char *name, struct file_info *ret);
