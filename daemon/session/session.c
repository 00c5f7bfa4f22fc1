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
 *            +---- session_settle() - STOPPING -- session_leave_disk() -----+
 *
 * session_start()    STOPPED, FAILED -> STARTING: what an earlier process left is taken up, or drained
 *                    and undone (salvage), or removed; else there is a new instance
 * session_opened()   STARTING -> RECORDING: the files are there, workers run, the instance traces
 * begin_stop()       RECORDING -> STOPPING: as mode_ops.stop() says: to drain to the end, or, for a
 *                    hand-over or a disk that is gone, only to empty the workers' hands
 * session_settle()   -> STOPPED, FAILED, or at once STARTING, if there is a pending configuration
 * session_fail()     STARTING -> FAILED, by session_settle()
 * session_leave_disk()  STOPPING -> FAILED, likewise; its instance goes on tracing
 *
 * How it records is its mode, from session_start() on: record, flight, or salvage.
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
 *  - instance, state and dir_fd of claim and the drain's fds are there from STARTING until
 *    session_release().
 *  - While a step is under way nobody but its job touches recording and report; the state file
 *    is written by the main loop between steps only, by jobs from the text in claim.notes.
 *  - In RECORDING config is in force and is not NULL. pending is set only while something ends.
 *  - A session that is not settled has a step, a copy or workers under way, so that something comes.
 *  - rec.held: nothing is drained, and WANT_ROTATE is set or the rotation under way.
 */
/* clang-format on */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "daemon/plumbing/job.h"
#include "daemon/plumbing/state-root.h"
#include "daemon/session/cmdlines.h"
#include "daemon/session/session-internal.h"
#include "formats/tail-message.h"
#include "formats/trace-clock.h"

struct session_waiter {
	struct session_waiter *next;
	enum session_wait what;
	bool begun; /* the rotation it waits for is under way */
	session_done_t done;
	void *userdata;
};

static int on_wake(sd_event_source *source, void *userdata)
{
	session_advance(userdata);
	return 0;
}

/* Off until session_want() */
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
	s->mode = &mode_record;
	s->claim.dir_fd = s->rec.notify_fd = s->rec.files.dir_fd = -EBADF;
	s->name = strdup(name);
	if (s->name)
		s->triggers = triggers_new(env->event, s->name, &session_trigger_host, s);
	s->peers = (struct peers){
		.host = &session_peer_host, .userdata = s, .event = env->event, .name = s->name};
	s->tails.segment = 1;
	if (!s->triggers || add_wake(s) < 0 || drain_new(&s->rec.drain) < 0 ||
	    recording_new(&s->rec.recording) < 0) {
		sd_event_source_disable_unref(s->wake_source);
		triggers_free(s->triggers);
		drain_free(s->rec.drain);
		free(s->name);
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

static void cancel_waits(struct session *s, const char *why)
{
	session_tell(s, WAIT_ROTATED, -ECANCELED, why);
	session_drop_change(s, -ECANCELED, why);
}

/* The state has changed: is anyone waiting for this? */
static void check_waits(struct session *s)
{
	bool settled = s->state == SESSION_STOPPED || s->state == SESSION_FAILED;

	if (session_records(s))
		session_tell(s, WAIT_STARTED, 0, "");
	if (!settled || s->spec.pending)
		return;
	session_tell(s, WAIT_STARTED, -ECANCELED,
		     s->state == SESSION_FAILED ? s->failure.text : "it was stopped");
	session_tell(s, WAIT_STOPPED, 0, "");
}

void session_free(struct session *s)
{
	if (!s)
		return;
	cancel_waits(s, "flyrecd ends");
	sd_event_source_disable_unref(s->disk.again_source);
	check_waits(s);
	session_drop_snapshots(s);
	compression_leave(&s->compression);
	session_release(s, true);
	drain_free(s->rec.drain);
	recording_free(s->rec.recording);
	boot_trace_free(s->boot_trace);
	triggers_free(s->triggers);
	sd_event_source_disable_unref(s->wake_source);
	ledger_done(&s->counts.ledger);
	free(s->counts.reach);
	state_free(s->claim.left);
	session_config_free(s->spec.config);
	session_config_free(s->spec.pending);
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

bool session_settled(const struct session *s)
{
	return s->step == STEP_NONE &&
	       (s->state == SESSION_STOPPED || s->state == SESSION_FAILED) && !s->spec.pending;
}

bool session_steady(const struct session *s)
{
	return s->state == SESSION_RECORDING && !(s->wants & WANT_STOP);
}

const char *session_failure(const struct session *s)
{
	return s->failure.error == 0 && s->state == SESSION_RECORDING ? s->claim.missing.text
								      : s->failure.text;
}

/* --- waiting */

static void tell(struct session *s, enum session_wait what, bool begun_only, int result,
		 const char *text)
{
	struct session_waiter **p = &s->waiters, *told = NULL;

	while (*p) {
		struct session_waiter *w = *p;

		if (w->what == what && (w->begun || !begun_only)) {
			*p = w->next;
			w->next = told;
			told = w;
		} else {
			p = &w->next;
		}
	}
	while (told) {
		struct session_waiter *w = told;

		told = w->next;
		w->done(w->userdata, result, text);
		free(w);
	}
}

void session_tell(struct session *s, enum session_wait what, int result, const char *text)
{
	tell(s, what, false, result, text);
}

int session_wait(struct session *s, enum session_wait what, session_done_t done, void *userdata)
{
	struct session_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct session_waiter){
		.next = s->waiters, .what = what, .done = done, .userdata = userdata};
	s->waiters = w;
	if (what != WAIT_ROTATED)
		check_waits(s);
	else if (s->state != SESSION_RECORDING)
		session_tell(s, what, -ENOTCONN, "it does not record");
	else if (!s->mode->drains)
		session_tell(s, what, -EOPNOTSUPP,
			     "a flight session has no segments to rotate: take a snapshot");
	else
		s->wants |= WANT_ROTATE;
	session_want(s, 0);
	return 0;
}

void session_rotation_begins(struct session *s)
{
	for (struct session_waiter *w = s->waiters; w; w = w->next)
		w->begun |= w->what == WAIT_ROTATED;
}

void session_rotation_done(struct session *s, int result, const char *text)
{
	tell(s, WAIT_ROTATED, true, result, text);
}

/* --- from state to state */

/* The one place where the state changes: whoever waits for that is told */
static void session_set_state(struct session *s, enum session_state state)
{
	if (s->state == SESSION_RECORDING)
		state_root_unref(s->env->root);
	if (state == SESSION_RECORDING)
		state_root_ref(s->env->root);
	s->state = state;
	check_waits(s);
	s->events->changed(s->events->userdata, s);
}

void session_set_mode(struct session *s, const struct mode_ops *mode)
{
	s->mode = mode;
}

void session_set_failure(struct session *s, const struct fault *failure)
{
	s->failure = *failure;
}

void session_settle(struct session *s, enum session_state state)
{
	session_drop_snapshots(s);
	cancel_waits(s, state == SESSION_FAILED ? s->failure.text : "it was stopped");
	s->wants &= WANT_NOTE | WANT_METHOD | WANT_LEAVE;
	session_set_mode(s, &mode_record);
	session_take_pending(s);
	if (s->spec.config && state == SESSION_STOPPED && !s->env->stopping) {
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

	if (!s->claim.adopted)
		return "";
	if (s->mode->salvage && !s->spec.pending &&
	    instance_trace(s->claim.instance, false, &ignored) >= 0)
		return "; tracing stopped, unread data stays in the instance for the next attempt";
	return "; its instance goes on tracing for the next try";
}

static void session_fail(struct session *s, const struct fault *why)
{
	bool told = s->disk.away && why->error == s->failure.error;
	/* Without a configuration nothing is wanted of it: the next start looks again */
	bool away = s->spec.config && session_failed_for_disk(s, why->error);
	bool keep = s->claim.adopted || (away && !s->claim.instance), last, anew;

	s->failure = *why;
	/* One that did not get so far does not know */
	s->left_behind = (s->left_behind || s->claim.adopted) && !away;
	(void)log_full(told ? LOG_DEBUG : LOG_ERR, s->name, MESSAGE_SESSION_FAILED, why->error,
		       "session failed: %s%s%s", why->text, left_tracing(s),
		       away ? "; trying again" : "");
	last = session_ends(s);
	anew = s->spec.pending && !away && !s->mode->salvage;
	if (away && !s->spec.pending)
		(void)session_pend(s, s->spec.config);
	session_release(s, keep);
	if (last)
		session_end_away(s, s->env->handing_over);
	/* A configuration that has come meanwhile may do better */
	session_settle(s, anew ? SESSION_STOPPED : SESSION_FAILED);
}

/* There is an instance, or @r says why not (@why) */
static void start_with(struct session *s, int r, struct fault *why)
{
	if (r >= 0)
		r = session_prepare_triggers(s, why);
	if (r >= 0)
		r = session_prepare_files(s, why);
	if (r >= 0)
		r = s->mode->open(s, why);
	if (r < 0) {
		recording_forget_errors(s->rec.recording);
		session_fail(s, why);
	}
}

static void start_new(struct session *s)
{
	struct fault why = {};
	int r = session_create_instance(s, &why);

	start_with(s, r, &why);
}

void session_start(struct session *s)
{
	bool flight = s->spec.config && s->spec.config->mode == SESSION_FLIGHT;
	struct state *left = NULL;
	struct fault why = {};
	int r;

	session_set_mode(s, flight ? &mode_flight : &mode_record);
	session_set_state(s, SESSION_STARTING);
	if (!s->disk.away)
		s->failure = (struct fault){};
	session_watch_disk(s);
	s->wants &= ~WANT_NOTE;
	r = session_find_left(s, &left, &why);
	if (r >= 0 && s->spec.config)
		cmdlines_raise(s->env);
	if (r >= 0 && left) {
		r = session_attach(s, left, &why);
		if (r >= 0)
			r = session_open_files(s, &why);
	} else if (r >= 0 && s->spec.config) {
		r = session_open_files(s, &why);
		if (r >= 0)
			r = session_find_boot_trace(s, &why);
		if (r >= 0) {
			if (r > 0)
				session_start_job(s, STEP_SAVING_BOOT);
			else
				start_new(s);
			return;
		}
	} else if (r >= 0) {
		session_release(s, true); /* nothing wanted, nothing left */
		s->left_behind = false;
		session_settle(s, SESSION_STOPPED);
		return;
	}
	start_with(s, r, &why);
}

void session_opened(struct session *s, int result, const struct fault *failure)
{
	struct fault why = *failure;

	session_forget_file(s, s->rec.report.archived_id);
	if (result >= 0)
		result = s->mode->begin(s, &why);
	if (result >= 0 && !s->mode->salvage)
		result = triggers_arm(s->triggers, &why);
	if (result < 0) {
		session_fail(s, &why);
		return;
	}
	session_refresh_units(s);
	/* What an earlier process had switched off when it was killed, see overhead.c */
	if (s->claim.adopted && s->mode == &mode_flight && s->spec.config->max_overhead > 0)
		(void)session_check_instance(s);
	session_overhead_begin(s);
	compression_begin(&s->compression);
	if (!s->mode->salvage)
		s->wants |= WANT_NOTE;
	if (session_is_kept(s))
		session_warn_of_clock(s);
	session_disk_is_back(s);
	session_forget_away(s);
	s->left_behind = false;
	s->failure = (struct fault){};
	if (!s->mode->salvage)
		s->mode->tell(s);
	session_set_state(s, SESSION_RECORDING);
	s->events->settled(s->events->userdata);
	if (!s->mode->drains) /* nothing else will come by */
		session_advance(s);
}

void session_release(struct session *s, bool keep_instance)
{
	session_tail_end(s, TAIL_END_LEFT); /* those that are still there: it failed */
	if (s->state != SESSION_STARTING)
		session_sample(s);
	/* Its events may be the session's own probes, which go with the session's instance */
	triggers_disarm(s->triggers, keep_instance);
	session_overhead_end(s, keep_instance);
	mode_flight.release(s, keep_instance);
	mode_record.release(s, keep_instance);
	session_drop_claim(s, keep_instance);
}

void session_leave_disk(struct session *s)
{
	int trouble = s->disk.trouble;
	bool last = session_ends(s);

	session_note_away(s);
	state_root_leave(s->env->root);
	session_leave_claim(s);
	(void)fault_set(&s->failure, trouble,
			"Closed all files below %s/%s so that it can be unmounted%s",
			s->env->state_dir, s->name, last ? "" : "; retrying every 5 s");
	s->wants &= ~WANT_LEAVE;
	if (!s->spec.pending)
		(void)session_pend(s, s->spec.config);
	session_release(s, true);
	/* Who reads this may unmount it at once */
	(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, trouble, "%s", s->failure.text);
	session_try_again(s, trouble < 0 ? SESSION_AGAIN_USEC : 0);
	if (last)
		session_end_away(s, s->env->handing_over);
	session_settle(s, SESSION_FAILED);
}

void session_restart(struct session *s)
{
	s->wants = (s->wants | WANT_STOP) & ~WANT_HAND_OVER;
	session_advance(s);
}

void session_stop(struct session *s, bool hand_over)
{
	session_forget_spec(s, false);
	if (s->state != SESSION_STARTING) /* else its disk may just be back */
		session_end_away(s, hand_over);
	if (s->state == SESSION_FAILED && s->left_behind && !hand_over) {
		/* There is to be no next try */
		session_forget_spec(s, true);
		session_start(s);
		return;
	}
	if (s->state == SESSION_STOPPED || s->state == SESSION_FAILED)
		return;
	hand_over &= !s->mode->salvage;
	s->wants = (s->wants | WANT_STOP) & ~WANT_HAND_OVER;
	if (s->step != STEP_LEAVING)
		s->wants &= ~WANT_LEAVE;
	/* Sync while the workers still drain: the next process then finds the ring buffer nearly
	 * empty */
	if (hand_over)
		s->wants |= WANT_HAND_OVER | (s->mode->drains ? WANT_SYNC : 0);
	session_advance(s);
}

/* --- step by step */

static void on_flushed(struct session *s, int result, const struct fault *why)
{
	session_start_job(s, STEP_CUTTING);
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
		start_new(s);
}

/* What it takes to do a step, and what follows when that is done */
static const struct {
	job_work_t run; /* as a job, with the session; NULL: workers do it */
	void (*done)(struct session *session, int result, const struct fault *why);
} steps[] = {
	[STEP_SAVING_BOOT] = {session_run_boot_trace, on_boot_saved},
	[STEP_OPENING] = {session_run_open, session_opened},
	[STEP_NEXT] = {session_run_next, session_on_next},
	[STEP_RETARGETING] = {NULL, session_on_retargeted},
	[STEP_FINISHING] = {session_run_finish, session_on_finished},
	[STEP_SYNCING] = {session_run_sync, session_on_synced},
	[STEP_FLUSHING] = {NULL, on_flushed},
	[STEP_CAPTURING] = {session_run_capture, session_captured},
	[STEP_CUTTING] = {session_run_cut, session_cut_done},
	[STEP_NOTING] = {session_write_notes, on_noted},
	[STEP_DRAINING] = {NULL, session_on_drained},
	[STEP_LEAVING] = {NULL, session_on_left},
	[STEP_CLOSING] = {session_run_close, session_on_closed},
};

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
		session_prepare_notes(s);
	r = job_start(s->env->event, steps[step].run, on_job, s);
	if (r < 0) {
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

void session_begin_step(struct session *s, enum session_step step)
{
	s->step = step;
}

void session_check_workers(struct session *s)
{
	if (s->step != STEP_NONE && !steps[s->step].run && drain_idle(s->rec.drain))
		end_step(s, 0, NULL);
}

static void begin_change(struct session *s)
{
	struct fault why;

	if (!session_apply_change(s))
		return;
	/* The next boot needs the formats of these events */
	if (session_is_kept(s) && !s->mode->drains && session_prepare_segment(s, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring", why.text);
	session_start_job(s, STEP_NOTING);
}

static void begin_stop(struct session *s)
{
	session_set_state(s, SESSION_STOPPING);
	s->mode->stop(s);
}

static enum session_choice choose(struct session *s)
{
	bool recording = s->state == SESSION_RECORDING;
	struct session_view view = {
		.state = s->state,
		.busy = s->step != STEP_NONE,
		.copying = session_copies(s),
		.compressing = s->compression.work,
		.flight = !s->mode->drains,
	};

	if (s->wants & WANT_LEAVE)
		compression_stop(&s->compression);
	if (!view.busy && recording && s->rec.date_doubted)
		session_check_date(s);
	if (!view.busy && recording && s->spec.change && !session_change_fits(s))
		s->wants |= WANT_ROTATE;
	else
		view.change = s->spec.change;
	view.wants = s->wants;
	if (view.busy)
		return session_choose(&view);
	view.may_rotate = now_usec(CLOCK_MONOTONIC) >= s->rec.retry_usec;
	view.blocked = s->rec.held || drain_full(s->rec.drain);
	view.snapshot = session_snapshot_waits(s);
	return session_choose(&view);
}

static void begin_start(struct session *s)
{
	if (s->disk.away && s->spec.config)
		session_start(s);
}

static void begin_watch(struct session *s)
{
	triggers_watch_again(s->triggers, instance_name(s->claim.instance),
			     s->claim.state->watched);
}

static void begin_note(struct session *s)
{
	session_start_job(s, STEP_NOTING);
}

/* How each begins, and what is no longer wanted then */
static const struct {
	void (*begin)(struct session *session);
	unsigned fulfils; /* enum session_want */
} choices[] = {
	[CHOICE_START] = {begin_start, WANT_START},
	[CHOICE_METHOD] = {session_change_flight, WANT_METHOD},
	[CHOICE_TRIGGERS] = {session_renew_triggers, WANT_TRIGGERS | WANT_WATCH},
	[CHOICE_WATCH] = {begin_watch, WANT_WATCH},
	[CHOICE_CHANGE] = {begin_change, 0},
	[CHOICE_NOTE] = {begin_note, WANT_NOTE},
	[CHOICE_ROTATE] = {session_begin_next, WANT_ROTATE},
	[CHOICE_SNAPSHOT] = {session_begin_snapshot, 0},
	[CHOICE_SYNC] = {session_begin_sync, WANT_SYNC},
	[CHOICE_STOP] = {begin_stop, 0},
};

void session_advance(struct session *s)
{
	enum session_choice choice;

	while ((choice = choose(s)) != CHOICE_NONE) {
		s->wants &= ~choices[choice].fulfils;
		choices[choice].begin(s);
	}
}

void session_want(struct session *s, unsigned wants)
{
	s->wants |= wants;
	(void)sd_event_source_set_enabled(s->wake_source, SD_EVENT_ONESHOT);
}

/* --- beside the steps */

static void on_compressed(void *userdata, const struct compress_report *report)
{
	struct session *s = userdata;

	if (report->kept_files > 0) {
		session_count_kept(s, report->kept_files, report->kept_bytes);
		session_file_is_made();
	}
	session_want(s, 0); /* its disk may wait for this */
}

int session_compress(struct session *s, session_compress_done_t done, void *userdata)
{
	const struct compression_order order = {
		.event = s->env->event,
		.session = s->name,
		.dir_fd = s->rec.files.dir_fd,
		.limits = &s->rec.files.limits,
		.compressed = on_compressed,
		.session_userdata = s,
		.done = done,
		.userdata = userdata,
	};

	if (!session_steady(s) || s->wants & WANT_LEAVE || !session_is_to_compress(s))
		return 0;
	return compression_start(&s->compression, &order);
}

/* --- what is asked of it */

void session_rotate(struct session *s)
{
	if (!s->mode->drains)
		return;
	s->wants |= WANT_ROTATE;
	session_advance(s);
}

void session_clock_set(struct session *s)
{
	session_read_clocks(s);
	session_doubt_date(s);
	session_advance(s);
}

void session_slept(struct session *s)
{
	if (s->spec.config && !trace_clock_goes_on_asleep(s->spec.config->trace.clock))
		session_rotate(s);
}
