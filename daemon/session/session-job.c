/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of a session that records which are jobs: what is done in a thread beside the main
 * loop, session_run_…(), and what follows from it, session_on_…().
 */
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/plumbing/job.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/session-runtime.h"

#define RETRY_USEC (10 * USEC_PER_SEC) /* after a rotation that could not be begun */

static void log_notes(struct session *s)
{
	const struct recording_notes *notes = &s->report.notes;

	for (size_t i = 0; i < notes->n; i++) {
		const struct recording_note *note = &notes->items[i];

		(void)log_full(note->level, s->name,
			       note->level == LOG_DEBUG ? NULL : MESSAGE_RECOVERED,
			       note->fault.error, "%s", note->fault.text);
	}
}

/*
 * Bytes of the next segment after which the one after it is begun: so much before MaxFileSize= as
 * has come in lately while one was being made
 */
static uint64_t next_limit(struct session *s)
{
	uint64_t max = session_max_file_size(s);
	int64_t left = drain_bytes_left(s->drain);
	uint64_t over = left < 0 ? (uint64_t)-left : 0;

	s->overshoot = MAX(over, s->overshoot / 8 * 7);
	return max - MIN(s->overshoot, max / 2);
}

/* The next file is there: point the workers at it */
void session_on_next(struct session *s, int result, const struct fault *why)
{
	if (result < 0 && result != s->next_error)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "cannot begin a new segment, going on in the old one: %s",
			       why->text);
	s->next_error = result;
	if (result < 0) {
		s->retry_usec = now_usec(CLOCK_MONOTONIC) + RETRY_USEC;
		s->held = false;
		drain_flush(s->drain);
		session_rotation_done(s, result, why->text);
		session_drop_change(s, result, why->text);
		return;
	}
	s->segment_usec = now_usec(CLOCK_MONOTONIC);
	s->step = STEP_RETARGETING;
	(void)drain_retarget(s->drain, recording_file(s->recording), next_limit(s));
}

void session_file_is_made(void)
{
	(void)malloc_trim(0);
}

void session_on_finished(struct session *s, int result, const struct fault *why)
{
	const char *archive = s->report.archive;
	_cleanup_free_ char *path = NULL;

	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "%s; what is left to do is tried again", why->text);
	if (result >= 0 && archive[0] &&
	    asprintf(&path, "%s/%s/record/%s", s->env->state_dir, s->name, archive) < 0)
		path = NULL;
	session_rotation_done(s, result, result < 0 ? why->text : path ? path : "");
	session_file_is_made();
	s->events->changed(s->events->userdata, s);
}

void session_on_closed(struct session *s, int result, const struct fault *why)
{
	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "%s; the file stays as it is and is finished at the next start",
			       why->text);
	else if (s->report.archive[0])
		session_on_finished(s, 0, why);
	session_release(s, false);
	session_settle(s, SESSION_STOPPED);
}

void session_on_synced(struct session *s, int result, const struct fault *why)
{
	if (result < 0 && result != s->sync_error)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result, "%s", why->text);
	s->sync_error = result;
	if (trace_file_is_unsure(recording_file(s->recording)))
		s->wants |= WANT_ROTATE;
	session_note_synced(s); /* it says what was synced, whatever else has failed */
	if (session_disk_full(s))
		drain_flush(s->drain); /* there may be room again */
}

/* What a job has found out about files */
static void take_usage(struct session *s)
{
	const struct recording_report *report = &s->report;

	if (report->counted) {
		s->kept_files = report->kept_files;
		s->kept_bytes = report->kept_bytes;
		s->past = report->past;
	}
	for (unsigned cpu = 0; cpu < report->n_cpus; cpu++) {
		account_evict(&s->account, cpu, report->evicted[cpu]);
		if (cpu < drain_n_cpus(s->drain))
			drain_add_dropped(s->drain, cpu, report->unsure[cpu]);
	}
}

static void announce_finished(struct session *s)
{
	char path[PATH_MAX];

	STRV_FOREACH (name, s->report.finished) {
		(void)snprintf(path, sizeof(path), "%s/%s/record/%s", s->env->state_dir, s->name,
			       *name);
		s->events->segment_finished(s->events->userdata, s, path);
	}
}

void session_harvest(struct session *s)
{
	log_notes(s);
	take_usage(s);
	announce_finished(s);
	recording_report_clear(&s->report);
}

/* Of a session that records; a flight session counts its own when it begins */
static void count_snapshots(struct session *s)
{
	_cleanup_close_ int fd =
		openat(s->dir_fd, "snapshot", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct retention_report report = {0};

	if (fd < 0 || retention_count(fd, &report) < 0)
		return;
	s->snapshots = report.kept_files;
	s->snapshot_bytes = report.kept_bytes;
}

int session_run_open(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	int r = recording_open(s->recording, &s->files, &s->report, why);

	count_snapshots(s);
	return r >= 0 && s->away ? recording_probe_disk(s->recording, why) : r;
}

/* What it says of the file is of one called current.dat */
int session_run_next(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	session_forget_synced(s);
	return recording_begin_next(s->recording, &s->files, &s->report, why);
}

int session_run_close(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	session_forget_synced(s);
	return recording_finish_old(s->recording, &s->files, &s->report, why);
}

/* The new segment's counters into the state file as well, which may wait for the disk like the rest
 */
int session_run_finish(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	struct fault not_noted;
	int noted = session_write_notes(s, &not_noted), r;

	r = session_run_close(s, why);
	if (r >= 0 && noted < 0)
		*why = not_noted;
	return r < 0 ? r : noted;
}

int session_run_note(void *userdata, struct fault *why)
{
	return session_write_notes(userdata, why);
}

int session_run_sync(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	return recording_sync(s->recording, &s->files, &s->report, why);
}

void session_begin_next(struct session *s)
{
	struct fault why;
	int r = session_prepare_segment(s, &why);

	s->wants &= ~WANT_ROTATE;
	session_rotation_begins(s);
	if (r < 0) {
		session_on_next(s, r, &why);
		return;
	}
	session_start_job(s, STEP_NEXT);
}
