/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the steps of a segment share: segment.c and segment-leftover.c.
 */
#pragma once

#include "engine/segment.h"

/* Leave a line for the log; @level: LOG_DEBUG … LOG_ERR */
void segment_note(struct segment *segment, int level, int error, const char *format, ...)
	_printf_(4, 5);

/* The task names that are known now into the file */
int segment_write_names(struct segment *segment, struct trace_file *file);

/* A file called @name now into the archive, complete and dense; or away if there is nothing in it.
 * Sets the segment's archive to its name there. */
int segment_archive(struct segment *segment, struct trace_file *file, const char *name,
		    struct fault *why);

/*
 * Open a file that an earlier process left, and make it whole; one that is damaged is renamed.
 * Return: 1 with @ret set, 0 if there is none (any more), or negative errno with @why.
 */
int segment_take_up(struct segment *segment, const char *name, struct trace_file **ret,
		    struct fault *why);

/* All files into the archive that an earlier process was about to put there */
int segment_finish_leftovers(struct segment *segment, struct fault *why);

/* Has a file of an earlier process been unreadable for so long that it is not for a moment? */
bool segment_has_waited(struct segment *segment);
