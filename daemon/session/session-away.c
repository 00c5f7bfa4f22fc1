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

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	s->wants |= WANT_START;
	session_wake(s);
	return 0;
}

void session_try_again(struct session *s, uint64_t usec)
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
	session_try_again(s, SESSION_AGAIN_USEC);
	return true;
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
		session_try_again(s, 0);
	} else if (s->state == SESSION_RECORDING && is_elsewhere(s)) {
		s->wants |= WANT_LEAVE;
		session_wake(s);
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
