/* SPDX-License-Identifier: LGPL-2.1-or-later */
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

static int add_names(const char *path, const char *suffix, char ***names)
{
	_cleanup_(strv_freep) char **all = NULL;
	int r = io_list_at(AT_FDCWD, path, NULL, &all);

	STRV_FOREACH (name, all)
		if (r >= 0 && **name != '.' && strlen(*name) > strlen(suffix) &&
		    ends_with(*name, suffix) && !strv_contains(*names, *name))
			r = strv_append(names, *name);
	return r == -ENOENT ? 0 : r;
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
	_cleanup_close_ int fd = io_open_at(AT_FDCWD, path, 0);
	int r;

	if (fd < 0)
		return fault_errno(why, fd, "cannot open");
	r = io_read_regular(fd, FILE_MAX, ret, ret_size);
	if (r == -EISDIR)
		return fault_set(why, r, "this is a directory, not a file");
	if (r == -EINVAL)
		return fault_set(why, r, "not a regular file");
	if (r == -EFBIG)
		return fault_set(why, r, "too large for a configuration file");
	return r < 0 && r != -ENOMEM ? fault_errno(why, r, "cannot read") : r;
}
