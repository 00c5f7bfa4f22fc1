/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "basic/macro.h"
#include "recorder/pump.h"
#include "recorder/ring-header.h"
#include "recorder/staging.h"

/* Smaller ones cost: 64 KiB three times the CPU time a byte */
#define PIPE_SIZE MIB

static int init(struct staging *s, struct staging_note *note, int pipe_read, int pipe_write)
{
	int size = fcntl(pipe_write, F_GETPIPE_SZ);

	if (size < 0)
		return -errno;
	*s = (struct staging){
		.pipe_read = pipe_read,
		.pipe_write = pipe_write,
		/* The pipe counts pages, and takes a sub-buffer by reference in the place of one */
		.pipe_subbufs = (unsigned)size / (unsigned)sysconf(_SC_PAGESIZE),
		.note = note,
	};
	return 0;
}

uint64_t staging_inode(int pipe)
{
	struct stat st;

	return fstat(pipe, &st) >= 0 && S_ISFIFO(st.st_mode) ? st.st_ino : 0;
}

int staging_make(struct staging *s, struct staging_note *note)
{
	_cleanup_close_ int pipe_read = -EBADF, pipe_write = -EBADF;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	pipe_read = fds[0];
	pipe_write = fds[1];
	/* Beyond pipe-user-pages-soft it is EPERM: ask for less, at the end keep what it has */
	for (uint64_t size = PIPE_SIZE; size > 64 * KIB; size /= 2)
		if (fcntl(pipe_write, F_SETPIPE_SZ, (int)size) >= 0)
			break;
	r = init(s, note, pipe_read, pipe_write);
	if (r < 0)
		return r;
	TAKE_FD(pipe_read);
	TAKE_FD(pipe_write);
	note->pipe = staging_inode(s->pipe_read);
	return 0;
}

int staging_adopt(struct staging *s, struct staging_note *note, int pipe_read)
{
	_cleanup_close_ int pipe_write = -EBADF;
	int waiting, r;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", pipe_read);
	pipe_write = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (pipe_write < 0 || ioctl(pipe_read, FIONREAD, &waiting) < 0)
		return -errno;
	r = init(s, note, pipe_read, pipe_write);
	if (r < 0)
		return r;
	TAKE_FD(pipe_write);
	s->in_pipe = (uint64_t)waiting;
	return 0;
}

void staging_use_memory(struct staging *s, char *memory, unsigned subbuf_size)
{
	uint64_t at = 0;

	s->memory = memory;
	if (!s->note || atomic_load(&s->note->cpu) == 0)
		return;
	/* What was killed may have forgotten the first of them, which were in the file */
	while (at + subbuf_size <= STAGING_MEMORY && ring_header_time(memory + at) == 0)
		at += subbuf_size;
	s->memory_at = at;
	while (at + subbuf_size <= STAGING_MEMORY && ring_header_time(memory + at) != 0)
		at += subbuf_size;
	s->in_memory = at - s->memory_at;
}

bool staging_populate(struct staging *s, uint64_t size)
{
	if (s->populated < size && madvise(s->memory, size, MADV_POPULATE_WRITE) >= 0)
		s->populated = size;
	return s->populated >= size;
}

void staging_done(struct staging *s)
{
	close_p(&s->pipe_read);
	close_p(&s->pipe_write);
	s->pipe_read = s->pipe_write = -EBADF;
}

void staging_hold(struct staging *s, struct pump *pump)
{
	s->holder = pump;
	if (s->note)
		atomic_store(&s->note->cpu, pump->cpu + 1);
}

void staging_release(struct staging *s)
{
	s->holder = NULL;
	if (s->note)
		atomic_store(&s->note->cpu, 0);
}
