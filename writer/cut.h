/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A snapshot of a `record` session: the sub-buffers of a time range, cut out of any number of
 * segments and the live file into one dense trace.dat. What is found by binary search costs by the
 * result, not by the archive. A file has one clock, one size of sub-buffers, and numbers of events
 * and addresses of one kernel: what is otherwise than the newest is left out. Nothing is changed in
 * the sources; workers may write to the live one meanwhile. Not while one of them is being
 * collapsed. Any thread.
 */
#pragma once

#include "basic/fault.h"
#include "writer/own-content.h"

struct cut;

/* What the file says of itself, beside its data */
struct cut_note {
	const char *text; /* trigger, host, session: shown by trace-cmd report --stat */
	struct own_content
		own; /* its clocks: readings of now, for what is of this boot and clock */
};

struct cut_report {
	uint64_t bytes; /* of trace data */
	uint64_t events;
	uint64_t lost_events; /* as far as the kernel has said how many */
	uint64_t begin_usec; /* realtime of the first and the last sub-buffer, if the clock tells */
	uint64_t end_usec;
	unsigned files;		 /* that the data came from */
	unsigned left_out_files; /* of that time as well, but of another boot, clock or shape */
};

/**
 * cut_open() - find what holds the time from @from_usec to @to_usec
 * @dir_fd: STATE/NAME/record
 * @from_usec, @to_usec: realtime, both included; whole sub-buffers are taken, so events shortly
 *                       before and after come with them. 0 and UINT64_MAX: all there is
 * Return: 0; -ENODATA when there is nothing of that time; -EOPNOTSUPP when it is not all and the
 * session's clock counts no time; or negative errno; @why names file and reason.
 */
int cut_open(int dir_fd, uint64_t from_usec, uint64_t to_usec, struct cut **ret, struct fault *why);

/* Bytes of the file that cut_write() makes, about: its data, and what its newest source begins with
 */
uint64_t cut_size(const struct cut *cut);

/* The boot that it is from, 16 bytes; all 0: its files do not tell */
const uint8_t *cut_boot_id(const struct cut *cut);

/**
 * cut_write() - make the file: temporary name, synced, then renamed to @name
 * Readings of clocks that its sources have around that time go with it.
 * Return: 0, or negative errno with nothing left behind.
 */
int cut_write(const struct cut *cut, int dir_fd, const char *name, const struct cut_note *note,
	      struct cut_report *ret, struct fault *why);

/**
 * cut_write_unnamed() - the same for a file that is only read again: no name, not synced
 * @name: ".NAME.new" while it is made
 * @ret_fd: at its end it is gone
 */
int cut_write_unnamed(const struct cut *cut, int dir_fd, const char *name, int *ret_fd,
		      struct cut_report *ret, struct fault *why);

/* NULL is fine */
void cut_free(struct cut *cut);

DEFINE_CLEANUP(struct cut *, cut_free)
