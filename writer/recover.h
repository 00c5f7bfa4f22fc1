/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Making a file whole that its writer left in the middle of things: killed (what is in the file is
 * right, the sizes may lag behind) or cut off from power (the sizes may have run ahead of the
 * data). Runs before any worker writes to the file; any thread.
 */
#pragma once

#include "writer/trace-file.h"

struct recover_report {
	uint64_t adopted; /* bytes found beyond the recorded sizes */
	uint64_t cut;	  /* bytes of sizes taken back: zeros, or what no kernel wrote */
	bool kept_cut;	  /* some of those were not zeros: kept in NAME.cpuN.damaged */
	bool unreadable;  /* some the disk could not read: nonsense, too */
};

/* Sub-buffers of a CPU. Those that are in the file, whole or not, are cut off, to be written again.
 */
struct recover_batch {
	unsigned cpu;
	const char *bytes;
	uint64_t size;
};

struct recover_hand {
	char *slots; /* one sub-buffer a CPU: those that have reached the file are cleared */
	struct recover_batch *batches;
	size_t n_batches;
};

/**
 * recover_file() - correct the sizes of all CPUs
 * @name: of the file in @dir_fd; the names of what is set aside begin with it
 * @hand: what the earlier process had in its hands and the file has maybe, or NULL
 * From the recorded tail back, down to the size last synced (to 0 if the file was cut from
 * outside): sub-buffers that are zero or insane are taken off. From there on: what has a sane
 * header and events and a time not before its predecessor's is taken in; never written blocks read
 * as zeros and end it. Return: 0 or negative errno with @why set.
 */
int recover_file(struct trace_file *file, int dir_fd, const char *name,
		 const struct recover_hand *hand, struct recover_report *ret, struct fault *why);
