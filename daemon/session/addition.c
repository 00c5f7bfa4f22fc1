/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "daemon/session/addition.h"
#include "writer/retention.h"
#include "writer/snapshot-note.h"
#include "writer/store.h"

/* Into the text for people and into flyrec's own section: that one is full is no reason against the
 * other */
static int add_to_file(int fd, const char *name, const struct own_cause *cause, struct fault *why)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	struct fault also;
	int noted = snapshot_note_add(fd, name, cause->text, why), r;

	r = trace_dat_open_fd(fd, name, &dat, &also);
	if (r >= 0)
		r = own_cause_add(dat, cause, &also);
	if (noted >= 0 && r < 0)
		*why = also;
	return noted < 0 ? noted : r;
}

int addition_write(int state_fd, const char *name, const struct own_cause *cause, unsigned rank,
		   const char *id, struct fault *why)
{
	_cleanup_close_ int dir_fd = -EBADF, fd = -EBADF;

	dir_fd = openat(state_fd, "snapshot", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd >= 0)
		fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot open %s", name);
	/* Two that come one soon after the other */
	(void)flock(fd, LOCK_EX);
	if (rank > store_rank(fd, RETENTION_RANK_LAST))
		(void)store_set_rank(fd, rank);
	/* It has that one already, or no more room */
	if (id && store_add_id(fd, id) <= 0)
		return 0;
	return add_to_file(fd, name, cause, why);
}
