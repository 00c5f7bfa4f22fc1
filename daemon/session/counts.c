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
	struct retention_live live = {};

	*ret = (struct session_usage){
		.files = s->counts.kept_files,
		.bytes = s->counts.kept_bytes,
		.snapshots = s->counts.snapshots,
		.snapshot_bytes = s->counts.snapshot_bytes,
		.packed_files = s->compression.tally.files,
		.packed_bytes = s->compression.tally.bytes,
		.raw_bytes = s->compression.tally.raw_bytes,
		.packing_waits = session_is_to_compress(s) ? s->compression.tally.waiting : 0,
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

		if (s->step == STEP_RETARGETING) /* in the segment that has ended, and is counted */
			break;
		drain_cpu(s->rec.drain, cpu, &counts);
		live.bytes += counts.published;
	}
	ret->files++;
	ret->bytes += live.bytes;
	ret->segment_usec = live.usec = realtime_of(s->rec.segment_usec);
	ret->max_use = s->rec.files.limits.max_use;
	if (session_is_to_compress(s)) {
		live.raw_bytes = ret->raw_bytes;
		live.packed_bytes = ret->packed_bytes;
	}
	ret->lasts_usec =
		retention_lasts(&s->counts.past, &live, ret->max_use, now_usec(CLOCK_REALTIME));
}

const char *session_compress_failure(const struct session *s)
{
	return s->compression.failure.text;
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

void session_count_kept(struct session *s, uint64_t files, uint64_t bytes)
{
	s->counts.kept_files = files;
	s->counts.kept_bytes = bytes;
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
		*ret_n = s->counts.reach ? s->counts.ledger.n_cpus : 0;
		return reach_of_all(*ret, *ret_n);
	}
	if (begin == 0 && is_running(s))
		begin = realtime_of(s->rec.segment_usec);
	return begin == 0 || begin > now ? 0 : now - begin;
}

static unsigned n_cpus(const struct session *s)
{
	return s->mode->drains ? drain_n_cpus(s->rec.drain) : instance_n_cpus(s->claim.instance);
}

static void read_cpu(struct session *s, unsigned cpu)
{
	struct session_counts *c = &s->counts;
	struct ledger_moved moved = {};
	const struct cpu_stats *stats;

	s->mode->count(s, cpu, &moved);
	stats = ledger_read(&c->ledger, s->claim.instance, cpu, &moved, now_usec(CLOCK_REALTIME));
	if (stats && c->reach)
		c->reach[cpu] = reach_of_cpu(stats, now_usec(CLOCK_MONOTONIC) - c->recording_usec);
}

void session_sample(struct session *s)
{
	if (!s->claim.instance || s->counts.ledger.n_cpus < n_cpus(s))
		return;
	s->counts.sampled_usec = now_usec(CLOCK_MONOTONIC);
	for (unsigned cpu = 0; cpu < n_cpus(s); cpu++)
		read_cpu(s, cpu);
	if (!s->mode->salvage)
		last_hour_add(&s->counts.hour, now_usec(CLOCK_BOOTTIME), s->counts.ledger.events,
			      s->counts.ledger.lost);
}

void session_sample_now_and_then(struct session *s)
{
	if (now_usec(CLOCK_MONOTONIC) - s->counts.sampled_usec >= SAMPLE_USEC)
		session_sample(s);
}

static uint64_t total_events(const struct session *s)
{
	uint64_t events = 0;

	for (unsigned cpu = 0; s->counts.reach && cpu < s->counts.ledger.n_cpus; cpu++)
		events += s->counts.reach[cpu].total;
	return events;
}

int session_begin_counting(struct session *s)
{
	struct session_counts *c = &s->counts;
	int r = ledger_begin(&c->ledger, s->claim.instance, !s->mode->drains, s->mode->salvage);

	c->recording_usec = now_usec(CLOCK_MONOTONIC);
	if (!s->mode->salvage)
		last_hour_begin(&c->hour, now_usec(CLOCK_BOOTTIME), c->ledger.events,
				c->ledger.lost);
	free(TAKE_PTR(c->reach));
	if (s->mode->drains)
		return r;
	c->reach = calloc(c->ledger.n_cpus, sizeof(*c->reach));
	session_sample(s);
	c->events_before = total_events(s);
	return r;
}

void session_count_from(struct session *s, const struct ledger_base *base, unsigned n_cpus)
{
	for (unsigned cpu = 0; cpu < MIN(n_cpus, s->counts.ledger.n_cpus); cpu++)
		ledger_count_from(&s->counts.ledger, cpu, &base[cpu]);
}

const struct ledger *session_count(struct session *s)
{
	if (s->state == SESSION_RECORDING)
		session_sample_now_and_then(s);
	return &s->counts.ledger;
}

unsigned session_last_hour(struct session *s, struct last_hour_row *ret)
{
	const struct ledger *ledger = session_count(s);
	uint64_t now = now_usec(CLOCK_BOOTTIME), date = now_usec(CLOCK_REALTIME) - now;
	struct last_hour hour = s->counts.hour;
	unsigned n;

	hour.begun &= s->state == SESSION_RECORDING;
	n = last_hour_get(&hour, now, ledger->events, ledger->lost, ret);
	for (unsigned i = 0; i < n; i++)
		ret[i].end_usec += date;
	return n;
}

uint64_t session_events(struct session *s)
{
	(void)session_count(s);
	return total_events(s) - MIN(total_events(s), s->counts.events_before);
}

uint64_t session_cpu_usec(const struct session *s)
{
	return drain_cpu_nsec(s->rec.drain) / NSEC_PER_USEC;
}

void session_count_evicted(struct session *s, const uint64_t *subbufs, unsigned n_cpus)
{
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		ledger_evict(&s->counts.ledger, cpu, subbufs[cpu]);
}

void session_count_tasks(const struct session *s, uint64_t *ret_tasks, uint64_t *ret_processes)
{
	*ret_tasks = *ret_processes = 0;
	if (s->claim.instance && is_running(s))
		(void)instance_count_tasks(s->claim.instance, ret_tasks, ret_processes);
}
