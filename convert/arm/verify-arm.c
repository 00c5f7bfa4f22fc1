/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/in-root.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "convert/arm/arm-check.h"
#include "convert/convert.h"
#include "formats/arm-ini.h"

struct context {
	int dir_fd;
	const char *path;
	void (*on_fault)(void *userdata, const char *line);
	void *userdata;
};

static int read_file(void *userdata, const char *name, char **ret_data, size_t *ret_size)
{
	const struct context *c = userdata;
	_cleanup_close_ int fd = in_root_open(c->dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	return io_read_up_to(fd, ARM_INI_SIZE_MAX + 1, ret_data, ret_size);
}

/* Traces and programs may lie elsewhere: only looked at, not read */
static int file_size(void *userdata, const char *name, uint64_t *ret)
{
	const struct context *c = userdata;
	struct stat st;

	if (fstatat(c->dir_fd, name, &st, 0) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	*ret = (uint64_t)st.st_size;
	return 0;
}

static void on_fault(void *userdata, const char *file, unsigned line, const char *text)
{
	struct context *c = userdata;
	_cleanup_free_ char *where = line ? strf("%s/%s:%u: %s", c->path, file, line, text)
					  : strf("%s/%s: %s", c->path, file, text);

	c->on_fault(c->userdata, where);
}

int verify_arm(int dir_fd, const char *path, void (*report)(void *userdata, const char *line),
	       void *userdata, unsigned *ret_version)
{
	struct context c = {dir_fd, path, report, userdata};
	const struct arm_files files = {.read = read_file, .size = file_size, .userdata = &c};

	return arm_check(&files, on_fault, &c, ret_version);
}
