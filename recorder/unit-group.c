/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include <tracefs.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "recorder/kernel-text.h"
#include "recorder/unit-group.h"

#define MOUNTINFO  "/proc/self/mountinfo"
#define GROUPS_MAX 4096 /* users may make as many as they like, which is nothing to wait for */

/* Undo mountinfo's \040 and the like, in place */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	*to = '\0';
}

/* "36 35 98:0 ROOT MOUNT_POINT OPTIONS [FIELDS] - TYPE SOURCE SUPER_OPTIONS" */
static char *mount_point_of(char *line)
{
	char *rest = strstr(line, " - "), *save, *point = NULL;

	if (!rest)
		return NULL;
	*rest = '\0';
	rest += 3;
	for (int i = 0; i < 5; i++)
		point = strtok_r(i ? NULL : line, " ", &save);
	if (!point)
		return NULL;
	if (strncmp(rest, "cgroup2 ", 8) != 0 &&
	    !(strncmp(rest, "cgroup ", 7) == 0 && strstr(rest, "name=systemd")))
		return NULL;
	unescape(point);
	return point;
}

int unit_group_parse_mounts(const char *text, char ***ret_dirs)
{
	_cleanup_free_ char *copy = strdup(text);
	char **dirs = NULL, *save, *line;

	if (!copy)
		return -ENOMEM;
	for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *point = mount_point_of(line);
		int r = point ? kernel_text_list_add(&dirs, point, strlen(point)) : 0;

		if (r < 0) {
			tracefs_list_free(dirs);
			return r;
		}
	}
	*ret_dirs = dirs;
	return 0;
}

int unit_group_mounts(char ***ret_dirs, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r = io_read_file_at(AT_FDCWD, MOUNTINFO, &text, NULL);

	if (r >= 0)
		r = unit_group_parse_mounts(text, ret_dirs);
	return r < 0 ? fault_errno(why, r, "cannot read " MOUNTINFO) : 0;
}

/* systemd puts "_" before a unit name that could be a file of the control group */
bool unit_group_is(const char *name, const char *unit)
{
	return strcmp(name, unit) == 0 || (*name == '_' && strcmp(name + 1, unit) == 0);
}

/* Those of version 2 */
static int find_roots(char ***ret, struct fault *why)
{
	char **mounts = NULL, **roots = NULL;
	struct statfs fs;
	int r = unit_group_mounts(&mounts, why);

	for (char **m = mounts; r >= 0 && m && *m; m++)
		if (statfs(*m, &fs) >= 0 && fs.f_type == CGROUP2_SUPER_MAGIC) {
			r = strv_append(&roots, *m);
			if (r < 0)
				(void)fault_errno(why, r, "%s", *m);
		}
	tracefs_list_free(mounts);
	if (r >= 0)
		*ret = roots;
	else
		strv_free(roots);
	return r;
}

/* One that goes meanwhile has nothing. Return: 1 with @ret_path: @unit's is there; 0; or -ENOMEM.
 */
static int look_in(const char *path, const char *unit, char ***list, char **ret_path)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	while (dir && r >= 0 && (entry = readdir(dir))) {
		_cleanup_free_ char *below = NULL;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = strf("%s/%s", path, entry->d_name);
		if (!below)
			return -ENOMEM;
		if (unit_group_is(entry->d_name, unit)) {
			*ret_path = TAKE_PTR(below);
			return 1;
		}
		r = strv_append(list, below);
	}
	return r;
}

int unit_group_find(const char *unit, char **ret_path, struct fault *why)
{
	_cleanup_(strv_freep) char **list = NULL;
	int r = find_roots(&list, why);

	if (r < 0)
		return r;
	if (!list)
		return fault_set(why, -EOPNOTSUPP,
				 "this machine has control groups of version 1 only, for which "
				 "there is no pressure");
	for (size_t i = 0; r == 0 && i < GROUPS_MAX && list[i]; i++)
		r = look_in(list[i], unit, &list, ret_path);
	if (r < 0)
		return fault_errno(why, r, "%s", unit);
	return r > 0 ? 0
		     : fault_set(
			       why, -ENOENT,
			       "%s has no control group: it does not run, or there is no such unit",
			       unit);
}
