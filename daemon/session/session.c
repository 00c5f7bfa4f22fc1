/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/session-runtime.h"
#include "daemon/session/session-tail.h"
#include "formats/tail-message.h"
#include "formats/trace-clock.h"

int session_new(const struct environment *env, const struct session_events *events,
		const char *name, struct session **ret)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->env = env;
	s->events = events;
	s->tail_segment = 1;
	s->dir_fd = s->notify_fd = s->files.dir_fd = -EBADF;
	s->name = strdup(name);
	if (s->name)
		s->triggers = triggers_new(env->event, s->name, &session_trigger_host, s);
	if (!s->triggers || drain_new(&s->drain) < 0 || recording_new(&s->recording) < 0) {
		triggers_free(s->triggers);
		drain_free(s->drain);
		free(s->name);
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
	session_cancel_waits(s, "flyrecd ends");
	s->again_source = sd_event_source_disable_unref(s->again_source);
	session_check_waits(s);
	session_drop_snapshots(s);
	session_release(s, true);
	drain_free(s->drain);
	recording_free(s->recording);
	boot_trace_free(s->boot_trace);
	session_forget_triggers(s);
	triggers_free(s->triggers);
	account_done(&s->account);
	free(s->reach);
	state_free(s->left);
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

void session_set_state(struct session *s, enum session_state state)
{
	if (s->state == SESSION_RECORDING)
		state_root_unref(s->env->root);
	if (state == SESSION_RECORDING)
		state_root_ref(s->env->root);
	s->state = state;
	session_check_waits(s);
	s->events->changed(s->events->userdata, s);
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

bool session_ends(const struct session *s)
{
	return s->stop_wanted && !s->pending;
}

bool session_waits_for_disk(const struct session *s)
{
	return s->away;
}

bool session_steady(const struct session *s)
{
	return s->state == SESSION_RECORDING && !s->stop_wanted;
}

const char *session_failure(const struct session *s)
{
	return s->failure.error == 0 && s->state == SESSION_RECORDING ? s->missing.text
								      : s->failure.text;
}

uint64_t session_total_bytes(const struct session *s)
{
	return drain_total_bytes(s->drain);
}

void session_settle(struct session *s, enum session_state state)
{
	bool again;

	session_drop_snapshots(s);
	s->paused = false;
	session_cancel_waits(s, state == SESSION_FAILED ? s->failure.text : "it was stopped");
	s->triggers_wanted = s->watch_wanted = false;
	s->stop_wanted = s->hand_over = s->rotate_wanted = s->sync_wanted = s->salvage = false;
	session_config_free(s->config);
	s->config = TAKE_PTR(s->pending);
	again = s->config && state == SESSION_STOPPED && !s->env->stopping;
	if (again) {
		session_start(s);
		return;
	}
	session_set_state(s, state);
	s->events->settled(s->events->userdata);
}

/* What becomes of the instance of an earlier process, which may hold what nobody has read: where
 * nobody wants it any more it costs nothing while it waits for the next try */
static const char *left_tracing(struct session *s)
{
	struct fault ignored;

	if (!s->files.adopt)
		return "";
	if (s->salvage && !s->pending && instance_trace(s->instance, false, &ignored) >= 0)
		return "; tracing stopped, unread data stays in the instance for the next attempt";
	return "; its instance goes on tracing for the next try";
}

void session_fail(struct session *s, const struct fault *why)
{
	bool told = s->away && why->error == s->failure.error;
	/* Without a configuration nothing is wanted of it: the next start looks again */
	bool away = s->config && session_failed_for_disk(s, why->error);
	bool keep = s->files.adopt || (away && !s->instance), last, anew;

	s->failure = *why;
	/* One that did not get so far does not know */
	s->left_behind = (s->left_behind || s->files.adopt) && !away;
	(void)log_full(told ? LOG_DEBUG : LOG_ERR, s->name, MESSAGE_SESSION_FAILED, why->error,
		       "session failed: %s%s%s", why->text, left_tracing(s),
		       away ? "; trying again" : "");
	last = session_ends(s);
	anew = s->pending && !away && !s->salvage;
	if (away && !s->pending)
		(void)session_config_copy(s->config, &s->pending);
	session_release(s, keep);
	if (last)
		session_end_away(s, s->env->handing_over);
	/* A configuration that has come meanwhile may do better */
	session_settle(s, anew ? SESSION_STOPPED : SESSION_FAILED);
}

void session_opened(struct session *s, int result, const struct fault *failure)
{
	struct fault why = *failure;

	session_forget_file(s, s->report.archived_id);
	if (result >= 0)
		result = session_is_flight(s) ? session_begin_flight(s, &why)
					      : session_begin_recording(s, &why);
	if (result >= 0 && !s->salvage)
		result = triggers_arm(s->triggers, &why);
	if (result < 0) {
		session_fail(s, &why);
		return;
	}
	s->recording_usec = now_usec(CLOCK_MONOTONIC);
	session_refresh_units(s);
	s->notes_wanted = !s->salvage;
	s->kept = s->notes_wanted && instance_is_kept(s->instance);
	if (s->kept)
		session_warn_of_clock(s);
	if (s->away)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_DISK_TROUBLE, 0, "writing again");
	s->away = s->left_behind = false;
	session_forget_away(s);
	s->told = 0;
	s->failure = (struct fault){};
	if (s->flight)
		(void)log_full(LOG_INFO, s->name, MESSAGE_SESSION_STARTED, 0,
			       "tracing in flight, snapshots %s", session_method(s));
	else if (!s->salvage)
		(void)log_full(LOG_INFO, s->name, MESSAGE_SESSION_STARTED, 0, "recording (%s)",
			       trace_file_is_direct(recording_file(s->recording)) ? "O_DIRECT"
										  : "page cache");
	session_set_state(s, SESSION_RECORDING);
	s->events->settled(s->events->userdata);
	if (s->flight) /* nothing else will come by */
		session_advance(s);
}

/* Tracing is off and everything there was has been taken: close the last segment */
static void on_drained(struct session *s)
{
	if (drain_full(s->drain) && now_usec(CLOCK_MONOTONIC) >= s->retry_usec) {
		s->rotate_wanted = true;
		return;
	}
	if (drain_full(s->drain) || drain_trouble(s->drain) < 0) {
		(void)log_full(
			LOG_ERR, s->name, MESSAGE_EVENTS_LOST, drain_trouble(s->drain),
			"Failed to write all events; data left in the ring buffer was discarded");
		drain_drop_pending(s->drain);
		s->undrained = true;
	}
	session_prepare_stats(s, true);
	session_tail_end(s, TAIL_END_STOPPED);
	session_sample(s); /* for the last time that there are counters */
	session_report_losses(s, true);
	session_close_drain(s, false);
	recording_close_current(s->recording);
	session_start_job(s, STEP_CLOSING);
}

static void on_workers_done(struct session *s)
{
	enum session_step step = s->step;

	s->step = STEP_NONE;
	switch (step) {
	case STEP_RETARGETING:
		drain_retargeted(s->drain);
		session_tail_moved(s);
		session_prepare_stats(s, true);
		if (session_note_base(s, true) < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, -ENOMEM,
				       "cannot note the counters: %m, ignoring");
		if (s->held) {
			s->held = false;
			drain_flush(s->drain);
		}
		session_apply_change(s);
		session_start_job(s, STEP_FINISHING);
		break;
	case STEP_FLUSHING:
		session_start_job(s, STEP_CUTTING);
		break;
	case STEP_DRAINING:
		on_drained(s);
		break;
	case STEP_LEAVING:
		if (s->leave_wanted) {
			session_left_disk(s);
			session_settle(s, SESSION_FAILED);
			break;
		}
		s->kernel->handed_over = drain_trouble(s->drain) == 0;
		if (state_write(s->dir_fd, s->kernel) < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, 0,
				       "cannot write the state file, ignoring");
		session_tail_end(s, TAIL_END_LEFT);
		session_release(s, true);
		session_settle(s, SESSION_STOPPED);
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
	if ((s->step == STEP_RETARGETING || s->step == STEP_FLUSHING || s->step == STEP_DRAINING ||
	     s->step == STEP_LEAVING) &&
	    drain_idle(s->drain))
		on_workers_done(s);
	session_tail_check(s);
	if (s->state == SESSION_RECORDING &&
	    (drain_full(s->drain) || drain_bytes_left(s->drain) <= 0))
		s->rotate_wanted = true;
	if (s->state == SESSION_RECORDING)
		session_look(s);
	session_advance(s);
	return 0;
}

static void begin_stop(struct session *s)
{
	struct fault why;

	session_set_state(s, SESSION_STOPPING);
	s->flush_source = sd_event_source_disable_unref(s->flush_source);
	s->look_source = sd_event_source_disable_unref(s->look_source);
	if (s->flight && s->leave_wanted) {
		session_left_disk(s);
		session_settle(s, SESSION_FAILED);
		return;
	}
	if (s->flight) {
		session_stop_flight(s);
		session_settle(s, SESSION_STOPPED);
		return;
	}
	if (s->hand_over || s->leave_wanted) {
		s->step = STEP_LEAVING;
		(void)drain_post(s->drain, WORKER_LEAVE);
		return;
	}
	if (instance_trace(s->instance, false, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring", why.text);
	s->step = STEP_DRAINING;
	(void)drain_post(s->drain, WORKER_FINISH);
}

/* A region without room comes first: draining waits for it. What is urgent for people comes next.
 */
void session_advance(struct session *s)
{
	bool running = s->state == SESSION_RECORDING || s->state == SESSION_STOPPING;
	bool may_rotate;

	if (s->step != STEP_NONE || !running)
		return;
	if (s->flight_wanted && s->flight)
		session_change_flight(s);
	s->flight_wanted = false;
	if (s->triggers_wanted && s->state == SESSION_RECORDING && !s->stop_wanted)
		session_renew_triggers(s);
	if (s->watch_wanted && s->state == SESSION_RECORDING && !s->stop_wanted)
		session_watch_again(s);
	if (s->step != STEP_NONE)
		return;
	if (s->leave_wanted && !s->stop_wanted && !s->copying && s->state == SESSION_RECORDING) {
		begin_stop(s);
		return;
	}
	if (s->state == SESSION_RECORDING && session_begin_change(s))
		return;
	if (s->notes_wanted && s->state == SESSION_RECORDING) {
		s->notes_wanted = false;
		session_start_job(s, STEP_NOTING);
		return;
	}
	if (s->date_doubted && s->state == SESSION_RECORDING)
		session_check_date(s);
	may_rotate = s->rotate_wanted && now_usec(CLOCK_MONOTONIC) >= s->retry_usec;
	if (may_rotate && (s->held || drain_full(s->drain))) {
		session_begin_next(s);
	} else if (s->state == SESSION_RECORDING && session_begin_snapshot(s)) {
		return;
	} else if (may_rotate) {
		session_begin_next(s);
	} else if (s->stop_wanted && !s->copying && !(s->hand_over && s->sync_wanted)) {
		begin_stop(s);
	} else if (s->sync_wanted) {
		s->sync_wanted = false;
		s->synced_usec = now_usec(CLOCK_MONOTONIC);
		s->synced_bytes = drain_total_bytes(s->drain);
		session_prepare_stats(s, false);
		session_start_job(s, STEP_SYNCING);
	}
}

void session_rotate(struct session *s)
{
	if (s->flight)
		return;
	s->rotate_wanted = true;
	session_advance(s);
}

void session_clock_set(struct session *s)
{
	s->date_doubted = !s->flight;
	session_advance(s);
}

void session_slept(struct session *s)
{
	if (s->config && !trace_clock_goes_on_asleep(s->config->trace.clock))
		session_rotate(s);
}

void session_stop(struct session *s, bool hand_over)
{
	session_config_free(TAKE_PTR(s->pending));
	if (s->state != SESSION_STARTING) /* else its disk may just be back */
		session_end_away(s, hand_over);
	if (s->state == SESSION_FAILED && s->left_behind && !hand_over) {
		/* There is to be no next try */
		session_config_free(TAKE_PTR(s->config));
		session_start(s);
		return;
	}
	if (s->state == SESSION_STOPPED || s->state == SESSION_FAILED)
		return;
	s->stop_wanted = true;
	s->leave_wanted &= s->step == STEP_LEAVING;
	s->hand_over = hand_over && !s->salvage;
	/* Sync while the workers still drain: the next process then finds the ring buffer nearly
	 * empty */
	s->sync_wanted |= s->hand_over && !s->flight;
	session_advance(s);
}
