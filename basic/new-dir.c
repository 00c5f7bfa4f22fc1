/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "basic/io.h"
#include "basic/new-dir.h"
#include "basic/strv.h"

#define TRIES	  100U
#define DEPTH_MAX 32U

/* "a/b/" to the folder "a" and the name "b" */
static int split(const char *path, char **ret_folder, char **ret_name)
{
	_cleanup_free_ char *folder = strdup(path), *name = NULL;
	size_t n;
	char *slash;

	if (!folder)
		return -ENOMEM;
	for (n = strlen(folder); n > 1 && folder[n - 1] == '/'; n--)
		folder[n - 1] = '\0';
	slash = strrchr(folder, '/');
	name = strdup(slash ? slash + 1 : folder);
	if (!name)
		return -ENOMEM;
	if (!*name)
		return *path ? -EEXIST : -ENOENT; /* "/" is there */
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EEXIST;
	if (!slash)
		(void)strcpy(folder, "."); /* no longer than the name */
	else
		slash[slash == folder] = '\0';
	*ret_folder = TAKE_PTR(folder);
	*ret_name = TAKE_PTR(name);
	return 0;
}

static int make(struct new_dir *dir, mode_t mode)
{
	for (unsigned i = 0; i < TRIES; i++) {
		_cleanup_free_ char *name = NULL;
		struct timespec ts;

		(void)clock_gettime(CLOCK_MONOTONIC, &ts);
		name = strf(".%.200s.%lx%x.new", dir->name,
			    (unsigned long)ts.tv_nsec ^ (unsigned long)getpid() << 8, i);
		if (!name)
			return -ENOMEM;
		if (mkdirat(dir->parent_fd, name, mode) >= 0) {
			dir->temporary = TAKE_PTR(name);
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int new_dir_open(struct new_dir *dir, int dir_fd, const char *path, mode_t mode)
{
	_cleanup_free_ char *folder = NULL;
	int r;

	*dir = (struct new_dir){.fd = -EBADF, .parent_fd = -EBADF};
	r = split(path, &folder, &dir->name);
	if (r < 0)
		return r;
	dir->parent_fd = openat(dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->parent_fd < 0)
		r = -errno;
	else if (faccessat(dir->parent_fd, dir->name, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) >= 0)
		r = -EEXIST;
	if (r >= 0)
		r = make(dir, mode);
	if (r >= 0) {
		dir->fd = io_open_dir_at(dir->parent_fd, dir->temporary);
		r = MIN(dir->fd, 0);
	}
	if (r < 0)
		new_dir_done(dir);
	return r;
}

int new_dir_publish(struct new_dir *dir)
{
	int r;

	/* the files' own fsync is their writers' */
	if (fsync(dir->fd) < 0)
		return -errno;
	r = io_rename_new_at(dir->parent_fd, dir->temporary, dir->name);
	if (r < 0)
		return r;
	free(dir->temporary);
	dir->temporary = NULL;
	return fsync(dir->parent_fd) < 0 ? -errno : 0;
}

void new_dir_done(struct new_dir *dir)
{
	if (dir->temporary)
		(void)remove_tree_at(dir->parent_fd, dir->temporary);
	close_p(&dir->fd);
	close_p(&dir->parent_fd);
	free(dir->name);
	free(dir->temporary);
	*dir = (struct new_dir){.fd = -EBADF, .parent_fd = -EBADF};
}

static int remove_tree(int dir_fd, const char *name, unsigned depth);

static int empty(int fd, unsigned depth)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = io_list_at(fd, ".", NULL, &names);

	STRV_FOREACH (name, names)
		if (r >= 0 && unlinkat(fd, *name, 0) < 0 && errno != ENOENT)
			r = errno == EISDIR ? remove_tree(fd, *name, depth + 1) : -errno;
	return r;
}

static int remove_tree(int dir_fd, const char *name, unsigned depth)
{
	_cleanup_close_ int fd = io_open_dir_at(dir_fd, name);
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	r = empty(fd, depth);
	if (r >= 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int remove_tree_at(int dir_fd, const char *name)
{
	return remove_tree(dir_fd, name, 0);
}
