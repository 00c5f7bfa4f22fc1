/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions and the trouble that their disk makes: told once, and when it lasts the disk counts as
 * gone: shut down after an error, read-only, unmounted, or not mounted yet. Nothing there can be
 * repaired from here, and a file system that we hold open can neither be unmounted nor mounted
 * afresh. So we let go of it; the instance goes on tracing, what was in hand stays in the pipes;
 * and the session is started again and again until that works. The only writer of struct
 * session_disk. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "daemon/plumbing/state-root.h"
#include "daemon/session/session-internal.h"

#define PATIENCE_USEC (10 * USEC_PER_SEC) /* an error may pass */
#define HANG_USEC     (5 * USEC_PER_SEC)

void disk_watch_begin(struct disk_watch *w, uint64_t now_usec)
{
	*w = (struct disk_watch){.trouble_usec = now_usec};
}

int disk_watch_look(struct disk_watch *w, int trouble, bool idle, uint64_t bytes, uint64_t now_usec)
{
	if (trouble < 0)
		return trouble;
	if (idle || bytes != w->bytes || w->progress_usec == 0) {
		w->progress_usec = now_usec;
		w->bytes = bytes;
	}
	return now_usec - w->progress_usec >= HANG_USEC ? -ETIMEDOUT : 0;
}

bool disk_watch_observe(struct disk_watch *w, int trouble, uint64_t now_usec)
{
	if (trouble == 0 || trouble == -ETIMEDOUT || disk_watch_is_full(trouble))
		w->trouble_usec = now_usec;
	return now_usec - w->trouble_usec >= PATIENCE_USEC;
}

bool disk_watch_is_full(int trouble)
{
	return trouble == -ENOSPC || trouble == -EDQUOT;
}

/* --- while it is there */

bool session_disk_full(const struct session *s)
{
	return disk_watch_is_full(drain_trouble(s->rec.drain));
}

/* CPU by CPU, and try by try, one disk gives different errors: each kind is told once */
static unsigned trouble_kind(int trouble)
{
	if (disk_watch_is_full(trouble))
		return 1U << 0;
	return trouble == -ETIMEDOUT ? 1U << 1 : 1U << 2;
}

static void tell_trouble(struct session *s, int trouble)
{
	unsigned kind = trouble < 0 ? trouble_kind(trouble) : 0;
	int level = trouble == 0 ? LOG_NOTICE : s->disk.told & kind ? LOG_DEBUG : LOG_ERR;
	struct fault failure = {};

	s->disk.told = trouble < 0 ? s->disk.told | kind : 0;
	if (trouble < 0)
		(void)fault_set(
			&failure, trouble,
			"cannot write to %s/%s/record/current.dat: %s; the ring buffer keeps the newest events, trying again",
			s->env->state_dir, s->name,
			trouble == -ETIMEDOUT ? "the disk does not answer" : strerror(-trouble));
	session_set_failure(s, &failure);
	(void)log_full(level, s->name, MESSAGE_DISK_TROUBLE, trouble, "%s",
		       trouble < 0 ? failure.text : "writing again");
	s->events->changed(s->events->userdata, s);
}

void session_report_trouble(struct session *s)
{
	int trouble = disk_watch_look(&s->disk.watch, drain_trouble(s->rec.drain),
				      drain_flushed(s->rec.drain), drain_total_bytes(s->rec.drain),
				      now_usec(CLOCK_MONOTONIC));

	if (trouble == s->disk.trouble)
		return;
	tell_trouble(s, trouble);
	s->disk.trouble = trouble;
	/* Room may be made by retention, which is part of a sync */
	if (session_disk_full(s))
		session_want(s, WANT_SYNC);
}

void session_watch_disk(struct session *s)
{
	s->disk.trouble = 0;
	s->disk.told = 0;
	disk_watch_begin(&s->disk.watch, now_usec(CLOCK_MONOTONIC));
}

void session_disk_is_back(struct session *s)
{
	if (s->disk.away)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_DISK_TROUBLE, 0, "writing again");
	s->disk.away = false;
}

/* --- when it is gone */

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

	session_want(s, WANT_START);
	return 0;
}

void session_try_again(struct session *s, uint64_t usec)
{
	int r;

	s->disk.away = true;
	if (s->disk.again_source) {
		r = sd_event_source_set_time_relative(s->disk.again_source, usec);
		if (r >= 0)
			r = sd_event_source_set_enabled(s->disk.again_source, SD_EVENT_ONESHOT);
	} else {
		r = sd_event_add_time_relative(s->env->event, &s->disk.again_source,
					       CLOCK_MONOTONIC, usec, 0, on_again, s);
	}
	if (r < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, r, "cannot try again later: %m");
}

bool session_failed_for_disk(struct session *s, int error)
{
	if (!session_disk_may_return(error) || session_ends(s))
		return false;
	if (s->claim.adopted && s->claim.state)
		session_leave_claim(s);
	state_root_leave(s->env->root);
	session_try_again(s, SESSION_AGAIN_USEC);
	return true;
}

void session_end_away(struct session *s, bool hand_over)
{
	if (!s->disk.away)
		return;
	s->disk.away = false;
	recording_forget_errors(s->rec.recording);
	s->disk.again_source = sd_event_source_disable_unref(s->disk.again_source);
	s->events->settled(s->events->userdata); /* it may be forgotten now */
	if (!hand_over)
		session_discard_left(s);
}

bool session_minds_mounts(const struct session *s)
{
	return s->disk.away || (s->state == SESSION_RECORDING && s->mode->drains);
}

void session_mounts_changed(struct session *s)
{
	if (s->disk.away && s->state == SESSION_FAILED) {
		session_try_again(s, 0);
	} else if (s->state == SESSION_RECORDING && session_is_elsewhere(s)) {
		session_want(s, WANT_LEAVE);
	}
}

bool session_waits_for_disk(const struct session *s)
{
	return s->disk.away;
}
