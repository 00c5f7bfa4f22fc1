/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* clang-format off */
/*
 * The state machine of a session. Main thread.
 *
 *              session_configure(), session_settle() of a restart
 *            +-----------------------------+
 *            |                             v
 *         STOPPED                      STARTING ------ session_fail() ------+
 *            ^                           |   ^                              v
 *            |          session_opened() |   +-- CHOICE_START: its disk -- FAILED
 *            |                           v       may be there again         ^
 *            |                       RECORDING                              |
 *            |                           | begin_stop()                     |
 *            |                           v                                  |
 *            +---- session_settle() - STOPPING ------ leave_disk() ---------+
 *
 * session_start()    STOPPED, FAILED -> STARTING: what an earlier process left is taken up, or drained
 *                    and undone (salvage), or removed; else there is a new instance
 * session_opened()   STARTING -> RECORDING: the files are there, workers run, the instance traces
 * begin_stop()       RECORDING -> STOPPING: to drain to the end, or, for a hand-over or a disk that is
 *                    gone, only to empty the workers' hands
 * session_settle()   -> STOPPED, FAILED, or at once STARTING, if there is a pending configuration
 * session_fail()     STARTING -> FAILED, by session_settle()
 * leave_disk()       STOPPING -> FAILED, likewise; its instance goes on tracing
 *
 * session_set_state() is the only one that assigns the state: it tells the manager and those who wait.
 *
 * Within RECORDING and STOPPING one step at a time is under way: a job, or something that all workers
 * do. What is to be done next is a want (enum session_want) until session_choose() lets it begin;
 * session_advance() does what that says, after each step and whenever something new is wanted.
 *
 *   rotation   CHOICE_ROTATE: NEXT, RETARGETING, FINISHING
 *   snapshot   CHOICE_SNAPSHOT: FLUSHING, CUTTING, then a job beside the steps copies
 *              (session_copies()); of a flight session CAPTURING, CUTTING
 *   stop       CHOICE_STOP: DRAINING (NEXT, if there is no room for what is left), CLOSING
 *   hand-over  CHOICE_SYNC, CHOICE_STOP: LEAVING
 *
 * What holds:
 *  - instance, kernel, dir_fd and the drain's fds are there from STARTING until session_release().
 *  - While a step is under way nobody but its job touches recording and report; the state file is written
 *    by the main loop between steps only, by jobs from the text in s->notes.
 *  - In RECORDING config is in force and is not NULL. pending is set only while something ends.
 *  - A session that is not settled has a step, a copy or workers under way, so that something comes.
 *  - s->held: nothing is drained, and WANT_ROTATE is set or the rotation under way.
 */
/* clang-format on */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "daemon/plumbing/job.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/session-runtime.h"
#include "daemon/session/session-tail.h"
#include "formats/tail-message.h"
#include "formats/trace-clock.h"

static int on_wake(sd_event_source *source, void *userdata)
{
	session_advance(userdata);
	return 0;
}

/* Off until session_wake() */
static int add_wake(struct session *s)
{
	int r = sd_event_add_defer(s->env->event, &s->wake_source, on_wake, s);

	if (r >= 0)
		r = sd_event_source_set_priority(s->wake_source, PRIORITY_WORKER);
	return r < 0 ? r : sd_event_source_set_enabled(s->wake_source, SD_EVENT_OFF);
}

int session_new(const struct environment *env, const struct session_events *events,
		const char *name, struct session **ret)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->env = env;
	s->events = events;
	s->dir_fd = s->notify_fd = s->files.dir_fd = -EBADF;
	s->name = strdup(name);
	if (s->name)
		s->triggers = triggers_new(env->event, s->name, &session_trigger_host, s);
	s->tails = session_tails_new();
	s->orders = session_orders_new();
	if (!s->triggers || !s->tails || !s->orders || add_wake(s) < 0 ||
	    drain_new(&s->drain) < 0 || recording_new(&s->recording) < 0) {
		sd_event_source_disable_unref(s->wake_source);
		triggers_free(s->triggers);
		drain_free(s->drain);
		session_orders_free(s->orders);
		free(s->tails);
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
	session_orders_free(s->orders);
	free(s->tails);
	triggers_free(s->triggers);
	sd_event_source_disable_unref(s->wake_source);
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

bool session_settled(const struct session *s)
{
	return s->step == STEP_NONE &&
	       (s->state == SESSION_STOPPED || s->state == SESSION_FAILED) && !s->pending;
}

bool session_waits_for_disk(const struct session *s)
{
	return s->away;
}

bool session_steady(const struct session *s)
{
	return s->state == SESSION_RECORDING && !(s->wants & WANT_STOP);
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
	s->salvage = false;
	s->wants &= WANT_NOTE | WANT_METHOD | WANT_LEAVE;
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
	if (!s->salvage)
		s->wants |= WANT_NOTE;
	s->kept = !s->salvage && instance_is_kept(s->instance);
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
static void on_drained(struct session *s, int result, const struct fault *why)
{
	if (drain_full(s->drain) && now_usec(CLOCK_MONOTONIC) >= s->retry_usec) {
		s->wants |= WANT_ROTATE;
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

/* The workers' hands are empty: close everything on the disk */
static void leave_disk(struct session *s)
{
	bool last = session_ends(s);

	session_note_away(s);
	state_root_leave(s->env->root);
	state_free(s->left);
	s->left = TAKE_PTR(s->kernel);
	(void)fault_set(&s->failure, s->trouble,
			"Closed all files below %s/%s so that it can be unmounted%s",
			s->env->state_dir, s->name, last ? "" : "; retrying every 5 s");
	s->wants &= ~WANT_LEAVE;
	if (!s->pending)
		(void)session_config_copy(s->config, &s->pending);
	session_release(s, true);
	/* Who reads this may unmount it at once */
	(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, s->trouble, "%s", s->failure.text);
	session_try_again(s, s->trouble < 0 ? SESSION_AGAIN_USEC : 0);
	if (last)
		session_end_away(s, s->env->handing_over);
	session_settle(s, SESSION_FAILED);
}

/* The workers are in the next file */
static void on_retargeted(struct session *s, int result, const struct fault *why)
{
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
	(void)session_apply_change(s);
	session_start_job(s, STEP_FINISHING);
}

static void on_flushed(struct session *s, int result, const struct fault *why)
{
	session_start_job(s, STEP_CUTTING);
}

/* The workers have nothing in their hands: hand over, or leave a disk that is gone */
static void on_left(struct session *s, int result, const struct fault *why)
{
	if (s->wants & WANT_LEAVE) {
		leave_disk(s);
		return;
	}
	s->kernel->handed_over = drain_trouble(s->drain) == 0;
	if (state_write(s->dir_fd, s->kernel) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, 0,
			       "cannot write the state file, ignoring");
	session_tail_end(s, TAIL_END_LEFT);
	session_release(s, true);
	session_settle(s, SESSION_STOPPED);
}

static void on_noted(struct session *s, int result, const struct fault *why)
{
	if (result < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, result, "%s, ignoring", why->text);
}

static void on_boot_saved(struct session *s, int result, const struct fault *why)
{
	struct fault again;

	if (session_boot_trace_done(s, result, why, &again) < 0)
		session_fail(s, &again);
	else
		session_start_new(s);
}

/* What it takes to do a step, and what follows when that is done */
static const struct {
	job_work_t run; /* as a job, with the session; NULL: workers do it */
	void (*done)(struct session *session, int result, const struct fault *why);
} steps[] = {
	[STEP_SAVING_BOOT] = {session_run_boot_trace, on_boot_saved},
	[STEP_OPENING] = {session_run_open, session_opened},
	[STEP_NEXT] = {session_run_next, session_on_next},
	[STEP_RETARGETING] = {NULL, on_retargeted},
	[STEP_FINISHING] = {session_run_finish, session_on_finished},
	[STEP_SYNCING] = {session_run_sync, session_on_synced},
	[STEP_FLUSHING] = {NULL, on_flushed},
	[STEP_CAPTURING] = {session_run_capture, session_captured},
	[STEP_CUTTING] = {session_run_cut, session_cut_done},
	[STEP_NOTING] = {session_run_note, on_noted},
	[STEP_DRAINING] = {NULL, on_drained},
	[STEP_LEAVING] = {NULL, on_left},
	[STEP_CLOSING] = {session_run_close, session_on_closed},
};

static bool waits_for_workers(const struct session *s)
{
	return s->step != STEP_NONE && !steps[s->step].run;
}

static void end_step(struct session *s, int result, const struct fault *why)
{
	enum session_step step = s->step;

	s->step = STEP_NONE;
	if (steps[step].run)
		session_harvest(s);
	steps[step].done(s, result, why);
	session_advance(s);
}

static void on_job(void *userdata, int result, const struct fault *why)
{
	end_step(userdata, result, why);
}

void session_start_job(struct session *s, enum session_step step)
{
	struct fault why;
	int r;

	s->step = step;
	/* While it is being written the session may be paused */
	if (step == STEP_FINISHING || step == STEP_NOTING)
		(void)state_format(s->kernel, &s->notes);
	r = job_start(s->env->event, steps[step].run, on_job, s);
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
	end_step(s, why.error, &why);
	return 0;
}

void session_defer(struct session *s, enum session_step step, const struct fault *why)
{
	s->step = step;
	s->deferred = *why;
	if (sd_event_add_defer(s->env->event, NULL, on_deferred, s) < 0)
		end_step(s, why->error, why);
}

int session_on_notify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct session *s = userdata;
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
	session_report_trouble(s);
	if (waits_for_workers(s) && drain_idle(s->drain))
		end_step(s, 0, NULL);
	session_tail_check(s);
	if (s->state == SESSION_RECORDING &&
	    (drain_full(s->drain) || drain_bytes_left(s->drain) <= 0))
		s->wants |= WANT_ROTATE;
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
	if (s->flight && s->wants & WANT_LEAVE) {
		leave_disk(s);
		return;
	}
	if (s->flight) {
		session_stop_flight(s);
		session_settle(s, SESSION_STOPPED);
		return;
	}
	if (s->wants & (WANT_HAND_OVER | WANT_LEAVE)) {
		s->step = STEP_LEAVING;
		(void)drain_post(s->drain, WORKER_LEAVE);
		return;
	}
	if (instance_trace(s->instance, false, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring", why.text);
	s->step = STEP_DRAINING;
	(void)drain_post(s->drain, WORKER_FINISH);
}

static void begin_change(struct session *s)
{
	struct fault why;

	if (!session_apply_change(s))
		return;
	/* The next boot needs the formats of these events */
	if (s->kept && s->flight && session_prepare_segment(s, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring", why.text);
	session_start_job(s, STEP_NOTING);
}

static void begin_sync(struct session *s)
{
	s->synced_usec = now_usec(CLOCK_MONOTONIC);
	s->synced_bytes = drain_total_bytes(s->drain);
	session_prepare_stats(s, false);
	session_start_job(s, STEP_SYNCING);
}

static enum session_choice choose(struct session *s)
{
	bool recording = s->state == SESSION_RECORDING;
	struct session_view view = {
		.state = s->state,
		.busy = s->step != STEP_NONE,
		.copying = session_copies(s),
		.flight = s->flight,
	};

	if (!view.busy && recording && s->date_doubted)
		session_check_date(s);
	if (!view.busy && recording && s->change && !session_change_fits(s))
		s->wants |= WANT_ROTATE;
	else
		view.change = s->change;
	view.wants = s->wants;
	if (view.busy)
		return session_choose(&view);
	view.may_rotate = now_usec(CLOCK_MONOTONIC) >= s->retry_usec;
	view.blocked = s->held || drain_full(s->drain);
	view.snapshot = session_snapshot_waits(s);
	return session_choose(&view);
}

void session_advance(struct session *s)
{
	for (;;) {
		switch (choose(s)) {
		case CHOICE_NONE:
			return;
		case CHOICE_START:
			s->wants &= ~WANT_START;
			if (s->away && s->config)
				session_start(s);
			break;
		case CHOICE_METHOD:
			s->wants &= ~WANT_METHOD;
			session_change_flight(s);
			break;
		case CHOICE_TRIGGERS:
			session_renew_triggers(s);
			break;
		case CHOICE_WATCH:
			session_watch_again(s);
			break;
		case CHOICE_CHANGE:
			begin_change(s);
			break;
		case CHOICE_NOTE:
			s->wants &= ~WANT_NOTE;
			session_start_job(s, STEP_NOTING);
			break;
		case CHOICE_ROTATE:
			session_begin_next(s);
			break;
		case CHOICE_SNAPSHOT:
			session_begin_snapshot(s);
			break;
		case CHOICE_SYNC:
			s->wants &= ~WANT_SYNC;
			begin_sync(s);
			break;
		case CHOICE_STOP:
			begin_stop(s);
			break;
		}
	}
}

void session_rotate(struct session *s)
{
	if (s->flight)
		return;
	s->wants |= WANT_ROTATE;
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
	hand_over &= !s->salvage;
	s->wants = (s->wants | WANT_STOP) & ~WANT_HAND_OVER;
	if (s->step != STEP_LEAVING)
		s->wants &= ~WANT_LEAVE;
	/* Sync while the workers still drain: the next process then finds the ring buffer nearly
	 * empty */
	if (hand_over)
		s->wants |= WANT_HAND_OVER | (s->flight ? 0 : WANT_SYNC);
	session_advance(s);
}
