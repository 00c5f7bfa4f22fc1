/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "daemon/plumbing/ship.h"

/* @name: "/NAME" in the runtime directory. Return: an fd; -ENOENT: nobody listens; or negative
 * errno.
 */
static int connect_to(const char *runtime_dir, const char *name, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -EBADF;
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s%s", runtime_dir, name);

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENOENT; /* nobody can listen there */
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Refused: its unit was stopped, and has left the file behind */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	return TAKE_FD(fd);
}

int ship(const char *runtime_dir, const char *path, const char *finding, const char *id)
{
	struct iovec lines[] = {{(char *)path, strlen(path)},	    {(char *)"\n", 1},
				{(char *)finding, strlen(finding)}, {(char *)"\n", 1},
				{(char *)id, strlen(id)},	    {(char *)"\n", 1}};
	_cleanup_close_ int fd = connect_to(runtime_dir, "/ship", SOCK_STREAM);
	size_t size = 0;
	ssize_t sent;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		size += lines[i].iov_len;
	sent = writev(fd, lines, ARRAY_SIZE(lines));
	if (sent < 0)
		return -errno;
	return (size_t)sent == size ? 0 : -EAGAIN;
}

int ship_trigger(const char *runtime_dir, const struct ship_notice *notice)
{
	_cleanup_close_ int fd = connect_to(runtime_dir, "/trigger", SOCK_DGRAM);
	_cleanup_free_ char *cause = NULL, *text = NULL, *lines = NULL;

	if (fd < 0)
		return fd;
	cause = escape_text(notice->cause, false);
	text = escape_text(notice->text, false);
	if (cause && text)
		lines = strf("ID=%s\nTRIGGER_USEC=%" PRIu64 "\nSINCE_USEC=%" PRIu64
			     "\nUNTIL_USEC=%" PRIu64 "\nREASON=%s\nSESSION=%s\nCAUSE=%s\nTEXT=%s\n",
			     notice->id, notice->trigger_usec, notice->since_usec,
			     notice->until_usec, notice->reason, notice->session, cause, text);
	if (!lines)
		return -ENOMEM;
	return send(fd, lines, strlen(lines), MSG_NOSIGNAL) < 0 ? -errno : 0;
}
