/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files that a trace.dat was merged from, in flyrec's own section: lines of text. Columns are
 * separated by tabs:
 *
 *   FRAME MOVED ERROR HOST NAME\n
 *
 * A merged file has one set of event ids, of names of tasks and of symbols, as the format has them
 * once for all ring buffers. What each of the files said is in a frame of its own: all that a
 * trace.dat of version 6 has in front of its data, with regions of the merged file in its tables.
 * trace_dat_open_frame() reads it as if it was a file.
 *
 * FRAME: where it is, 16 hexadecimal digits. MOVED: nanoseconds that were added to its times,
 * behind what was done to cycles and to a guest's times (formats/time-shift.h). ERROR: how far its
 * clock may have been from the right time, nanoseconds; "?": not known. NAME: its ring buffer is
 * HOST:NAME.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "basic/macro.h"

#define OWN_HOST_ERROR_UNKNOWN UINT64_MAX
#define OWN_HOSTS_MAX	       4096U /* files in one */

struct own_host {
	char *host, *name;
	uint64_t frame;
	uint64_t moved;
	uint64_t error; /* or OWN_HOST_ERROR_UNKNOWN */
};

struct own_hosts {
	struct own_host *list;
	size_t n;
};

void own_hosts_done(struct own_hosts *hosts);
#define _cleanup_own_hosts_ _cleanup_(own_hosts_done)

/**
 * own_hosts_add() - one more
 * Return: 0 or -ENOMEM.
 */
int own_hosts_add(struct own_hosts *hosts, const struct own_host *host);

/**
 * own_hosts_put() - as lines, whose length does not depend on where the frames are
 * @ret: malloc'ed
 * Return: 0 or -ENOMEM.
 */
int own_hosts_put(const struct own_hosts *hosts, char **ret, size_t *ret_size);

/**
 * own_hosts_take() - from a file
 * @bytes: @size of them, with a NUL byte behind; they are changed
 * @ret: undo with own_hosts_done()
 * Return: 0, -EBADMSG, also if there are more than OWN_HOSTS_MAX, or -ENOMEM.
 */
int own_hosts_take(char *bytes, size_t size, struct own_hosts *ret);
