/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "writer/snapshot-file.h"

int snapshot_file_open(struct snapshot_file *ret, int dir_fd, const char *name, struct fault *why)
{
	_cleanup_free_ char *tmp = NULL;
	int fd;

	tmp = strf(".%s.new", name);
	if (!tmp)
		return fault_errno(why, -ENOMEM, "cannot create %s", name);
	(void)unlinkat(dir_fd, tmp, 0);
	fd = openat(dir_fd, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot create %s", name);
	*ret = (struct snapshot_file){fd, dir_fd, name, TAKE_PTR(tmp)};
	return 0;
}

int snapshot_file_publish(struct snapshot_file *file, struct fault *why)
{
	int r;

	if (fsync(file->fd) < 0)
		return fault_errno(why, -errno, "cannot sync %s", file->name);
	r = io_rename_new_at(file->dir_fd, file->tmp, file->name);
	if (r < 0)
		return fault_errno(why, r, "cannot rename to %s", file->name);
	free(TAKE_PTR(file->tmp));
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
	if (file->tmp)
		(void)unlinkat(file->dir_fd, file->tmp, 0);
	free(TAKE_PTR(file->tmp));
}
