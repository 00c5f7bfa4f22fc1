/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include <tracefs.h>

#include "basic/io.h"
#include "recorder/saved-cmdlines.h"
#include "recorder/tracedir.h"

#define FILE_NAME   "saved_cmdlines_size"
#define ENTRIES_MAX 32768U /* PID_MAX_DEFAULT: more is refused as invalid */

/*
 * The kernel formats a page of names at a time, some 40 µs, and keeps no name of a task that is
 * switched to or from meanwhile. Left alone for longer than that in between, it gets the name of a
 * task that lives for two such moments at one of them: reading without a pause cost 0.2 % of the
 * tasks of a fork storm their names.
 */
#define READ_PAUSE_NS (100 * 1000L)
#define READ_CHUNK    4096

static int open_top(struct tracedir *ret, struct fault *why)
{
	const char *path = tracefs_tracing_dir();
	int r;

	if (!path)
		return fault_set(why, -ENOENT, "no tracefs is mounted");
	r = tracedir_open(ret, path);
	return r < 0 ? fault_errno(why, r, "cannot open %s", path) : 0;
}

static int read_size(const struct tracedir *top, unsigned *ret, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	unsigned long size;
	char *end;
	int r;

	r = tracedir_read(top, FILE_NAME, &text, why);
	if (r < 0)
		return r;
	size = strtoul(text, &end, 10);
	if (end == text || size == 0 || size > UINT32_MAX)
		return fault_set(why, -EBADMSG, "%s/" FILE_NAME " does not hold a number",
				 top->path);
	*ret = (unsigned)size;
	return 0;
}

static int write_size(const struct tracedir *top, unsigned size, struct fault *why)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", size);
	return tracedir_write(top, FILE_NAME, text, 0, why, "cannot make room for %u task names",
			      size);
}

int saved_cmdlines_raise(unsigned entries, unsigned *ret_old, struct fault *why)
{
	struct tracedir top = {.fd = -EBADF};
	unsigned old;
	int r;

	r = open_top(&top, why);
	if (r < 0)
		return r;
	entries = MIN(entries, ENTRIES_MAX);
	r = read_size(&top, &old, why);
	if (r >= 0 && old >= entries)
		old = 0;
	else if (r >= 0)
		r = write_size(&top, entries, why);
	tracedir_done(&top);
	if (r >= 0)
		*ret_old = old;
	return r;
}

/*
 * Newer kernels fill up the pages they allocate, so that the file reads more than was written: on
 * 6.18 128 reads 6552 and 32768 reads 45874. Allocations are powers of two and begin with 128 KiB
 * of something else, so it is below twice the request plus 8192.
 */
static bool is_ours(unsigned now, unsigned raised)
{
	return now >= raised && now <= 2 * (uint64_t)raised + 8192;
}

int saved_cmdlines_restore(unsigned raised, unsigned old, struct fault *why)
{
	struct tracedir top = {.fd = -EBADF};
	unsigned now;
	int r;

	if (old == 0)
		return 0;
	raised = MIN(raised, ENTRIES_MAX);
	r = open_top(&top, why);
	if (r < 0)
		return r;
	r = read_size(&top, &now, why);
	if (r >= 0 && is_ours(now, raised))
		r = write_size(&top, old, why);
	tracedir_done(&top);
	return r;
}

int saved_cmdlines_read(int tracing_fd, char **ret)
{
	static const struct timespec pause = {.tv_nsec = READ_PAUSE_NS};
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *text = NULL;
	size_t size = 0, room = 0;

	fd = openat(tracing_fd, "saved_cmdlines", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n;

		if (room - size < 2 * READ_CHUNK) {
			size_t more = MAX(room * 2, (size_t)(16 * READ_CHUNK));
			char *p = realloc(text, more);

			if (!p)
				return -ENOMEM;
			text = p;
			room = more;
		}
		n = read(fd, text + size, READ_CHUNK);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)MAX(n, 0);
		(void)nanosleep(&pause, NULL);
	}
	text[size] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}
