/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The times of several files, of several hosts maybe, on one axis: by how much those of each are
 * moved, and how well that is known. Plain memory, any thread.
 *
 * The axis is the clock of the file whose clock has run longest, so that nothing is moved to before
 * 0. Files of the same boot with the same clock stay as they are to each other. All others are told
 * apart by the wall clocks of their machines: by the readings that flyrec keeps
 * (formats/own-clocks.h), to the nanosecond, with the error that the kernel gave; else by the DATE
 * of the file, and then nobody knows how wrong that was. Clocks that drift against the wall clock,
 * as local and mono_raw do, are moved as a whole, too: by how much they drifted in the file's time
 * is in the error.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "formats/own-clocks.h"
#include "formats/trace-dat-read.h"

struct axis_file {
	char clock[32];		     /* as in Clock= */
	uint8_t boot_id[16];	     /* 0: not known */
	bool has_readings, has_date; /* else the file does not tell */
	int64_t offset;		     /* realtime minus the clock, nanoseconds */
	int64_t date_usec;	     /* as in the file */
	uint64_t error;		     /* nanoseconds; OWN_HOST_ERROR_UNKNOWN */
	uint64_t moved;		     /* what axis_place() says: to be added */
	size_t same_as;		     /* the first file with this very clock; itself: none */
};

/**
 * axis_read() - what a file knows of its clock
 * Return: 0; -EINVAL: its clock does not count nanoseconds, or it does not know the time of day; or
 * another negative errno; with @why.
 */
int axis_read(const struct trace_dat *dat, struct axis_file *ret, struct fault *why);

/**
 * axis_place() - how much each is moved
 * @files: at least one
 * Return: whose clock the axis is.
 */
size_t axis_place(struct axis_file *files, size_t n);

/**
 * axis_of_readings() - take in the readings that a file has
 */
void axis_of_readings(struct axis_file *file, const struct own_clocks *clocks);
