/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/holders.h"

/* @ret_file: name below @path that one of the process's fds points to */
static int find_in_process(int proc_fd, const char *pid, const char *path, char **ret_file)
{
	_cleanup_closedir_ DIR *dir = NULL;
	size_t n = strlen(path);
	struct dirent *entry;
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), "%.20s/fd", pid);
	r = io_opendir_at(proc_fd, name, &dir);
	if (r < 0)
		return r;
	while ((entry = readdir(dir))) {
		char target[PATH_MAX];
		ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (size <= 0)
			continue;
		target[size] = '\0';
		if (strncmp(target, path, n) != 0 || target[n] != '/')
			continue;
		*ret_file = strdup(target + n + 1);
		return *ret_file ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

int holders_find(const char *path, char **ret)
{
	_cleanup_closedir_ DIR *proc = NULL;
	struct dirent *entry;
	int r;

	r = io_opendir_at(AT_FDCWD, "/proc", &proc);
	if (r < 0)
		return r;
	while ((entry = readdir(proc))) {
		_cleanup_free_ char *file = NULL, *comm = NULL;
		char name[64];

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    find_in_process(dirfd(proc), entry->d_name, path, &file) < 0)
			continue;
		(void)snprintf(name, sizeof(name), "%.20s/comm", entry->d_name);
		if (io_read_file_at(dirfd(proc), name, &comm, NULL) >= 0)
			comm[strcspn(comm, "\n")] = '\0';
		*ret = strf("%s, open in process %s (%s)", file, entry->d_name, comm ? comm : "?");
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}
