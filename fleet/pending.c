/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "fleet/pending.h"

#define SUFFIX	       ".json"
#define FILE_NAME_SIZE (OWN_ID_MAX + sizeof(SUFFIX))

void pending_open(struct pending *p)
{
	const char *dir = getenv("STATE_DIRECTORY");

	*p = (struct pending){.fd = -EBADF};
	if (!dir)
		return;
	p->fd = io_open_dir_at(AT_FDCWD, dir);
	if (p->fd < 0)
		(void)log_warning_errno(p->fd, "Cannot open %s, ignoring: %m", dir);
}

void pending_close(struct pending *p)
{
	close_p(&p->fd);
}

static void file_name(const char *id, char name[static FILE_NAME_SIZE])
{
	(void)snprintf(name, FILE_NAME_SIZE, "%s" SUFFIX, id);
}

bool pending_put(struct pending *p, const char *id, const char *payload)
{
	char name[FILE_NAME_SIZE];
	int r;

	if (p->fd < 0)
		return false;
	file_name(id, name);
	r = io_replace_file_at(p->fd, name, payload, strlen(payload), 0600);
	if (r < 0 && !p->failed_said)
		(void)log_warning_errno(r, "Failed to store %s, a restart would lose it: %m", name);
	p->failed_said = r < 0;
	return r >= 0;
}

void pending_remove(const struct pending *p, const char *id)
{
	char name[FILE_NAME_SIZE];

	file_name(id, name);
	if (unlinkat(p->fd, name, 0) < 0 && errno != ENOENT)
		(void)log_warning_errno(-errno, "Failed to remove %s, ignoring: %m", name);
}

static bool is_stored(const char *name)
{
	size_t n = strlen(name), suffix = strlen(SUFFIX);

	return n > suffix && strcmp(name + n - suffix, SUFFIX) == 0;
}

/* Return: it is a message of this name */
static bool read_file(const struct pending *p, const char *name, struct message *ret,
		      uint64_t *ret_age)
{
	const uint64_t now = now_usec(CLOCK_REALTIME);
	_cleanup_free_ char *payload = NULL;
	char expected[FILE_NAME_SIZE];
	struct fault why;
	struct stat st;
	uint64_t since;
	size_t size;

	if (io_read_stored_file_at(p->fd, name, MESSAGE_MAX, &payload, &size) < 0 ||
	    fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    message_read(payload, size, ret, &why) != MESSAGE_OK || ret->check)
		return false;
	since = (uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec / 1000;
	*ret_age = now - MIN(since, now);
	file_name(ret->id, expected);
	return strcmp(name, expected) == 0;
}

void pending_read(struct pending *p, pending_found_t found, void *userdata)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct message m;
	uint64_t age;
	int r;

	if (p->fd < 0)
		return;
	r = io_list_at(p->fd, ".", is_stored, &names);
	if (r < 0)
		(void)log_warning_errno(r, "Cannot read the state directory, ignoring: %m");
	STRV_FOREACH (name, names) {
		if (read_file(p, *name, &m, &age) && found(userdata, &m, age))
			continue;
		(void)log_warning("Removing %s, which is of no use", *name);
		(void)unlinkat(p->fd, *name, 0);
	}
}
