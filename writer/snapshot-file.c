/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>

#include "writer/snapshot-file.h"
#include "writer/store.h"

int snapshot_file_open(struct snapshot_file *ret, int dir_fd, const char *name, struct fault *why)
{
	int fd = store_create_new(dir_fd, name);

	if (fd < 0)
		return fault_errno(why, fd, "cannot create %s", name);
	*ret = (struct snapshot_file){fd, dir_fd, name, true};
	return 0;
}

int snapshot_file_publish(struct snapshot_file *file, struct fault *why)
{
	int r;

	if (fsync(file->fd) < 0)
		return fault_errno(why, -errno, "cannot sync %s", file->name);
	r = store_publish_new(file->dir_fd, file->name, false);
	if (r < 0)
		return fault_errno(why, r, "cannot rename to %s", file->name);
	file->unfinished = false;
	(void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
	return fsync(file->dir_fd) < 0 ? fault_errno(why, -errno, "cannot sync the directory") : 0;
}

int snapshot_file_take(struct snapshot_file *file)
{
	return TAKE_FD(file->fd);
}

void snapshot_file_done(struct snapshot_file *file)
{
	close_p(&file->fd);
	if (file->unfinished)
		store_drop_new(file->dir_fd, file->name);
}
