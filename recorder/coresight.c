/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/coresight-internal.h"

int coresight_note(struct coresight *c, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return strv_append(&c->notes, text);
}

struct output {
	int dir_fd;
	struct fault *why;
};

static int write_text(void *userdata, const char *file, const char *text, size_t size)
{
	const struct output *output = userdata;
	_cleanup_close_ int fd = openat(output->dir_fd, file,
					O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	int r = fd < 0 ? -errno : io_write_all(fd, text, size);

	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? fault_errno(output->why, r, "%s: cannot write", file) : 0;
}

static int collect(struct coresight *c, struct fault *why)
{
	struct output output = {.dir_fd = c->request->dir_fd, .why = why};
	int r;

	/* Registers first: opening a sink stops it, and the sources' state may go with that */
	r = coresight_read_devices(c, why);
	if (r >= 0)
		r = coresight_read_sinks(c, why);
	if (r >= 0)
		r = coresight_read_cores(c, why);
	if (r >= 0)
		r = coresight_read_memory(c, why);
	if (r < 0)
		return r;
	c->snapshot.description = c->request->description;
	c->snapshot.ftrace = c->request->ftrace;
	*why = (struct fault){};
	r = arm_snapshot_encode(&c->snapshot, write_text, &output);
	return r < 0 && why->error == 0 ? fault_errno(why, r, "cannot write the snapshot") : r;
}

int coresight_collect(const struct coresight_request *request, char ***ret_notes, struct fault *why)
{
	struct coresight c = {.request = request};
	int r = collect(&c, why);

	arm_snapshot_done(&c.snapshot);
	strv_free(c.sinks);
	*ret_notes = c.notes;
	return r;
}
