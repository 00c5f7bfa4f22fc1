/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/out-file.h"

bool out_file_is_standard(const char *path)
{
	return !path || strcmp(path, "-") == 0;
}

static int out_file_standard(struct out_file *out, unsigned flags, struct fault *why)
{
	*out = (struct out_file){.path = "standard output", .file = {.fd = -EBADF}};
	if (flags & OUT_FILE_BINARY && isatty(STDOUT_FILENO)) {
		out->fd = -EBADF;
		return fault_set(why, -EINVAL,
				 "a trace.dat cannot be shown on a terminal: redirect it, or use "
				 "-o FILE");
	}
	out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return out->fd < 0 ? fault_errno(why, -errno, "%s", out->path) : 0;
}

int out_file_choose(struct out_file *out, const char *path, int in_fd, const char *verb,
		    unsigned flags, struct fault *why)
{
	struct stat st, in;

	if (out_file_is_standard(path))
		return out_file_standard(out, flags, why);
	*out = (struct out_file){
		.path = path, .fd = -EBADF, .file = {.fd = -EBADF}, .kind = OUT_FILE_NEW};
	if (stat(path, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return fault_errno(why, -EISDIR, "%s: cannot write", path);
	if (in_fd >= 0 && fstat(in_fd, &in) >= 0 && st.st_dev == in.st_dev &&
	    st.st_ino == in.st_ino)
		return fault_set(why, -EINVAL, "%s: is the file to %s", path, verb);
	if (S_ISREG(st.st_mode))
		return 0;
	out->kind = OUT_FILE_EXISTING;
	out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return out->fd < 0 ? fault_errno(why, -errno, "%s: cannot open", path) : 0;
}

int out_file_open(struct out_file *out, const char *path, int in_fd, const char *verb,
		  unsigned flags, struct fault *why)
{
	int r = out_file_choose(out, path, in_fd, verb, flags, why);

	if (r < 0 || out->kind != OUT_FILE_NEW)
		return r;
	r = new_file_open(&out->file, path, OUT_FILE_MODE);
	if (r < 0)
		return fault_errno(why, r, "%s: cannot create", path);
	out->fd = out->file.fd;
	return 0;
}

int out_file_write(int fd, const void *bytes, size_t size, struct fault *why)
{
	int r = io_write_all(fd, bytes, size);

	if (r == -EPIPE)
		return OUT_FILE_E_PIPE;
	return r < 0 ? fault_errno(why, r, "cannot write") : 0;
}

int out_file_publish(struct out_file *out, struct fault *why)
{
	int r = out->file.path ? new_file_publish(&out->file) : 0;

	return r < 0 ? fault_errno(why, r, "%s: cannot write", out->path) : 0;
}

void out_file_done(struct out_file *out)
{
	if (!out->file.path)
		close_p(&out->fd);
	out->fd = -EBADF;
	new_file_done(&out->file);
}
