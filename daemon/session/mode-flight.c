/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions of Mode=flight: the instance traces, and nothing wakes us until somebody wants a
 * snapshot. No workers, no drain, no segments; what the other modules of the session do for those
 * is replaced by this. The only writer of struct session_flight. Main thread.
 */
#include <errno.h>

#include "basic/log.h"
#include "basic/scheduling.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/session-internal.h"
#include "engine/clock.h"
#include "formats/trace-clock.h"

#define THREADS_MAX 4U /* copying: memory is no faster with more */

static void make_params(const struct session *s, const struct session_config *config,
			struct flight_params *ret)
{
	unsigned workers = s->env->workers;

	*ret = (struct flight_params){
		.instance = s->claim.instance,
		.dir_fd = s->rec.files.dir_fd,
		.method = config->snapshot.method,
		.memory = config->snapshot.memory,
		.buffer_size = session_buffer_size(s),
		.threads = workers > 0 ? workers
				       : MIN(instance_n_cpus(s->claim.instance), THREADS_MAX),
		.counts_time = trace_clock_counts_time(config->trace.clock),
	};
}

/* Once, as it stays so until the next reload */
static void tell_second_best(const struct session *s, int result, const struct fault *why)
{
	if (result == FLIGHT_SECOND_BEST)
		(void)log_full(LOG_WARNING, s->name, NULL, 0, "%s: going on with method %s",
			       why->text, flight_method_name(s->flight.flight));
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	(void)timer_rearm(source, s->spec.config->storage.flush_usec);
	session_refresh_units(s);
	return 0;
}

static int mode_open(struct session *s, struct fault *why)
{
	session_opened(s, 0, why);
	return 0;
}

static int mode_begin(struct session *s, struct fault *why)
{
	struct flight_params params;
	int r;

	make_params(s, s->spec.config, &params);
	r = flight_new(&params, &s->flight.flight, why);
	tell_second_best(s, r, why);
	if (r >= 0)
		r = session_note_start(s, why);
	if (r < 0)
		return r;
	scheduling_alert();
	session_count_snapshots(s);
	/* The only thing that wakes us: processes that a unit starts anew */
	if (s->spec.config->trace.units)
		r = timer_arm(s->env->event, &s->flight.tick_source,
			      s->spec.config->storage.flush_usec, on_tick, s);
	if (r < 0)
		return fault_errno(why, r, "cannot watch the session");
	return session_trace(s, why);
}

void session_change_flight(struct session *s)
{
	struct flight_params params;
	struct fault why;
	int r;

	make_params(s, s->spec.config, &params);
	r = flight_change(s->flight.flight, &params, &why);
	tell_second_best(s, r, &why);
	if (r < 0)
		(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s; going on with method %s",
			       why.text, flight_method_name(s->flight.flight));
}

const char *session_method(const struct session *s)
{
	return s->flight.flight ? flight_method_name(s->flight.flight) : "";
}

static int find_range(struct session *s, uint64_t from_usec, uint64_t to_usec, struct fault *why)
{
	int64_t date;

	s->flight.from_nsec = 0;
	s->flight.to_nsec = UINT64_MAX;
	if (from_usec == 0 && to_usec == UINT64_MAX)
		return 0;
	if (clock_date_usec(s->claim.instance, s->spec.config->trace.clock, &date) < 0)
		return fault_set(why, -EOPNOTSUPP,
				 "clock %s counts no time that could be found again",
				 s->spec.config->trace.clock);
	s->flight.from_nsec = trace_clock_nsec(from_usec, date);
	s->flight.to_nsec = trace_clock_nsec(to_usec, date);
	return 0;
}

/* Nothing slow before this: what is oldest is being overwritten */
static void start_capture(struct session *s)
{
	flight_hurry(true); /* the job's thread must not wait for a CPU; it goes back by itself */
	session_start_job(s, STEP_CAPTURING);
	flight_hurry(false);
}

/* Nothing slow before this: what is oldest is being overwritten */
static void mode_snapshot(struct session *s, const struct snapshot_order *order)
{
	struct fault why;

	s->flight.keep_free = snapshot_is_guests(&order->asker) ? order->limits.keep_free : 0;
	if (find_range(s, order->from_usec, order->to_usec, &why) < 0)
		session_defer(s, STEP_CAPTURING, &why);
	else
		start_capture(s);
}

int session_run_capture(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	int r = 0;

	if (s->flight.keep_free > 0)
		r = flight_check_room(s->flight.flight, s->flight.keep_free, why);
	return r < 0 ? r
		     : flight_capture(s->flight.flight, s->flight.from_nsec, s->flight.to_nsec,
				      why);
}

void session_captured(struct session *s, int result, const struct fault *why)
{
	bool busy = result == -EBUSY;
	struct fault unprepared;

	if (result < 0 && flight_fall_back(s->flight.flight, result)) {
		(void)log_full(LOG_WARNING, s->name, busy ? MESSAGE_MEDDLING : NULL, 0,
			       "%s%s: going on with method %s", why->text,
			       busy ? " (a snapshot trigger?)" : "", session_method(s));
		start_capture(s);
		return;
	}
	if (result >= 0) {
		result = session_prepare_segment(s, &unprepared);
		why = &unprepared;
	}
	if (result >= 0)
		session_start_job(s, STEP_CUTTING);
	else
		session_cut_done(s, result, why);
}

static int mode_cut(struct session *s, const struct snapshot_order *order,
		    struct snapshot_result *made, struct fault *why)
{
	int r = flight_export(s->flight.flight, &s->rec.files.plan, order, made, why);

	flight_drop(s->flight.flight);
	return r;
}

static void mode_cut_done(struct session *s)
{
	flight_drop(s->flight.flight); /* if it did not come so far */
	flight_add_counts(s->flight.flight);
}

static void mode_tell(const struct session *s)
{
	(void)log_full(LOG_INFO, s->name, MESSAGE_SESSION_STARTED, 0,
		       "tracing in flight, snapshots %s", session_method(s));
}

static void mode_reload(struct session *s, bool storage)
{
	/* Also if nothing is different: it may have fallen back to another than the best */
	session_want(s, WANT_METHOD);
}

static void mode_stop(struct session *s)
{
	bool hand_over = s->wants & WANT_HAND_OVER;

	if (s->wants & WANT_LEAVE) {
		session_leave_disk(s);
		return;
	}
	if (hand_over)
		session_note_handed_over(s, true);
	session_release(s, hand_over);
	session_settle(s, SESSION_STOPPED);
}

static void mode_count(const struct session *s, unsigned cpu, struct ledger_moved *ret)
{
	flight_counts(s->flight.flight, cpu, ret);
}

static void mode_release(struct session *s, bool keep)
{
	sd_event_source_disable_unref(s->flight.tick_source);
	flight_free(s->flight.flight);
	s->flight = (struct session_flight){};
}

const struct mode_ops mode_flight = {
	.dir = "snapshot",
	.open = mode_open,
	.begin = mode_begin,
	.tell = mode_tell,
	.reload = mode_reload,
	.stop = mode_stop,
	.snapshot = mode_snapshot,
	.cut = mode_cut,
	.cut_done = mode_cut_done,
	.count = mode_count,
	.release = mode_release,
};
