/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the daemon as a whole keeps: the state directory under its lock, and the size of the
 * kernel's table of task names. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/owner.h"
#include "daemon/manager/daemon-state.h"
#include "daemon/session/session.h"
#include "engine/clock.h"
#include "recorder/saved-cmdlines.h"
#include "writer/file-age.h"

#define LOCK_FILE	".lock" /* no session is called so: names begin with a letter, digit, _ or - */
#define CMDLINES_FILE	".saved_cmdlines_size"
#define MOUNTED_FILE	"state-mounted"
#define NOTES_SIZE_MAX	(4 * KIB)
#define CLOCK_TELL_USEC (USEC_PER_SEC / 1000) /* less is not worth a line in the log */
#define SLEPT_USEC	USEC_PER_SEC
#define CMDLINES_SIZE	32768 /* the most the kernel takes: PID_MAX_DEFAULT */

void daemon_close_state_dir(struct daemon *d)
{
	close_p(&d->state_fd);
	close_p(&d->lock_fd);
	d->state_fd = d->lock_fd = -EBADF;
}

/* In RUNTIME/state-mounted is the boot in which we let go of a state directory that is a file
 * system of its own: a next process might find only what lies below it */
static int open_runtime_dir(const struct daemon *d)
{
	return open(d->options.runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void note_mount(const struct daemon *d)
{
	_cleanup_close_ int fd = open_runtime_dir(d);
	int r = fd < 0 ? -errno
		       : io_replace_file_at(fd, MOUNTED_FILE, d->boot_id_text,
					    strlen(d->boot_id_text), 0644);

	if (r < 0)
		log_warning_errno(r, "cannot write %s/" MOUNTED_FILE ": %m, ignoring",
				  d->options.runtime_dir);
}

void daemon_forget_mount(const struct daemon *d)
{
	_cleanup_close_ int fd = open_runtime_dir(d);

	if (fd >= 0)
		(void)unlinkat(fd, MOUNTED_FILE, 0);
}

static bool was_mounted(const struct daemon *d)
{
	_cleanup_close_ int fd = open_runtime_dir(d);
	_cleanup_free_ char *text = NULL;

	return fd >= 0 &&
	       io_read_stored_file_at(fd, MOUNTED_FILE, NOTES_SIZE_MAX, &text, NULL) >= 0 &&
	       strcmp(text, d->boot_id_text) == 0;
}

void daemon_leave_state_dir(struct daemon *d)
{
	for (size_t i = 0; i < d->n_sessions; i++)
		if (session_state(d->sessions[i]) == SESSION_RECORDING)
			return;
	if (d->state_mounted && d->state_fd >= 0)
		note_mount(d);
	daemon_close_state_dir(d);
}

/* Was it a file system of its own, and is only what lay below it now? */
static int check_mount(struct daemon *d, const char *dir, int fd, const struct stat *st,
		       struct fault *why)
{
	struct stat above;
	bool mounted;

	if (fstatat(fd, "..", &above, 0) < 0)
		return fault_errno(why, -errno, "cannot stat what is above %s", dir);
	mounted = above.st_dev != st->st_dev;
	if (d->state_mounted && !mounted)
		return fault_set(why, -ESTALE, "%s is no longer mounted", dir);
	d->state_mounted = mounted;
	return 0;
}

static int open_dir(struct daemon *d, const char *dir, int *ret_fd, int *ret_lock,
		    struct fault *why)
{
	_cleanup_close_ int fd = -EBADF, lock = -EBADF;
	struct stat st;
	int r;

	if (mkdir(dir, 0750) < 0 && errno != EEXIST)
		return fault_errno(why, -errno, "cannot make state directory %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot open state directory %s", dir);
	if (fstat(fd, &st) < 0)
		return fault_errno(why, -errno, "cannot stat state directory %s", dir);
	if (st.st_uid != owner_uid())
		return fault_set(why, -EPERM, "state directory %s belongs to user %u, not to us",
				 dir, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fault_set(why, -EPERM,
				 "state directory %s can be written by others (mode %04o)", dir,
				 (unsigned)st.st_mode & 07777);
	r = check_mount(d, dir, fd, &st, why);
	if (r < 0)
		return r;
	/* Who can read it can lock it: nobody else, also where an earlier flyrecd let the group */
	lock = openat(fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0 || fstat(lock, &st) < 0 ||
	    ((st.st_mode & 07777) != 0600 && fchmod(lock, 0600) < 0))
		return fault_errno(why, -errno, "cannot write to state directory %s", dir);
	/* Held until the process ends, whatever way it does, or lets go of the directory */
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? fault_set(why, -EBUSY, "another flyrecd uses state directory %s",
					   dir)
			       : fault_errno(why, -errno, "cannot lock state directory %s", dir);
	*ret_fd = TAKE_FD(fd);
	*ret_lock = TAKE_FD(lock);
	return 0;
}

int daemon_find_state_dir(struct daemon *d, struct fault *why)
{
	struct stat now, ours;
	int fd = -EBADF, lock = -EBADF, r;

	if (d->state_fd >= 0 && stat(d->options.state_dir, &now) >= 0 &&
	    fstat(d->state_fd, &ours) >= 0 && now.st_dev == ours.st_dev &&
	    now.st_ino == ours.st_ino)
		return 0;
	r = open_dir(d, d->options.state_dir, &fd, &lock, why);
	if (r < 0)
		return r;
	daemon_close_state_dir(d);
	d->state_fd = fd;
	d->lock_fd = lock;
	d->state_new = true;
	daemon_forget_mount(d);
	return 0;
}

int daemon_open_state_dir(struct daemon *d)
{
	struct fault why;
	int r;

	(void)umask(0027);
	d->state_mounted = was_mounted(d);
	r = daemon_find_state_dir(d, &why);
	if (r < 0 && !session_disk_may_return(r))
		return log_error_errno(r, "%s", why.text);
	/* It may be mounted, or writable, in a moment */
	if (r < 0)
		log_warning("%s; sessions are tried again until that has changed", why.text);
	d->state_new = false;
	return 0;
}

static bool read_cmdlines_note(const struct daemon *d, unsigned *ret)
{
	_cleanup_free_ char *text = NULL;
	char boot_id[33];

	return io_read_stored_file_at(d->state_fd, CMDLINES_FILE, NOTES_SIZE_MAX, &text, NULL) >=
		       0 &&
	       sscanf(text, "%32s %u", boot_id, ret) == 2 && strcmp(boot_id, d->boot_id_text) == 0;
}

/* More task names than the kernel keeps by itself; the old size is kept over a kill */
void daemon_raise_cmdlines(struct daemon *d)
{
	char line[64];
	struct fault why = {};
	unsigned old = 0;

	if (d->cmdlines_raised)
		return;
	d->cmdlines_raised = true;
	if (saved_cmdlines_raise(CMDLINES_SIZE, &d->cmdlines_old, &why) < 0)
		log_warning("%s, ignoring: some tasks may show as <...>", why.text);
	if (d->cmdlines_old == 0 && read_cmdlines_note(d, &old))
		d->cmdlines_old = old;
	if (d->cmdlines_old == 0)
		return;
	(void)snprintf(line, sizeof(line), "%s %u\n", d->boot_id_text, d->cmdlines_old);
	(void)io_replace_file_at(d->state_fd, CMDLINES_FILE, line, strlen(line), 0640);
}

void daemon_resume_cmdlines(struct daemon *d)
{
	unsigned old;

	if (read_cmdlines_note(d, &old))
		daemon_raise_cmdlines(d);
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

static int on_mounts(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;

	for (size_t i = 0; i < d->n_sessions; i++)
		session_mounts_changed(d->sessions[i]);
	return 0;
}

void daemon_mind_mounts(struct daemon *d)
{
	bool minded = false;

	for (size_t i = 0; i < d->n_sessions; i++)
		minded |= session_minds_mounts(d->sessions[i]);
	if (d->mounts_source)
		(void)sd_event_source_set_enabled(d->mounts_source,
						  minded ? SD_EVENT_ON : SD_EVENT_OFF);
}

int daemon_watch_mounts(struct daemon *d)
{
	int r;

	d->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (d->mounts_fd < 0)
		return -errno;
	/* proc_pid_mountinfo(5): a change is an exceptional condition, told once */
	r = sd_event_add_io(d->event, &d->mounts_source, d->mounts_fd, EPOLLPRI, on_mounts, d);
	return r < 0 ? r : sd_event_source_set_enabled(d->mounts_source, SD_EVENT_OFF);
}

/* Ends when the clock is set or the machine was suspended, and never else */
static int arm_clock(const struct daemon *d)
{
	const struct itimerspec never = {.it_value.tv_sec = INT64_MAX / (int64_t)NSEC_PER_SEC};

	return timerfd_settime(d->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never,
			       NULL) < 0
		       ? -errno
		       : 0;
}

static void tell_of_step(struct daemon *d)
{
	int64_t now = file_age_offset_usec(), by = now - d->clock_usec;

	if (llabs(by) < (int64_t)CLOCK_TELL_USEC)
		return;
	d->clock_usec = now;
	log_notice("the clock was set %s by %lld.%03lld s: beginning new segments",
		   by > 0 ? "forward" : "back", llabs(by) / (long long)USEC_PER_SEC,
		   llabs(by) % (long long)USEC_PER_SEC / 1000);
}

static bool has_slept(struct daemon *d)
{
	int64_t now = clock_slept_usec(), slept = now - d->slept_usec;

	if (slept < (int64_t)SLEPT_USEC)
		return false;
	d->slept_usec = now;
	log_notice("the machine was suspended for %lld s: beginning new segments, but for clocks "
		   "that went on",
		   (long long)slept / (long long)USEC_PER_SEC);
	return true;
}

static int on_clock(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;
	bool slept;
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
	(void)arm_clock(d);
	tell_of_step(d);
	slept = has_slept(d);
	for (size_t i = 0; i < d->n_sessions; i++) {
		session_clock_set(d->sessions[i]);
		if (slept)
			session_slept(d->sessions[i]);
	}
	return 0;
}

int daemon_watch_clock(struct daemon *d)
{
	sd_event_source *source;
	int r;

	d->clock_usec = file_age_offset_usec();
	d->slept_usec = clock_slept_usec();
	d->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	r = d->clock_fd < 0 ? -errno : arm_clock(d);
	if (r >= 0)
		r = sd_event_add_io(d->event, &source, d->clock_fd, EPOLLIN, on_clock, d);
	if (r >= 0)
		r = sd_event_source_set_floating(source, true);
	if (r >= 0)
		(void)sd_event_source_unref(source);
	return r;
}
