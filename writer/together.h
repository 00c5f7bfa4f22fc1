/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A snapshot of several sessions: their files side by side in one trace.dat, each a ring buffer of
 * its own (option BUFFER), which readers show interleaved by time with the sessions' names. The
 * file's own ring buffer, which has no name, is empty. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "writer/cut.h"

/* What must be the same of all of them: a trace.dat has it only once */
struct together_shape {
	const char *name;  /* of the session */
	const char *clock; /* as in Clock= */
	unsigned n_cpus;
};

/**
 * together_compare() - can the two be in one file?
 * Return: 0, or -EOPNOTSUPP with a line in @why that names both and what is different.
 */
int together_compare(const struct together_shape *a, const struct together_shape *b,
		     struct fault *why);

struct together_part {
	const char *name; /* of the session */
	int fd;		  /* a trace.dat with one ring buffer; -EBADF: nothing of that time */
	bool other_boot;  /* then: there was something, of another boot than the others' */
};

/**
 * together_write() - make the file: temporary name, synced, then renamed to @name
 * @parts: at least one has a file; formats, symbols and names of all are merged, of those that
 *         differ the last one's count, or of one with larger sub-buffers, if there is any
 * @ret: events are not counted
 * Return: 0, or negative errno with nothing left behind; @why names session and reason.
 */
int together_write(const struct together_part *parts, size_t n, int dir_fd, const char *name,
		   const struct cut_note *note, struct cut_report *ret, struct fault *why);
