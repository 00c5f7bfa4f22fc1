/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "basic/io.h"
#include "formats/trace-dat-read.h"
#include "formats/trace-dat.h"
#include "writer/snapshot-note.h"

#define ROOM	 1024 /* bytes */
#define NOTE_MAX (64 * KIB)

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

static int find_note(const struct trace_dat *dat, uint64_t *ret_offset, char **ret,
		     struct fault *why)
{
	for (size_t i = 0; i < dat->n_options; i++) {
		_cleanup_free_ char *text = NULL;
		int r;

		if (dat->options[i].id != TRACE_DAT_OPTION_CPUSTAT)
			continue;
		r = trace_dat_load(dat, &dat->options[i].data, NOTE_MAX, &text, why);
		if (r < 0)
			return r;
		if (strncmp(text, SNAPSHOT_NOTE, strlen(SNAPSHOT_NOTE)) != 0)
			continue;
		*ret_offset = dat->options[i].data.offset;
		*ret = TAKE_PTR(text);
		return 0;
	}
	return fault_set(why, -ENOENT, "%s: no text of a snapshot", dat->path);
}

int snapshot_note_add(int fd, const char *name, const char *lines, struct fault *why)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size = strlen(lines), end, room;
	uint64_t offset = 0;
	int r = trace_dat_open_fd(fd, name, &dat, why);

	if (r >= 0)
		r = find_note(dat, &offset, &text, why);
	if (r < 0)
		return r;
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
