/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a session does in a thread beside the main loop, a step at a time, and what follows from it
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
static void on_next(struct session *s, int result, const struct fault *why)
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

static void on_finished(struct session *s, int result, const struct fault *why)
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

static void on_closed(struct session *s, int result, const struct fault *why)
{
	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "%s; the file stays as it is and is finished at the next start",
			       why->text);
	else if (s->report.archive[0])
		on_finished(s, 0, why);
	session_release(s, false);
	session_settle(s, SESSION_STOPPED);
}

static void on_synced(struct session *s, int result, const struct fault *why)
{
	if (result < 0 && result != s->sync_error)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result, "%s", why->text);
	s->sync_error = result;
	s->rotate_wanted |= trace_file_is_unsure(recording_file(s->recording));
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

static void on_job(void *userdata, int result, const struct fault *why)
{
	struct session *s = userdata;
	enum session_step step = s->step;

	s->step = STEP_NONE;
	log_notes(s);
	take_usage(s);
	announce_finished(s);
	recording_report_clear(&s->report);
	switch (step) {
	case STEP_SAVING_BOOT:
		session_boot_trace_done(s, result, why);
		return;
	case STEP_OPENING:
		session_opened(s, result, why);
		break;
	case STEP_NEXT:
		on_next(s, result, why);
		break;
	case STEP_FINISHING:
		on_finished(s, result, why);
		break;
	case STEP_SYNCING:
		on_synced(s, result, why);
		break;
	case STEP_NOTING:
		if (result < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, result, "%s, ignoring",
				       why->text);
		break;
	case STEP_CAPTURING:
		session_captured(s, result, why);
		break;
	case STEP_CUTTING:
		session_cut_done(s, result, why);
		break;
	case STEP_CLOSING:
		on_closed(s, result, why);
		return;
	default:
		break;
	}
	session_advance(s);
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

static int run_open(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	int r = recording_open(s->recording, &s->files, &s->report, why);

	count_snapshots(s);
	return r >= 0 && s->away ? recording_probe_disk(s->recording, why) : r;
}

/* What it says of the file is of one called current.dat */
static int run_next(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	session_forget_synced(s);
	return recording_begin_next(s->recording, &s->files, &s->report, why);
}

static int run_close(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	session_forget_synced(s);
	return recording_finish_old(s->recording, &s->files, &s->report, why);
}

/* The new segment's counters into the state file as well, which may wait for the disk like the rest
 */
static int run_finish(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	struct fault not_noted;
	int noted = session_write_notes(s, &not_noted), r;

	r = run_close(s, why);
	if (r >= 0 && noted < 0)
		*why = not_noted;
	return r < 0 ? r : noted;
}

static int run_note(void *userdata, struct fault *why)
{
	return session_write_notes(userdata, why);
}

static int run_sync(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	return recording_sync(s->recording, &s->files, &s->report, why);
}

/* Without a thread for it the step fails */
void session_start_job(struct session *s, enum session_step step)
{
	static const job_work_t work[] = {
		[STEP_SAVING_BOOT] = session_run_boot_trace,
		[STEP_OPENING] = run_open,
		[STEP_NEXT] = run_next,
		[STEP_FINISHING] = run_finish,
		[STEP_SYNCING] = run_sync,
		[STEP_CLOSING] = run_close,
		[STEP_CUTTING] = session_run_cut,
		[STEP_NOTING] = run_note,
		[STEP_CAPTURING] = session_run_capture,
	};
	struct fault why;
	int r;

	s->step = step;
	/* While it is being written the session may be paused */
	if (step == STEP_FINISHING || step == STEP_NOTING)
		(void)state_format(s->kernel, &s->notes);
	r = job_start(s->env->event, work[step], on_job, s);
	if (r < 0) {
		free(TAKE_PTR(s->notes));
		(void)fault_errno(&why, r, "cannot start a thread");
		session_defer(s, step, &why);
	}
}

static int on_deferred(sd_event_source *source, void *userdata)
{
	struct session *s = userdata;
	struct fault why = s->deferred;

	(void)sd_event_source_disable_unref(source); /* else it stays as long as the loop */
	on_job(s, why.error, &why);
	return 0;
}

void session_defer(struct session *s, enum session_step step, const struct fault *why)
{
	s->step = step;
	s->deferred = *why;
	if (sd_event_add_defer(s->env->event, NULL, on_deferred, s) < 0)
		on_job(s, why->error, why);
}

void session_begin_next(struct session *s)
{
	struct fault why;
	int r = session_prepare_segment(s, &why);

	s->rotate_wanted = false;
	session_rotation_begins(s);
	if (r < 0) {
		on_next(s, r, &why);
		return;
	}
	session_start_job(s, STEP_NEXT);
}
