/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What analysis said of a snapshot, in flyrec's own section of a trace.dat: lines of text, the
 * worst finding first. Columns are separated by tabs, and none has control characters:
 *
 *   SCORE START_USEC DURATION_NSEC RULE PID TASK UNIT TEXT\n
 *
 * Numbers are decimal; START_USEC is realtime if the file's times are. PID 0: of no task.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OWN_FINDINGS_ROOM 4096

struct own_finding {
	uint64_t score, start_usec, duration_nsec; /* score: in nanoseconds, to be sorted by */
	uint32_t pid;
	const char *rule, *task, *unit, *text; /* "": unknown */
};

/**
 * own_finding_put() - as a line
 * Return: malloc'ed, NULL without memory.
 */
char *own_finding_put(const struct own_finding *finding);

/**
 * own_finding_take() - the next one
 * @bytes: @size of them, with a NUL byte behind; lines that were taken are changed
 * @at: where it begins, moved behind it
 * @ret: into @bytes
 * Return: 1, 0 there are no more, or -EBADMSG.
 */
int own_finding_take(char *bytes, size_t size, size_t *at, struct own_finding *ret);
