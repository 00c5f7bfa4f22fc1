/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of several hosts, or of several sessions of one, as one trace.dat of version 6: each ring
 * buffer is one with the name HOST:SESSION, all times are by one clock (writer/merge-axis.h), ids
 * of events are made to agree (writer/merge-formats.h), and a pid that is another task on another
 * host has the names of both (writer/merge-names.h). Symbols are in the file where they are the
 * same on all; else addresses are numbers for readers that know one host only. What each file said
 * by itself is in a frame of its own (formats/own-hosts.h).
 *
 * Sub-buffers are read and written once, front to back; memory does not depend on their number.
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/fault.h"

struct merge_input {
	const char
		*path; /* for messages; where it is below a session's directory it has its name */
	const char *host; /* NULL: as the file says */
	int fd;		  /* stays the caller's */
	/* It is a KVM guest's, whose TSC is so much ahead of the host's; else the file may say so
	 */
	bool has_tsc_offset;
	int64_t tsc_offset;
};

struct merge_options {
	/* Hears of what is damaged and was left out; NULL: that is an error */
	void (*told)(void *userdata, const char *line);
	void *userdata;
};

struct merge_report {
	char *text;	     /* malloc'ed: a line a ring buffer: how its times were moved, and how
				right its clock was; the file has it, too */
	size_t shared_names; /* pids that are other tasks on other hosts */
	bool symbols_differ; /* so that the file has none for all */
	size_t n_apart;	     /* files that have nothing of the time of any other one */
};

/**
 * merge_files() - write the file
 * @out_fd: a new file, open for reading, too
 * @ret: undo with merge_report_done()
 * Return: 0, or negative errno with a line in @why that names what does not fit.
 */
int merge_files(const struct merge_input *inputs, size_t n, int out_fd,
		const struct merge_options *options, struct merge_report *ret, struct fault *why);
void merge_report_done(struct merge_report *report);
