/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One event of a trace.dat. What it points to is borrowed from who gave it out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct decode_event {
	uint64_t ts; /* nanoseconds, or the clock's own units; offsets of the file applied */
	const uint8_t *data; /* @size bytes, from the id on */
	const uint8_t *leaf; /* of a funcgraph_entry: its funcgraph_exit, if that comes next */
	const struct task_name *task;
	uint64_t offset; /* of the data in the file */
	uint32_t size, leaf_size;
	uint32_t id;
	int32_t pid;
	uint32_t cpu;
	uint32_t buffer;	    /* index in dat->buffers */
	int64_t missed;		    /* events lost before it on this CPU; -1: some; 0: none */
	const struct task_who *who; /* NULL: not known, or nobody asked */
	bool big_endian;	    /* numbers in its data are */
	bool new_day;		    /* its date is to be said, see event_days_changed() */
};
