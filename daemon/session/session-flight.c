/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions of Mode=flight: the instance traces, and nothing wakes us until somebody wants a
 * snapshot. No workers, no drain, no segments; what the other modules of the session do for those
 * is replaced by this. Main thread.
 */
#include <errno.h>

#include "basic/log.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/session-runtime.h"
#include "engine/boot-note.h"
#include "engine/clock.h"
#include "formats/trace-clock.h"

#define THREADS_MAX 4U /* copying: memory is no faster with more */

static void make_params(const struct session *s, const struct session_config *config,
			struct flight_params *ret)
{
	unsigned workers = s->env->workers;

	*ret = (struct flight_params){
		.instance = s->instance,
		.dir_fd = s->files.dir_fd,
		.method = config->snapshot.method,
		.memory = config->snapshot.memory,
		.buffer_size = session_buffer_size(s),
		.threads = workers > 0 ? workers : MIN(instance_n_cpus(s->instance), THREADS_MAX),
		.counts_time = trace_clock_counts_time(config->trace.clock),
	};
}

/* Once, as it stays so until the next reload */
static void tell_second_best(const struct session *s, int result, const struct fault *why)
{
	if (result == FLIGHT_SECOND_BEST)
		(void)log_full(LOG_WARNING, s->name, NULL, 0, "%s: going on with method %s",
			       why->text, flight_method_name(s->flight));
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	(void)sd_event_source_set_time_relative(source, s->config->storage.flush_usec);
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	session_refresh_units(s);
	return 0;
}

static int note_start(struct session *s, struct fault *why)
{
	int r = 0;

	s->kernel->flight = true;
	s->kernel->handed_over = false;
	if (!s->files.adopt || s->kernel->n_cpus != instance_n_cpus(s->instance))
		r = session_note_base(s, false);
	return r < 0 ? fault_errno(why, r, "cannot note the counters")
		     : session_write_state(s, why);
}

int session_begin_flight(struct session *s, struct fault *why)
{
	struct retention_report report = {0};
	struct flight_params params;
	int r;

	make_params(s, s->config, &params);
	r = flight_new(&params, &s->flight, why);
	tell_second_best(s, r, why);
	if (r >= 0)
		r = note_start(s, why);
	if (r < 0)
		return r;
	flight_alert();
	session_begin_counting(s);
	if (retention_count(s->files.dir_fd, &report) >= 0)
		session_note_snapshots(s, report.kept_files, report.kept_bytes);
	/* The only thing that wakes us: processes that a unit starts anew */
	if (s->config->trace.units)
		r = sd_event_add_time_relative(s->env->event, &s->flush_source, CLOCK_MONOTONIC,
					       s->config->storage.flush_usec, 0, on_tick, s);
	if (r < 0)
		return fault_errno(why, r, "cannot watch the session");
	return session_trace(s, why);
}

void session_end_flight(struct session *s)
{
	flight_free(TAKE_PTR(s->flight));
}

void session_change_flight(struct session *s)
{
	struct flight_params params;
	struct fault why;
	int r;

	make_params(s, s->config, &params);
	r = flight_change(s->flight, &params, &why);
	tell_second_best(s, r, &why);
	if (r < 0)
		(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s; going on with method %s",
			       why.text, flight_method_name(s->flight));
}

const char *session_method(const struct session *s)
{
	return s->flight ? flight_method_name(s->flight) : "";
}

static int find_range(struct session *s, uint64_t from_usec, uint64_t to_usec, struct fault *why)
{
	int64_t date;

	s->from_nsec = 0;
	s->to_nsec = UINT64_MAX;
	if (from_usec == 0 && to_usec == UINT64_MAX)
		return 0;
	if (clock_date_usec(s->instance, s->config->trace.clock, &date) < 0)
		return fault_set(why, -EOPNOTSUPP,
				 "clock %s counts no time that could be found again",
				 s->config->trace.clock);
	s->from_nsec = trace_clock_nsec(from_usec, date);
	s->to_nsec = trace_clock_nsec(to_usec, date);
	return 0;
}

static void start_capture(struct session *s)
{
	flight_hurry(true); /* the job's thread must not wait for a CPU; it goes back by itself */
	session_start_job(s, STEP_CAPTURING);
	flight_hurry(false);
}

/* Nothing slow before this: what is oldest is being overwritten */
void session_begin_capture(struct session *s, uint64_t from_usec, uint64_t to_usec)
{
	struct fault why;

	if (find_range(s, from_usec, to_usec, &why) < 0)
		session_defer(s, STEP_CAPTURING, &why);
	else
		start_capture(s);
}

int session_run_capture(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	int r = 0;

	if (s->capture_keep_free > 0)
		r = flight_check_room(s->flight, s->capture_keep_free, why);
	return r < 0 ? r : flight_capture(s->flight, s->from_nsec, s->to_nsec, why);
}

void session_captured(struct session *s, int result, const struct fault *why)
{
	bool busy = result == -EBUSY;
	struct fault unprepared;

	if (result < 0 && flight_fall_back(s->flight, result)) {
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
	if (result >= 0) {
		session_start_job(s, STEP_CUTTING);
		return;
	}
	flight_drop(s->flight);
	session_cut_done(s, result, why);
}

void session_stop_flight(struct session *s)
{
	if (s->wants & WANT_HAND_OVER) {
		s->kernel->handed_over = true;
		if (state_write(s->dir_fd, s->kernel) < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, 0,
				       "cannot write the state file, ignoring");
	}
	session_release(s, (s->wants & WANT_HAND_OVER));
}

/* What an earlier process traced in flight mode, and nobody wants as it is: no loss, it was only
 * for snapshots */
int session_discard_flight(struct session *s, const struct state *left, struct fault *why)
{
	int r;

	(void)log_full(LOG_INFO, s->name, MESSAGE_RECOVERED, 0,
		       "instance %s of an earlier run is %s: removing it", left->instance,
		       s->config ? "set up differently" : "no longer wanted");
	r = session_destroy_left(s, left, why);
	if (r >= 0)
		r = state_remove(s->dir_fd);
	if (r >= 0)
		r = boot_note_remove(s->dir_fd);
	return r;
}
