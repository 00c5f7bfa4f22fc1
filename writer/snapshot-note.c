/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "basic/io.h"
#include "formats/trace-dat-read.h"
#include "formats/trace-dat.h"
#include "writer/snapshot-note.h"

#define ROOM 1024 /* bytes */

char *snapshot_note_pad(const char *text)
{
	size_t size = strlen(text);
	char *padded = malloc(size + ROOM + 1);

	if (!padded)
		return NULL;
	memcpy(padded, text, size);
	/* Readers print it: one empty line rather than a thousand */
	memset(padded + size, ' ', ROOM - 1);
	padded[size + ROOM - 1] = '\n';
	padded[size + ROOM] = '\0';
	return padded;
}

int snapshot_note_add(int fd, const char *name, const char *lines, struct fault *why)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size = strlen(lines), from = 0, end, room;
	uint64_t offset;
	int r = trace_dat_open_fd(fd, name, &dat, why);

	if (r >= 0)
		r = trace_dat_next_note(dat, SNAPSHOT_NOTE, &from, &text, why);
	if (r <= 0)
		return r < 0 ? r : fault_set(why, -ENOENT, "%s: no text of a snapshot", name);
	offset = dat->options[from - 1].data.offset + strlen(SNAPSHOT_NOTE);
	/* "…\n", spaces, "\n" */
	end = strlen(text);
	room = end;
	while (end > 1 && text[end - 2] == ' ')
		end--;
	if (end == room || end < 2)
		return fault_set(why, -ENOENT, "%s: its text has no room", name);
	room -= end;
	end--;
	r = io_pwrite_all(fd, lines, MIN(size, room), (off_t)(offset + end));
	if (r >= 0 && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0)
		return fault_errno(why, r, "%s: cannot add to its text", name);
	return size <= room ? 0 : fault_set(why, -ENOSPC, "%s: its text is full", name);
}
