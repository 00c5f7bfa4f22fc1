/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the steps of a segment share: segment.c and segment-cut.c.
 */
#pragma once

#include "daemon/segment.h"

/* Leave a line for the log; @level: LOG_DEBUG … LOG_ERR */
void segment_note(struct segment *segment, int level, int error, const char *format, ...)
	_printf_(4, 5);

/* Name the snapshot, and say what makes the file explain itself, wherever it is carried: shown by
 * trace-cmd report --stat; malloc'ed */
int segment_name_snapshot(struct segment *segment, struct segment_cut *request, char **ret_text);

/* The snapshots' own retention, after a new one: kept_bytes, complaint */
void segment_retain_snapshots(struct segment_cut *request);

/* The task names that are known now into the file */
int segment_write_names(struct segment *segment, struct trace_file *file);
