/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "config/config-files.h"

#define FILE_MAX (64 * MIB) /* whoever writes more means something else */

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_wanted(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return *name != '.' && n > m && strcmp(name + n - m, suffix) == 0;
}

static int add_names(const char *path, const char *suffix, char ***names)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *entry;
	int r;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (!is_wanted(entry->d_name, suffix) || strv_contains(*names, entry->d_name))
			continue;
		r = strv_append(names, entry->d_name);
		if (r < 0)
			return r;
	}
}

int config_files_list(const char *const *dirs, const char *suffix, char ***ret, char **ret_dir,
		      struct fault *why)
{
	_cleanup_(strv_freep) char **names = NULL;

	for (; *dirs; dirs++) {
		int r = add_names(*dirs, suffix, &names);

		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			*ret_dir = strdup(*dirs);
			return *ret_dir ? fault_errno(why, r, "cannot read the directory")
					: -ENOMEM;
		}
	}
	if (names)
		qsort(names, strv_length(names), sizeof(*names), compare);
	*ret = TAKE_PTR(names);
	return 0;
}

int config_files_find(const char *const *dirs, const char *name, char **ret, bool *ret_masked)
{
	bool masked = false;
	char *found = NULL;

	for (; *dirs && !found && !masked; dirs++) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		path = strf("%s/%s", *dirs, name);
		if (!path)
			return -ENOMEM;
		if (lstat(path, &st) < 0)
			continue;
		masked = stat(path, &st) >= 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
		if (!masked)
			found = TAKE_PTR(path);
	}
	*ret = found;
	if (ret_masked)
		*ret_masked = masked;
	return 0;
}

int config_files_read(const char *path, char **ret, size_t *ret_size, struct fault *why)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot open");
	if (fstat(fd, &st) < 0)
		return fault_errno(why, -errno, "cannot read");
	if (S_ISDIR(st.st_mode))
		return fault_set(why, -EISDIR, "this is a directory, not a file");
	if (!S_ISREG(st.st_mode))
		return fault_set(why, -EINVAL, "not a regular file");
	if ((uint64_t)st.st_size > FILE_MAX)
		return fault_set(why, -EFBIG, "too large for a configuration file");
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	r = io_pread_all(fd, data, (size_t)st.st_size, 0);
	if (r == -ENODATA)
		return fault_set(why, r, "the file was cut while it was read");
	if (r < 0)
		return fault_errno(why, r, "cannot read");
	*ret = TAKE_PTR(data);
	*ret_size = (size_t)st.st_size;
	return 0;
}
