/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "ctl/input.h"
#include "formats/file-kind.h"
#include "formats/trace-dat.h"

#define COPY_SIZE MIB

int spool_open(struct new_file *spool, struct fault *why)
{
	const char *directory = getenv("TMPDIR");
	_cleanup_free_ char *path =
		strf("%s/flyrec", directory && *directory ? directory : "/var/tmp");
	int r = path ? new_file_open(spool, path, 0600) : -ENOMEM;

	return r < 0 ? fault_errno(why, r, "%s: cannot create a temporary file", path ? path : "")
		     : 0;
}

static int not_a_trace(const char *bytes, size_t size, struct fault *why)
{
	const char *kind = file_kind((const uint8_t *)bytes, size);

	return fault_set(why, -EBADMSG, "standard input: not a trace.dat%s%s", kind ? ", but " : "",
			 kind ? kind : "");
}

static int spool_standard_input(struct new_file *spool, struct fault *why)
{
	_cleanup_free_ char *buffer = malloc(COPY_SIZE);
	bool any = false;
	ssize_t n;
	int r;

	if (!buffer)
		return fault_errno(why, -ENOMEM, "standard input");
	r = spool_open(spool, why);
	if (r < 0)
		return r;
	while ((n = read(STDIN_FILENO, buffer, COPY_SIZE)) > 0) {
		/* before much is copied of what may have no end */
		if (!any && memcmp(buffer, TRACE_DAT_MAGIC,
				   MIN((size_t)n, (size_t)TRACE_DAT_MAGIC_SIZE)) != 0)
			return not_a_trace(buffer, (size_t)n, why);
		any = true;
		r = io_write_all(spool->fd, buffer, (size_t)n);
		if (r < 0)
			return fault_errno(why, r, "%s: cannot write a temporary file",
					   spool->path);
	}
	if (n < 0)
		return fault_errno(why, -errno, "standard input: cannot read");
	if (!any)
		return fault_set(why, -ENODATA, "standard input: empty");
	return 0;
}

static int open_standard_input(struct input *input, struct fault *why)
{
	struct stat st;
	int r;

	input->name = "standard input";
	if (fstat(STDIN_FILENO, &st) >= 0 && S_ISREG(st.st_mode)) {
		input->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
		return input->fd < 0 ? fault_errno(why, -errno, "standard input") : 0;
	}
	r = spool_standard_input(&input->spool, why);
	input->fd = TAKE_FD(input->spool.fd);
	return r;
}

int input_open(struct input *input, const char *path, struct fault *why)
{
	int r;

	*input = (struct input){.name = path, .fd = -EBADF, .spool = {.fd = -EBADF}};
	if (strcmp(path, "-") == 0)
		r = open_standard_input(input, why);
	else {
		r = input->fd = io_open_at(AT_FDCWD, path, 0);
		if (r < 0)
			(void)fault_errno(why, r, "%s: cannot open", path);
	}
	if (r < 0)
		input_done(input);
	return MIN(r, 0);
}

void input_done(struct input *input)
{
	close_p(&input->fd);
	input->fd = -EBADF;
	new_file_done(&input->spool);
}
