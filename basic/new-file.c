/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "basic/new-file.h"
#include "basic/strv.h"

#define TRIES 100U

/* ".NAME.XXXXXXXXXXXX" beside the path */
static char *temporary_name(const char *path, unsigned try)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return strf("%.*s.%.200s.%lx%x", (int)(name - path), path, name,
		    (unsigned long)ts.tv_nsec ^ (unsigned long)getpid() << 8, try);
}

static int open_nameless(const char *path, mode_t mode)
{
	_cleanup_free_ char *folder = strdup(path);
	char *slash;

	if (!folder)
		return -ENOMEM;
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	else
		(void)strcpy(folder, "."); /* path is not empty */
	/* O_RDWR: what is linked may be opened again by others of ours */
	return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

/* Any name beside the path: for a new file, or for the one that is open and has none */
static int name_it(struct new_file *file, mode_t mode)
{
	bool nameless = file->fd >= 0;
	char link[64];
	int r = -EEXIST;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	for (unsigned i = 0; i < TRIES && r == -EEXIST; i++) {
		_cleanup_free_ char *name = temporary_name(file->path, i);

		if (!name)
			return -ENOMEM;
		if (nameless)
			r = linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
		else
			r = file->fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
		if (r >= 0)
			file->temporary = TAKE_PTR(name);
		else
			r = -errno;
	}
	return MIN(r, 0);
}

int new_file_open(struct new_file *file, const char *path, mode_t mode)
{
	int r = 0;

	if (!*path)
		return -ENOENT;
	*file = (struct new_file){.fd = -EBADF, .path = strdup(path)};
	if (!file->path)
		return -ENOMEM;
	file->fd = open_nameless(path, mode);
	if (file->fd < 0)
		r = name_it(file, mode);
	if (r < 0)
		new_file_done(file);
	return r;
}

int new_file_publish(struct new_file *file)
{
	int r;

	/* A nameless file cannot take the place of another one: first any name, then rename */
	if (!file->temporary) {
		r = name_it(file, 0);
		if (r < 0)
			return r;
	}
	if (rename(file->temporary, file->path) < 0)
		return -errno;
	free(file->temporary);
	file->temporary = NULL;
	return 0;
}

void new_file_done(struct new_file *file)
{
	if (file->temporary)
		(void)unlink(file->temporary);
	if (file->fd >= 0)
		close(file->fd);
	free(file->temporary);
	free(file->path);
	*file = (struct new_file){.fd = -EBADF};
}
