/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "basic/log.h"
#include "daemon/job.h"
#include "daemon/session-internal.h"

#define RETRY_USEC (10 * USEC_PER_SEC) /* after a rotation that could not be begun */

uint64_t session_now_usec(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

int session_new(struct daemon *daemon, const char *name, struct session **ret)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->daemon = daemon;
	s->dir_fd = s->notify_fd = s->segment.dir_fd = -EBADF;
	drain_init(&s->drain);
	s->name = strdup(name);
	if (!s->name) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_release(s, true);
	session_config_free(s->config);
	session_config_free(s->pending);
	free(s->name);
	free(s);
}

const char *session_name(const struct session *s)
{
	return s->name;
}

enum session_state session_state(const struct session *s)
{
	return s->state;
}

const char *session_state_name(enum session_state state)
{
	static const char *const names[] = {"stopped", "starting", "recording", "stopping",
					    "failed"};

	return names[state];
}

bool session_settled(const struct session *s)
{
	return s->step == STEP_NONE &&
	       (s->state == SESSION_STOPPED || s->state == SESSION_FAILED) && !s->pending;
}

const char *session_failure(const struct session *s)
{
	return s->failure.text;
}

uint64_t session_total_bytes(const struct session *s)
{
	return drain_total_bytes(&s->drain);
}

static void settled(struct session *s, enum session_state state)
{
	s->state = state;
	s->stop_wanted = s->hand_over = s->rotate_wanted = s->sync_wanted = s->salvage = false;
	session_config_free(s->config);
	s->config = TAKE_PTR(s->pending);
	if (s->config && state == SESSION_STOPPED && s->daemon->phase < DAEMON_STOPPING)
		session_start(s);
	else
		daemon_session_settled(s->daemon, s);
}

void session_fail(struct session *s, const struct fault *why)
{
	s->failure = *why;
	(void)log_full(LOG_ERR, s->name, MESSAGE_SESSION_FAILED, why->error, "session failed: %s",
		       why->text);
	session_release(s, false);
	settled(s, SESSION_FAILED);
}

static void log_notes(struct session *s)
{
	struct segment_notes *notes = &s->segment.notes;

	for (size_t i = 0; i < notes->n; i++)
		(void)log_full(notes->items[i].error ? LOG_WARNING : LOG_INFO, s->name,
			       MESSAGE_RECOVERED, notes->items[i].error, "%s",
			       notes->items[i].text);
	notes->n = 0;
}

static void on_opened(struct session *s, int result)
{
	struct fault why = s->segment.failure;

	if (result >= 0)
		result = session_begin_recording(s, &why);
	if (result < 0) {
		session_fail(s, &why);
		return;
	}
	s->state = SESSION_RECORDING;
	if (!s->salvage)
		(void)log_full(LOG_INFO, s->name, MESSAGE_SESSION_STARTED, 0, "recording (%s)",
			       trace_file_is_direct(s->segment.file) ? "O_DIRECT" : "page cache");
	daemon_session_settled(s->daemon, s);
}

/*
 * Bytes of the next segment after which the one after it is begun: so much before MaxFileSize= as
 * has come in lately while one was being made
 */
static uint64_t next_limit(struct session *s)
{
	uint64_t max = session_max_file_size(s);
	int64_t left = atomic_load(&s->drain.bytes_left);
	uint64_t over = left < 0 ? (uint64_t)-left : 0;

	s->overshoot = MAX(over, s->overshoot / 8 * 7);
	return max - MIN(s->overshoot, max / 2);
}

/* The next file is there: point the workers at it */
static void on_next(struct session *s, int result)
{
	if (result < 0 && result != s->next_error)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "cannot begin a new segment, going on in the old one: %s",
			       s->segment.failure.text);
	s->next_error = result;
	if (result < 0) {
		s->retry_usec = session_now_usec() + RETRY_USEC;
		return;
	}
	s->segment_usec = session_now_usec();
	s->step = STEP_RETARGETING;
	(void)drain_retarget(&s->drain, s->segment.file, next_limit(s));
}

static void on_closed(struct session *s, int result)
{
	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "%s; the file stays as it is and is finished at the next start",
			       s->segment.failure.text);
	session_release(s, false);
	settled(s, SESSION_STOPPED);
}

static void on_synced(struct session *s, int result)
{
	if (result < 0 && result != s->sync_error)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result, "%s",
			       s->segment.failure.text);
	s->sync_error = result;
	if (session_disk_full(s))
		drain_flush(&s->drain); /* there may be room again */
}

static void on_job(void *userdata, int result)
{
	struct session *s = userdata;
	enum session_step step = s->step;

	s->step = STEP_NONE;
	log_notes(s);
	switch (step) {
	case STEP_OPENING:
		on_opened(s, result);
		break;
	case STEP_NEXT:
		on_next(s, result);
		break;
	case STEP_FINISHING:
		if (result < 0)
			(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
				       "%s; it is finished at the next start",
				       s->segment.failure.text);
		break;
	case STEP_SYNCING:
		on_synced(s, result);
		break;
	case STEP_CLOSING:
		on_closed(s, result);
		return;
	default:
		break;
	}
	session_advance(s);
}

static int run_open(void *userdata)
{
	return segment_open(&((struct session *)userdata)->segment);
}

static int run_next(void *userdata)
{
	return segment_begin_next(&((struct session *)userdata)->segment);
}

static int run_finish(void *userdata)
{
	return segment_finish_old(&((struct session *)userdata)->segment);
}

static int run_sync(void *userdata)
{
	return segment_sync(&((struct session *)userdata)->segment);
}

/* Without a thread for it the step fails at once */
void session_start_job(struct session *s, enum session_step step)
{
	static int (*const work[])(void *) = {
		[STEP_OPENING] = run_open,     [STEP_NEXT] = run_next,
		[STEP_FINISHING] = run_finish, [STEP_SYNCING] = run_sync,
		[STEP_CLOSING] = run_finish,
	};
	int r;

	s->step = step;
	r = job_start(s->daemon->event, work[step], on_job, s);
	if (r < 0) {
		(void)fault_errno(&s->segment.failure, r, "cannot start a thread");
		on_job(s, r);
	}
}

/* Tracing is off and everything there was has been taken: close the last segment */
static void on_drained(struct session *s)
{
	if (drain_full(&s->drain) && session_now_usec() >= s->retry_usec) {
		s->rotate_wanted = true;
		return;
	}
	if (drain_full(&s->drain) || drain_trouble(&s->drain) < 0)
		(void)log_full(
			LOG_ERR, s->name, MESSAGE_EVENTS_LOST, drain_trouble(&s->drain),
			"the disk did not take all events: what was left in the ring buffer is lost");
	session_prepare_stats(s, true);
	drain_close(&s->drain, s->name, s->daemon->fdstore, false);
	segment_close_current(&s->segment);
	session_start_job(s, STEP_CLOSING);
}

static void on_workers_done(struct session *s)
{
	enum session_step step = s->step;
	struct fault why;

	s->step = STEP_NONE;
	switch (step) {
	case STEP_RETARGETING:
		session_prepare_stats(s, true);
		if (session_note_base(s, true, &why) < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring",
				       why.text);
		session_start_job(s, STEP_FINISHING);
		break;
	case STEP_DRAINING:
		on_drained(s);
		break;
	case STEP_LEAVING:
		s->kernel->handed_over = drain_trouble(&s->drain) == 0;
		if (state_write(s->dir_fd, s->kernel) < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, 0,
				       "cannot write the state file, ignoring");
		session_release(s, true);
		settled(s, SESSION_STOPPED);
		break;
	default:
		break;
	}
}

int session_on_notify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct session *s = userdata;
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
	session_report_trouble(s);
	if ((s->step == STEP_RETARGETING || s->step == STEP_DRAINING || s->step == STEP_LEAVING) &&
	    drain_idle(&s->drain))
		on_workers_done(s);
	if (s->state == SESSION_RECORDING &&
	    (drain_full(&s->drain) || atomic_load(&s->drain.bytes_left) <= 0))
		s->rotate_wanted = true;
	session_advance(s);
	return 0;
}

static void begin_next(struct session *s)
{
	struct fault why;
	int r = session_prepare_segment(s, &why);

	s->rotate_wanted = false;
	if (r < 0) {
		s->segment.failure = why;
		on_next(s, r);
		return;
	}
	session_start_job(s, STEP_NEXT);
}

static void begin_stop(struct session *s)
{
	struct fault why;

	s->state = SESSION_STOPPING;
	s->flush_source = sd_event_source_disable_unref(s->flush_source);
	if (s->hand_over) {
		s->step = STEP_LEAVING;
		(void)drain_post(&s->drain, WORKER_LEAVE);
		return;
	}
	if (instance_trace(s->instance, false, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring", why.text);
	s->step = STEP_DRAINING;
	(void)drain_post(&s->drain, WORKER_FINISH);
}

void session_advance(struct session *s)
{
	bool running = s->state == SESSION_RECORDING || s->state == SESSION_STOPPING;

	if (s->step != STEP_NONE || !running)
		return;
	if (s->rotate_wanted && session_now_usec() >= s->retry_usec) {
		begin_next(s);
	} else if (s->stop_wanted && !(s->hand_over && s->sync_wanted)) {
		begin_stop(s);
	} else if (s->sync_wanted) {
		s->sync_wanted = false;
		s->synced_usec = session_now_usec();
		s->synced_bytes = drain_total_bytes(&s->drain);
		session_prepare_stats(s, false);
		session_start_job(s, STEP_SYNCING);
	}
}

void session_rotate(struct session *s)
{
	s->rotate_wanted = true;
	session_advance(s);
}

void session_stop(struct session *s, bool hand_over)
{
	session_config_free(TAKE_PTR(s->pending));
	if (s->state == SESSION_STOPPED || s->state == SESSION_FAILED)
		return;
	s->stop_wanted = true;
	s->hand_over = hand_over && !s->salvage;
	/* Sync while the workers still drain: the next process then finds the ring buffer nearly
	 * empty */
	s->sync_wanted |= s->hand_over;
	session_advance(s);
}

/* Only where data goes has changed: the instance stays, the next segment is made the new way */
static int take_storage(struct session *s, const struct session_config *config)
{
	struct session_config *copy;
	int r = session_config_copy(config, &copy);

	if (r < 0)
		return r;
	s->config->storage = copy->storage;
	free(s->config->text);
	s->config->text = TAKE_PTR(copy->text);
	session_config_free(copy);
	session_rotate(s);
	return 0;
}

int session_configure(struct session *s, const struct session_config *config)
{
	struct session_config *copy;
	int r;

	if (!config) {
		if (s->state != SESSION_STOPPED && s->state != SESSION_FAILED)
			session_stop(s, false);
		else
			session_start(s);
		return 0;
	}
	if (s->state == SESSION_RECORDING && !s->stop_wanted) {
		if (strcmp(s->config->text, config->text) == 0)
			return 0;
		if (strcmp(s->config->trace_text, config->trace_text) == 0)
			return take_storage(s, config);
	}
	r = session_config_copy(config, &copy);
	if (r < 0)
		return r;
	if (s->state == SESSION_STOPPED || s->state == SESSION_FAILED) {
		session_config_free(s->config);
		s->config = copy;
		session_start(s);
		return 0;
	}
	session_config_free(s->pending);
	s->pending = copy;
	s->stop_wanted = true;
	s->hand_over = false;
	session_advance(s);
	return 0;
}
