/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include <tracefs.h>

#include "recorder/saved-cmdlines.h"
#include "recorder/tracedir.h"

#define FILE_NAME   "saved_cmdlines_size"
#define ENTRIES_MAX 32768U /* PID_MAX_DEFAULT: more is refused as invalid */

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
