/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the daemon as a whole keeps: the state directory under its lock, and the size of the
 * kernel's table of task names. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "daemon/daemon-state.h"
#include "recorder/saved-cmdlines.h"

#define LOCK_FILE     ".lock" /* no session is called so: names begin with a letter, digit, _ or - */
#define CMDLINES_FILE ".saved_cmdlines_size"
#define CMDLINES_SIZE 32768 /* the most the kernel takes: PID_MAX_DEFAULT */

/* Files belong to group flyrec where there is one */
static void join_group(void)
{
	struct group *group = getgrnam("flyrec");

	/* Not if the unit has seen to it: its sandbox refuses the call */
	if (group && geteuid() == 0 && getegid() != group->gr_gid && setegid(group->gr_gid) < 0)
		log_warning_errno(-errno, "cannot make files for group flyrec: %m, ignoring");
}

int daemon_open_state_dir(struct daemon *d)
{
	const char *dir = d->options.state_dir;
	struct stat st;
	int fd;

	(void)umask(0027);
	join_group();
	if (mkdir(dir, 0750) < 0 && errno != EEXIST)
		return log_error_errno(-errno, "cannot make state directory %s: %m", dir);
	d->state_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->state_fd < 0)
		return log_error_errno(-errno, "cannot open state directory %s: %m", dir);
	if (fstat(d->state_fd, &st) < 0)
		return log_error_errno(-errno, "cannot stat state directory %s: %m", dir);
	if (st.st_uid != geteuid())
		return log_error_errno(-EPERM, "state directory %s belongs to user %u, not to us",
				       dir, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return log_error_errno(-EPERM,
				       "state directory %s can be written by others (mode %04o)",
				       dir, (unsigned)st.st_mode & 07777);
	fd = openat(d->state_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return log_error_errno(-errno, "cannot write to state directory %s: %m", dir);
	/* Held until the process ends, whatever way it does */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? log_error_errno(-EBUSY, "another flyrecd uses state directory %s",
						 dir)
			       : log_error_errno(-errno, "cannot lock state directory %s: %m", dir);
	return 0;
}

/* More task names than the kernel keeps by itself; the old size is kept over a kill */
void daemon_raise_cmdlines(struct daemon *d)
{
	_cleanup_free_ char *text = NULL;
	char line[64], boot_id[33];
	struct fault why = {};
	unsigned old = 0;

	if (saved_cmdlines_raise(CMDLINES_SIZE, &d->cmdlines_old, &why) < 0)
		log_warning("%s, ignoring: some tasks may show as <...>", why.text);
	if (d->cmdlines_old == 0 && io_read_file_at(d->state_fd, CMDLINES_FILE, &text, NULL) >= 0 &&
	    sscanf(text, "%32s %u", boot_id, &old) == 2 && strcmp(boot_id, d->boot_id_text) == 0)
		d->cmdlines_old = old;
	if (d->cmdlines_old == 0)
		return;
	(void)snprintf(line, sizeof(line), "%s %u\n", d->boot_id_text, d->cmdlines_old);
	(void)io_write_file_at(d->state_fd, CMDLINES_FILE, line, strlen(line), 0640);
}

void daemon_restore_cmdlines(struct daemon *d)
{
	struct fault why = {};

	if (d->cmdlines_old == 0 || d->phase == DAEMON_HANDING_OVER)
		return;
	if (saved_cmdlines_restore(CMDLINES_SIZE, d->cmdlines_old, &why) < 0)
		log_warning("%s, ignoring", why.text);
	(void)unlinkat(d->state_fd, CMDLINES_FILE, 0);
}
