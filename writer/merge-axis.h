/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The times of several files, of several hosts maybe, on one axis: by how much those of each are
 * moved, and how well that is known. Plain memory, any thread.
 *
 * The axis is the clock of the file whose clock has run longest, so that nothing is moved to before
 * 0. Files of the same boot with the same clock stay as they are to each other, and so do those of
 * a host and its KVM guests, by the offsets of the guests (formats/time-shift.h). All others are
 * told apart by the wall clocks of their machines: by the readings that flyrec keeps
 * (formats/own-clocks.h), to the nanosecond, with the error that the kernel gave; else by the DATE
 * of the file, and then nobody knows how wrong that was. Clocks that drift against the wall clock,
 * as local and mono_raw do, are moved as a whole, too: by how much they drifted in the file's time
 * is in the error.
 *
 * Cycles of x86-tsc become nanoseconds if one of the files with that clock says how long they are.
 * Files of one clock need no more than that: it may count what it likes, without a wall clock.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "formats/own-clocks.h"
#include "formats/time-shift.h"
#include "formats/trace-dat-read.h"

struct axis_file {
	const char *path;	     /* for messages; borrowed */
	char clock[32];		     /* as in Clock= */
	uint8_t boot_id[16];	     /* 0: not known */
	uint64_t id;		     /* its TRACEID; 0: it has none */
	struct time_shift shift;     /* of a KVM guest, which names its host's id; else of no CPU */
	bool shift_given;	     /* the host is the first file that is no guest's */
	struct time_rate nsec;	     /* how long a cycle is; off: it does not tell */
	bool has_readings, has_date; /* else the file does not tell */
	int64_t offset;		     /* realtime minus the clock, nanoseconds */
	int64_t date_usec;	     /* as in the file */
	uint64_t error;		     /* nanoseconds; OWN_HOST_ERROR_UNKNOWN */

	/* What axis_place() says */
	uint64_t moved; /* to be added, behind axis_rate() */
	size_t same_as; /* the first file with this very clock; itself: none */
	bool dated;	/* offset and date_usec are known, maybe by another file of this clock */
};

/**
 * axis_read() - what a file knows of its clock
 * @dat: its path outlives @ret
 * @ret: undo with axis_done()
 * Return: 0 or negative errno with @why: -EBADMSG: what it says of its host's clock makes no sense.
 */
int axis_read(const struct trace_dat *dat, struct axis_file *ret, struct fault *why);
void axis_done(struct axis_file *file);

/**
 * axis_set_offset() - the file is a KVM guest's, of the first file that is none
 * @offset: what its TSC is ahead of the host's: tsc-offset of the host's debugfs
 * Return: 0 or -ENOMEM.
 */
int axis_set_offset(struct axis_file *file, uint32_t n_cpus, int64_t offset);

/**
 * axis_place() - how much each is moved
 * @files: at least one
 * @ret: whose clock the axis is
 * Return: 0, or -EINVAL with @why: they have different clocks, one of which does not count
 * nanoseconds, or does not know the time of day.
 */
int axis_place(struct axis_file *files, size_t n, size_t *ret, struct fault *why);

/**
 * axis_rate() - what is to be done with times of a CPU before they are moved; after axis_place()
 */
struct time_rate axis_rate(const struct axis_file *file, uint32_t cpu);

/**
 * axis_of_readings() - take in the readings that a file has
 */
void axis_of_readings(struct axis_file *file, const struct own_clocks *clocks);
