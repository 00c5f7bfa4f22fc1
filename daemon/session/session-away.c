/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions whose disk is gone: shut down after an error, read-only, unmounted, or not mounted yet.
 * Nothing there can be repaired from here, and a file system that we hold open can neither be
 * unmounted nor mounted afresh. So we let go of it; the instance goes on tracing, what was in hand
 * stays in the pipes; and the session is started again and again until that works. Main thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/log.h"
#include "basic/now.h"
#include "daemon/session/session-internal.h"

#define PATIENCE_USEC (10 * USEC_PER_SEC) /* an error may pass */
#define HANG_USEC     (5 * USEC_PER_SEC)
#define AGAIN_USEC    (5 * USEC_PER_SEC)

bool session_is_error_of(int error, const int *errors, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (error == -errors[i])
			return true;
	return false;
}

bool session_disk_may_return(int error)
{
	static const int errors[] = {EIO,    EROFS,  ENOSPC,	EDQUOT,
				     ESTALE, ENODEV, ESHUTDOWN, EUCLEAN};

	return session_is_error_of(error, errors, ARRAY_SIZE(errors));
}

/* Has no worker come back since then? */
static bool hangs(struct session *s, uint64_t now)
{
	uint64_t bytes = drain_total_bytes(s->drain);

	if (drain_flushed(s->drain) || bytes != s->hang_bytes || s->hang_usec == 0) {
		s->hang_usec = now;
		s->hang_bytes = bytes;
	}
	return now - s->hang_usec >= HANG_USEC;
}

int session_trouble(struct session *s)
{
	int trouble = drain_trouble(s->drain);

	return trouble == 0 && hangs(s, now_usec(CLOCK_MONOTONIC)) ? -ETIMEDOUT : trouble;
}

void session_check_disk(struct session *s)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);
	int trouble;

	session_report_trouble(s);
	trouble = s->trouble;
	if (trouble == 0 || trouble == -ETIMEDOUT || session_disk_full(s))
		s->trouble_usec = now;
	else if (now - s->trouble_usec >= PATIENCE_USEC)
		s->leave_wanted = true;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	if (s->away && s->state == SESSION_FAILED && s->config)
		session_start(s);
	return 0;
}

static void try_again(struct session *s, uint64_t usec)
{
	int r;

	s->away = true;
	if (s->again_source) {
		r = sd_event_source_set_time_relative(s->again_source, usec);
		if (r >= 0)
			r = sd_event_source_set_enabled(s->again_source, SD_EVENT_ONESHOT);
	} else {
		r = sd_event_add_time_relative(s->env->event, &s->again_source, CLOCK_MONOTONIC,
					       usec, 0, on_again, s);
	}
	if (r < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, r, "cannot try again later: %m");
}

bool session_failed_for_disk(struct session *s, int error)
{
	if (!session_disk_may_return(error) || session_ends(s))
		return false;
	if (s->files.adopt && s->kernel) {
		state_free(s->left);
		s->left = TAKE_PTR(s->kernel);
	}
	state_root_leave(s->env->root);
	try_again(s, AGAIN_USEC);
	return true;
}

void session_left_disk(struct session *s)
{
	bool last = session_ends(s);

	session_note_away(s);
	state_root_leave(s->env->root);
	state_free(s->left);
	s->left = TAKE_PTR(s->kernel);
	(void)fault_set(&s->failure, s->trouble,
			"Closed all files below %s/%s so that it can be unmounted%s",
			s->env->state_dir, s->name, last ? "" : "; retrying every 5 s");
	s->leave_wanted = false;
	if (!s->pending)
		(void)session_config_copy(s->config, &s->pending);
	session_release(s, true);
	/* Who reads this may unmount it at once */
	(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, s->trouble, "%s", s->failure.text);
	try_again(s, s->trouble < 0 ? AGAIN_USEC : 0);
	if (last)
		session_end_away(s, s->env->handing_over);
}

void session_end_away(struct session *s, bool hand_over)
{
	struct fault why;

	if (!s->away)
		return;
	s->away = false;
	recording_forget_errors(s->recording);
	s->again_source = sd_event_source_disable_unref(s->again_source);
	s->events->settled(s->events->userdata); /* it may be forgotten now */
	if (hand_over)
		return;
	if (!s->left && session_recall_away(s, &s->left) < 0)
		return;
	fdstore_drop_session(s->env->fdstore, s->name);
	fdstore_flush(s->env->fdstore);
	(void)log_full(LOG_ERR, s->name, MESSAGE_EVENTS_LOST, 0,
		       "the disk has not come back; data left in the ring buffer was discarded");
	if (session_destroy_left(s, s->left, &why) < 0)
		(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s", why.text);
	state_free(TAKE_PTR(s->left));
	session_forget_away(s);
}

/* Is the directory that the path leads to still the one we have open? */
static bool is_elsewhere(const struct session *s)
{
	_cleanup_free_ char *path = NULL;
	struct stat ours, now;

	if (asprintf(&path, "%s/%s", s->env->state_dir, s->name) < 0) {
		path = NULL;
		return false;
	}
	return s->dir_fd >= 0 && fstat(s->dir_fd, &ours) >= 0 &&
	       (stat(path, &now) < 0 || now.st_dev != ours.st_dev || now.st_ino != ours.st_ino);
}

bool session_minds_mounts(const struct session *s)
{
	return s->away || (s->state == SESSION_RECORDING && !s->flight);
}

void session_mounts_changed(struct session *s)
{
	if (s->away && s->state == SESSION_FAILED) {
		try_again(s, 0);
	} else if (s->state == SESSION_RECORDING && is_elsewhere(s)) {
		s->leave_wanted = true;
		session_advance(s);
	}
}

int session_check_place(struct session *s, struct fault *why)
{
	struct stat ours, state;
	bool mounted;

	if (fstat(s->dir_fd, &ours) < 0 || fstat(state_root_fd(s->env->root), &state) < 0)
		return fault_errno(why, -errno, "cannot stat %s/%s", s->env->state_dir, s->name);
	mounted = ours.st_dev != state.st_dev;
	if (s->was_mounted && !mounted) {
		close_p(&s->dir_fd);
		s->dir_fd = -EBADF;
		return fault_set(why, -ESTALE, "%s/%s is no longer mounted", s->env->state_dir,
				 s->name);
	}
	s->was_mounted = mounted;
	return 0;
}
