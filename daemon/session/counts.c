/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What can be asked of a session: what it has recorded and lost, what its files take, how far they
 * reach back. The only writer of struct session_counts. Main thread.
 */
#include <fcntl.h>

#include "basic/io.h"
#include "basic/now.h"
#include "daemon/session/session-internal.h"

#define SAMPLE_USEC (20 * 1000) /* many clients may ask for counters: not each reads them anew */

uint64_t session_total_bytes(const struct session *s)
{
	return drain_total_bytes(s->rec.drain);
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
		.files = s->counts.kept_files,
		.bytes = s->counts.kept_bytes,
		.snapshots = s->counts.snapshots,
		.snapshot_bytes = s->counts.snapshot_bytes,
	};
	if (!s->mode->drains) { /* snapshots are no segments */
		ret->files = 0;
		ret->bytes = s->counts.snapshot_bytes;
	}
	if (is_running(s))
		ret->started_usec = realtime_of(s->counts.recording_usec);
	if (!s->mode->drains || !is_running(s))
		return;
	for (unsigned cpu = 0; cpu < drain_n_cpus(s->rec.drain); cpu++) {
		struct drain_counts counts;

		drain_cpu(s->rec.drain, cpu, &counts);
		live += counts.published;
	}
	ret->files++;
	ret->bytes += live;
	ret->segment_usec = realtime_of(s->rec.segment_usec);
	ret->max_use = s->rec.files.limits.max_use;
	ret->lasts_usec = retention_lasts(&s->counts.past, live, ret->segment_usec, ret->max_use,
					  now_usec(CLOCK_REALTIME));
}

void session_note_snapshots(struct session *s, uint64_t files, uint64_t bytes)
{
	s->counts.snapshots = files;
	s->counts.snapshot_bytes = bytes;
	if (!s->mode->drains)
		s->counts.kept_bytes = bytes;
}

void session_count_snapshots(struct session *s)
{
	_cleanup_close_ int fd = io_open_at(s->claim.dir_fd, "snapshot", O_DIRECTORY | O_NOFOLLOW);
	struct retention_report report = {0};

	if (fd >= 0 && retention_count(fd, &report) >= 0)
		session_note_snapshots(s, report.kept_files, report.kept_bytes);
}

void session_count_files(struct session *s, const struct recording_report *report)
{
	if (report->counted) {
		s->counts.kept_files = report->kept_files;
		s->counts.kept_bytes = report->kept_bytes;
		s->counts.past = report->past;
	}
	session_count_evicted(s, report->evicted, report->n_cpus);
}

uint64_t session_reach(struct session *s, const struct reach **ret, unsigned *ret_n)
{
	uint64_t now = now_usec(CLOCK_REALTIME), begin = s->counts.past.oldest_usec;

	*ret = NULL;
	*ret_n = 0;
	if (!s->mode->drains && is_running(s)) {
		(void)session_count(s);
		*ret = s->counts.reach;
		*ret_n = s->counts.reach ? s->counts.account.n_cpus : 0;
		return reach_of_all(*ret, *ret_n);
	}
	if (begin == 0 && is_running(s))
		begin = realtime_of(s->rec.segment_usec);
	return begin == 0 || begin > now ? 0 : now - begin;
}

static void read_raw(struct session *s, unsigned cpu, struct account_raw *ret)
{
	struct session_counts *c = &s->counts;
	struct cpu_stats stats;

	s->mode->count(s, cpu, ret);
	if (instance_read_stats(s->claim.instance, cpu, &stats) < 0)
		return;
	if (c->reach)
		c->reach[cpu] = reach_of_cpu(&stats, now_usec(CLOCK_MONOTONIC) - c->recording_usec);
	ret->overrun = stats.overrun;
	ret->commit_overrun = stats.commit_overrun;
	ret->dropped_events = stats.dropped_events;
}

static unsigned n_cpus(const struct session *s)
{
	return s->mode->drains ? drain_n_cpus(s->rec.drain) : instance_n_cpus(s->claim.instance);
}

void session_begin_counting(struct session *s)
{
	const struct state *k = s->claim.state;
	struct session_counts *c = &s->counts;

	c->recording_usec = now_usec(CLOCK_MONOTONIC);
	free(TAKE_PTR(c->reach));
	if (account_prepare(&c->account, n_cpus(s)) < 0)
		return;
	c->account.overwrites = !s->mode->drains;
	if (c->account.overwrites)
		c->reach = calloc(c->account.n_cpus, sizeof(*c->reach));
	for (unsigned cpu = 0; cpu < n_cpus(s); cpu++) {
		struct account_raw raw = {};

		/* What the earlier process lost in the segment that goes on is this segment's */
		if (cpu < k->n_cpus) {
			raw.overrun = k->base[cpu].overrun;
			raw.commit_overrun = k->base[cpu].commit_overrun;
			raw.dropped_events = k->base[cpu].dropped_events;
		}
		account_begin(&c->account, cpu, &raw);
	}
}

void session_sample(struct session *s)
{
	if (!s->claim.instance || s->mode->salvage || s->counts.account.n_cpus < n_cpus(s))
		return;
	s->counts.sampled_usec = now_usec(CLOCK_MONOTONIC);
	for (unsigned cpu = 0; cpu < n_cpus(s); cpu++) {
		struct account_raw raw = s->counts.account.last[cpu];

		read_raw(s, cpu, &raw);
		account_add(&s->counts.account, cpu, &raw, now_usec(CLOCK_REALTIME));
	}
}

const struct account *session_count(struct session *s)
{
	if (s->state == SESSION_RECORDING &&
	    now_usec(CLOCK_MONOTONIC) - s->counts.sampled_usec >= SAMPLE_USEC)
		session_sample(s);
	return &s->counts.account;
}

void session_count_evicted(struct session *s, const uint64_t *subbufs, unsigned n_cpus)
{
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		account_evict(&s->counts.account, cpu, subbufs[cpu]);
}

void session_count_tasks(const struct session *s, uint64_t *ret_tasks, uint64_t *ret_processes)
{
	*ret_tasks = *ret_processes = 0;
	if (s->claim.instance && is_running(s))
		(void)instance_count_tasks(s->claim.instance, ret_tasks, ret_processes);
}
