/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading all sub-buffers of a trace.dat, region after region, for those who write them into
 * another file. What is damaged is told, and sub-buffers without events take its place, so that a
 * region is as long as it was thought to be; the next one says that events are missing before it.
 * Version 6 is read by O_DIRECT where that can be had: it is read once, and the page cache is for
 * others. Owner: the caller; one thread.
 */
#pragma once

#include "basic/macro.h"
#include "formats/trace-dat-read.h"

#define REGION_READ_ALIGN 4096 /* of the memory that is read to */

struct region_read;

/* Who hears of damages; @told NULL: a damage is an error */
struct region_read_told {
	void (*told)(void *userdata, const char *line);
	void *userdata;
};

/**
 * region_read_new() - @dat is borrowed until region_read_free()
 * Return: NULL without memory.
 */
struct region_read *region_read_new(const struct trace_dat *dat, struct region_read_told told);
void region_read_free(struct region_read *read);
DEFINE_CLEANUP(struct region_read *, region_read_free)

/**
 * region_read_size() - how much of a region can be read; tells why it is not all. Once a region:
 * what overlaps others is left out where all together would be more than the file
 * @ret: bytes, whole sub-buffers; 0: nothing
 * Return: 0, or negative errno with a line in @why: -EBADMSG if nobody is told.
 */
int region_read_size(struct region_read *read, const struct trace_dat_buffer *buffer, unsigned cpu,
		     uint64_t *ret, struct fault *why);

/**
 * region_read_begin() - at the first of @size bytes, as region_read_size() has said
 */
void region_read_begin(struct region_read *read, const struct trace_dat_buffer *buffer,
		       unsigned cpu, uint64_t size);

/**
 * region_read_next() - the next @size bytes, whole sub-buffers
 * @bytes: aligned to REGION_READ_ALIGN
 * Return: 0, or negative errno with file, offset and reason in @why.
 */
int region_read_next(struct region_read *read, void *bytes, size_t size, struct fault *why);
