/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "basic/macro.h"
#include "writer/proc-task.h"

#define STAT_MAX  1024
#define START_AT  22 /* in stat, from 1 on */
#define STATE_AT  3
#define SYSTEMD	  "name=systemd"
#define TGID_LINE "\nTgid:\t"

/* At most @room - 1 bytes, with a NUL byte behind: a system call more for their end costs more */
static ssize_t read_text(int dir_fd, const char *path, char *to, size_t room)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);

	if (n < 0)
		return -errno;
	to[n] = '\0';
	return n;
}

/* "PID (COMM) STATE …": the name may have anything in it, nothing behind it a ")" */
int proc_task_stat(int dir_fd, const char *path, struct proc_task *ret)
{
	char text[STAT_MAX], *begin, *p;
	ssize_t n = read_text(dir_fd, path, text, sizeof(text));

	if (n < 0)
		return (int)n;
	begin = strchr(text, '(');
	p = begin ? memrchr(begin, ')', (size_t)(text + n - begin)) : NULL;
	if (!p)
		return -EBADMSG;
	begin++;
	ret->comm_size = MIN((size_t)(p - begin), sizeof(ret->comm));
	memcpy(ret->comm, begin, ret->comm_size);
	for (unsigned field = STATE_AT - 1; field < START_AT && p; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -EBADMSG;
	ret->pid = (int32_t)strtol(text, NULL, 10);
	ret->start = strtoull(p + 1, NULL, 10);
	return 0;
}

int proc_task_tgid(int dir_fd, const char *path, int32_t *ret)
{
	char text[STAT_MAX];
	ssize_t n = read_text(dir_fd, path, text, sizeof(text));
	const char *line = n < 0 ? NULL : strstr(text, TGID_LINE);

	if (n < 0)
		return (int)n;
	if (!line)
		return -EBADMSG;
	*ret = (int32_t)strtol(line + strlen(TGID_LINE), NULL, 10);
	return 0;
}

/* "NUMBER:CONTROLLERS:PATH"; that of systemd's own comes before the unified one, which is last */
int proc_task_cgroup(int dir_fd, const char *path, char ret[static PROC_TASK_CGROUP_MAX],
		     uint32_t *ret_hierarchy)
{
	char text[PROC_TASK_CGROUP_MAX], *next;
	ssize_t n = read_text(dir_fd, path, text, sizeof(text));
	const char *found = NULL;
	uint32_t hierarchy = 0;

	if (n < 0)
		return (int)n;
	for (char *line = text; *line; line = next) {
		char *end = strchrnul(line, '\n'), *name, *at;

		next = *end ? end + 1 : end;
		*end = '\0';
		name = strchr(line, ':');
		at = name ? strchr(name + 1, ':') : NULL;
		if (!at)
			continue;
		*at++ = '\0';
		if (strcmp(name + 1, SYSTEMD) == 0) {
			hierarchy = (uint32_t)strtoul(line, NULL, 10);
			found = at;
		} else if (name[1] == '\0' && (!found || strcmp(found, "/") == 0)) {
			found = at;
		}
	}
	if (!found)
		return -EBADMSG;
	(void)strcpy(ret, found);
	*ret_hierarchy = hierarchy;
	return 0;
}
