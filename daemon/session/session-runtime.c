/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests to a running session, and who waits for what of it. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/config-session.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/session-runtime.h"
#include "writer/store.h"

#define SAMPLE_USEC (20 * 1000) /* many clients may ask for counters: not each reads them anew */

struct session_waiter {
	struct session_waiter *next;
	enum session_wait what;
	bool begun; /* the rotation it waits for is under way */
	session_done_t done;
	void *userdata;
};

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

void session_check_waits(struct session *s)
{
	bool settled = s->state == SESSION_STOPPED || s->state == SESSION_FAILED;

	if (s->state == SESSION_RECORDING && !s->salvage && !(s->wants & WANT_STOP))
		tell(s, WAIT_STARTED, false, 0, "");
	if (!settled || s->pending)
		return;
	tell(s, WAIT_STARTED, false, -ECANCELED,
	     s->state == SESSION_FAILED ? s->failure.text : "it was stopped");
	tell(s, WAIT_STOPPED, false, 0, "");
}

void session_cancel_waits(struct session *s, const char *why)
{
	tell(s, WAIT_ROTATED, false, -ECANCELED, why);
	session_drop_change(s, -ECANCELED, why);
}

int session_wait(struct session *s, enum session_wait what, session_done_t done, void *userdata)
{
	struct session_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct session_waiter){
		.next = s->waiters, .what = what, .done = done, .userdata = userdata};
	s->waiters = w;
	if (what == WAIT_ROTATED && s->state != SESSION_RECORDING)
		tell(s, what, false, -ENOTCONN, "it does not record");
	else if (what == WAIT_ROTATED && s->flight)
		tell(s, what, false, -EOPNOTSUPP,
		     "a flight session has no segments to rotate: take a snapshot");
	else if (what != WAIT_ROTATED)
		session_check_waits(s);
	else
		s->wants |= WANT_ROTATE;
	session_wake(s);
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

/* --- pausing */

static bool records(const struct session *s)
{
	return s->state == SESSION_RECORDING && !s->salvage && !(s->wants & WANT_STOP);
}

int session_pause(struct session *s, bool pause, struct fault *why)
{
	int r;

	if (!records(s))
		return fault_set(why, -ENOTCONN, "session %s does not record, it is %s", s->name,
				 session_state_name(s->state));
	if (s->paused == pause)
		return 0;
	r = instance_trace(s->instance, !pause, why);
	if (r < 0)
		return r;
	s->paused = s->kernel->paused = pause;
	s->wants |= WANT_NOTE; /* for the next process */
	session_wake(s);
	(void)log_full(LOG_NOTICE, s->name, NULL, 0, pause ? "paused" : "resumed");
	s->events->changed(s->events->userdata, s);
	return 0;
}

bool session_paused(const struct session *s)
{
	return s->paused && s->state == SESSION_RECORDING;
}

/* --- other events */

/* Has the header of the file in use the formats of all its events? */
bool session_change_fits(const struct session *s)
{
	const struct trace_config *trace = &s->change->trace;

	for (size_t i = 0; !s->flight && i < trace->n_events; i++)
		if (!strv_contains(s->files.plan.systems, trace->events[i].system))
			return false;
	return true;
}

static void swap_events(struct session *s)
{
	struct trace_config *now = &s->config->trace, *next = &s->change->trace;
	struct trace_event *events = now->events;
	size_t n = now->n_events;

	now->events = next->events;
	now->n_events = next->n_events;
	next->events = events;
	next->n_events = n;
}

/* The next process must see that the instance is no longer as NAME.conf has it */
static void note_change(struct session *s)
{
	char *text = strdup(s->change->trace_text);

	if (text) {
		free(s->kernel->trace_text);
		s->kernel->trace_text = text;
	}
	free(s->config->text);
	free(s->config->trace_text);
	s->config->text = TAKE_PTR(s->change->text);
	s->config->trace_text = TAKE_PTR(s->change->trace_text);
}

void session_drop_change(struct session *s, int result, const char *why)
{
	if (!s->change)
		return;
	session_config_free(TAKE_PTR(s->change));
	tell(s, WAIT_CHANGED, false, result, why);
}

bool session_apply_change(struct session *s)
{
	struct fault why = {};
	int r;

	if (!s->change)
		return false;
	if (!records(s)) {
		session_drop_change(s, -ECANCELED, "the session was stopped");
		return false;
	}
	if (!session_change_fits(s)) {
		s->wants |= WANT_ROTATE;
		return false;
	}
	swap_events(s);
	r = instance_update_events(s->instance, &why);
	if (r < 0)
		swap_events(s);
	else
		note_change(s);
	(void)log_full(r < 0 ? LOG_WARNING : LOG_NOTICE, s->name, NULL, 0, "%s",
		       r < 0 ? why.text : "traces other events now");
	session_drop_change(s, r, why.text);
	if (r >= 0)
		s->events->changed(s->events->userdata, s);
	return r >= 0;
}

int session_change_events(struct session *s, const struct session_config *config,
			  session_done_t done, void *userdata, struct fault *why)
{
	int r;

	if (!records(s))
		return fault_set(why, -ENOTCONN, "session %s does not record, it is %s", s->name,
				 session_state_name(s->state));
	if (s->change)
		return fault_set(why, -EBUSY,
				 "another change of the events of session %s is under way",
				 s->name);
	r = instance_has_events(s->instance, &config->trace, why);
	if (r < 0)
		return r;
	r = session_config_copy(config, &s->change);
	if (r >= 0 && done)
		r = session_wait(s, WAIT_CHANGED, done, userdata);
	if (r < 0) {
		session_config_free(TAKE_PTR(s->change));
		return fault_errno(why, r, "session %s", s->name);
	}
	session_wake(s); /* now, or when what is under way is done */
	return 0;
}

/* --- looking */

const struct session_config *session_config_in_force(const struct session *s)
{
	return s->state == SESSION_STOPPED || s->salvage ? NULL : s->config;
}

const char *session_instance_name(const struct session *s)
{
	return s->instance ? instance_name(s->instance) : "";
}

static bool is_running(const struct session *s)
{
	return s->state == SESSION_RECORDING || s->state == SESSION_STOPPING;
}

static uint64_t realtime_of(uint64_t monotonic_usec)
{
	return now_usec(CLOCK_REALTIME) - (now_usec(CLOCK_MONOTONIC) - monotonic_usec);
}

void session_usage(const struct session *s, struct session_usage *ret)
{
	uint64_t live = 0;

	*ret = (struct session_usage){
		.files = s->kept_files,
		.bytes = s->kept_bytes,
		.snapshots = s->snapshots,
		.snapshot_bytes = s->snapshot_bytes,
	};
	if (s->flight) { /* snapshots are no segments */
		ret->files = 0;
		ret->bytes = s->snapshot_bytes;
	}
	if (is_running(s))
		ret->started_usec = realtime_of(s->recording_usec);
	if (s->flight || !is_running(s))
		return;
	for (unsigned cpu = 0; cpu < drain_n_cpus(s->drain); cpu++) {
		struct drain_counts counts;

		drain_cpu(s->drain, cpu, &counts);
		live += counts.published;
	}
	ret->files++;
	ret->bytes += live;
	ret->segment_usec = realtime_of(s->segment_usec);
	ret->max_use = s->files.limits.max_use;
	ret->lasts_usec = retention_lasts(&s->past, live, ret->segment_usec, ret->max_use,
					  now_usec(CLOCK_REALTIME));
}

void session_note_snapshots(struct session *s, uint64_t files, uint64_t bytes)
{
	s->snapshots = files;
	s->snapshot_bytes = bytes;
	if (s->flight)
		s->kept_bytes = bytes;
}

uint64_t session_reach(struct session *s, const struct reach **ret, unsigned *ret_n)
{
	uint64_t now = now_usec(CLOCK_REALTIME), begin = s->past.oldest_usec;

	*ret = NULL;
	*ret_n = 0;
	if (s->flight && is_running(s)) {
		(void)session_count(s);
		*ret = s->reach;
		*ret_n = s->reach ? s->account.n_cpus : 0;
		return reach_of_all(*ret, *ret_n);
	}
	if (!s->flight && begin == 0 && is_running(s))
		begin = realtime_of(s->segment_usec);
	return s->flight || begin == 0 || begin > now ? 0 : now - begin;
}

void session_count_tasks(const struct session *s, uint64_t *ret_tasks, uint64_t *ret_processes)
{
	*ret_tasks = *ret_processes = 0;
	if (s->instance && is_running(s))
		(void)instance_count_tasks(s->instance, ret_tasks, ret_processes);
}

/* --- counting */

static void read_raw(struct session *s, unsigned cpu, struct account_raw *ret)
{
	struct cpu_stats stats;

	if (s->flight) {
		struct flight_counts counts;

		flight_counts(s->flight, cpu, &counts);
		ret->subbufs = counts.subbufs;
		ret->bytes = counts.bytes;
		ret->torn = counts.torn;
	} else {
		struct drain_counts counts;

		drain_cpu(s->drain, cpu, &counts);
		ret->subbufs = counts.subbufs;
		ret->bytes = counts.total_bytes;
		ret->not_written = counts.dropped_bytes / drain_subbuf_size(s->drain);
	}
	if (instance_read_stats(s->instance, cpu, &stats) < 0)
		return;
	if (s->flight && s->reach)
		s->reach[cpu] = reach_of_cpu(&stats, now_usec(CLOCK_MONOTONIC) - s->recording_usec);
	ret->overrun = stats.overrun;
	ret->commit_overrun = stats.commit_overrun;
	ret->dropped_events = stats.dropped_events;
}

static unsigned n_cpus(const struct session *s)
{
	return s->flight ? instance_n_cpus(s->instance) : drain_n_cpus(s->drain);
}

void session_begin_counting(struct session *s)
{
	if (account_prepare(&s->account, n_cpus(s)) < 0)
		return;
	free(s->reach);
	s->reach = s->flight ? calloc(s->account.n_cpus, sizeof(*s->reach)) : NULL;
	s->account.overwrites = s->flight;
	for (unsigned cpu = 0; cpu < n_cpus(s); cpu++) {
		struct account_raw raw = {};

		/* What the earlier process lost in the segment that goes on is this segment's */
		if (cpu < s->kernel->n_cpus) {
			raw.overrun = s->kernel->base[cpu].overrun;
			raw.commit_overrun = s->kernel->base[cpu].commit_overrun;
			raw.dropped_events = s->kernel->base[cpu].dropped_events;
		}
		account_begin(&s->account, cpu, &raw);
	}
}

void session_sample(struct session *s)
{
	if (!s->instance || s->salvage || s->account.n_cpus < n_cpus(s))
		return;
	s->sampled_usec = now_usec(CLOCK_MONOTONIC);
	for (unsigned cpu = 0; cpu < n_cpus(s); cpu++) {
		struct account_raw raw = s->account.last[cpu];

		read_raw(s, cpu, &raw);
		account_add(&s->account, cpu, &raw, now_usec(CLOCK_REALTIME));
	}
}

const struct account *session_count(struct session *s)
{
	if (s->state == SESSION_RECORDING &&
	    now_usec(CLOCK_MONOTONIC) - s->sampled_usec >= SAMPLE_USEC)
		session_sample(s);
	return &s->account;
}

void session_count_evicted(struct session *s, const uint64_t *subbufs, unsigned n_cpus)
{
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		account_evict(&s->account, cpu, subbufs[cpu]);
}
