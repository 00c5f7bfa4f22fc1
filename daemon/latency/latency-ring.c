/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "daemon/latency/latency-ring.h"
#include "recorder/kernel-text.h"
#include "recorder/ring-copy.h"
#include "recorder/ring-header.h"

#define STATS_SIZE 512

enum state {
	NOT_ASKED, /* in this look */
	MAPPED,
	EMPTIED,
};

/* How far a CPU was looked at: in the sub-buffer that was the newest */
struct seen {
	uint64_t time;	 /* of that sub-buffer; 0: none yet */
	uint32_t commit; /* bytes of it */
	uint64_t events; /* that the CPU has had by then, as it counts them */
	/* of this look: */
	enum state state;
	struct ring_copy copy;
	uint64_t counted; /* events, before */
	bool first;	  /* no sub-buffer of it was copied yet */
};

struct latency_ring {
	const struct latency_ring_feed *feed;
	struct subbuf_layout layout;
	struct seen *seen; /* [n_cpus] */
	char *rest;
	uint64_t from; /* older sub-buffers are not wanted */
};

static int read_stats(const struct latency_ring *ring, unsigned cpu, struct cpu_stats *ret)
{
	char text[STATS_SIZE];
	ssize_t n = pread(ring->feed->stats_fds[cpu], text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return kernel_text_stats(text, ret);
}

int latency_ring_now(const struct latency_ring *ring, uint64_t *ret)
{
	struct cpu_stats stats;
	int r = -ENODEV;

	for (unsigned cpu = 0; cpu < ring->feed->n_cpus && r < 0; cpu++)
		if (ring->feed->stats_fds[cpu] >= 0)
			r = read_stats(ring, cpu, &stats);
	if (r >= 0)
		*ret = stats.now_usec * NSEC_PER_USEC;
	return r;
}

int latency_ring_new(const struct latency_ring_feed *feed, struct latency_ring **ret)
{
	_cleanup_(latency_ring_freep) struct latency_ring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	ring->feed = feed;
	ring->layout = subbuf_layout_native(feed->subbuf_size);
	ring->seen = calloc(feed->n_cpus, sizeof(*ring->seen));
	ring->rest = calloc(1, feed->subbuf_size);
	if (!ring->seen || !ring->rest)
		return -ENOMEM;
	r = latency_ring_now(ring, &ring->from);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ring);
	return 0;
}

struct latency_ring *latency_ring_free(struct latency_ring *ring)
{
	if (!ring)
		return NULL;
	if (ring->seen)
		latency_ring_leave(ring);
	free(ring->seen);
	free(ring->rest);
	free(ring);
	return NULL;
}

static void set_commit(char *subbuf, unsigned long commit)
{
	memcpy(subbuf + COMMIT_AT, &commit, sizeof(commit));
}

/*
 * Leave of a sub-buffer that was seen before what is new, as one that begins with the last event
 * seen. Return: false: it makes no sense.
 */
static bool leave_rest(struct latency_ring *ring, const struct seen *seen, char *subbuf)
{
	const uint32_t more = ring_header_commit(subbuf) - seen->commit;
	struct subbuf_info info;

	memset(ring->rest, 0, ring->feed->subbuf_size);
	memcpy(ring->rest, subbuf, DATA_AT + seen->commit);
	set_commit(ring->rest, seen->commit);
	if (subbuf_check(&ring->layout, ring->rest, NULL, &info, NULL) != 0)
		return false;
	memcpy(subbuf, &info.last_ts, sizeof(info.last_ts));
	set_commit(subbuf, more);
	memmove(subbuf + DATA_AT, subbuf + DATA_AT + seen->commit, more);
	memset(subbuf + DATA_AT + more, 0, ring->feed->subbuf_size - DATA_AT - more);
	return true;
}

/* Return: is it wanted, as it is then? */
static bool take(struct latency_ring *ring, struct seen *seen, char *subbuf)
{
	const uint64_t time = ring_header_time(subbuf);
	const uint32_t commit = ring_header_commit(subbuf);
	bool wanted = true;

	if (time < seen->time || (time == seen->time && commit <= seen->commit))
		return false;
	if (time == seen->time)
		wanted = leave_rest(ring, seen, subbuf);
	else if (seen->first && seen->time > 0) /* the one that was the newest is gone */
		subbuf_mark_missed(&ring->layout, subbuf);
	seen->time = time;
	seen->commit = commit;
	return wanted;
}

/* Return: 1 there may be something new, 0 not, or negative errno */
static int begin(const struct latency_ring *ring, unsigned cpu)
{
	struct seen *seen = &ring->seen[cpu];
	struct cpu_stats stats;
	int r;

	seen->state = EMPTIED;
	if (ring->feed->trace_fds[cpu] < 0)
		return 0;
	r = read_stats(ring, cpu, &stats);
	if (r < 0)
		return r;
	seen->counted = stats.entries + stats.overrun + stats.read_events;
	if (seen->counted == seen->events)
		return 0;
	r = ring_copy_open(ring->feed->trace_fds[cpu], ring->feed->subbuf_size, &seen->copy);
	if (r < 0)
		return r;
	seen->first = true;
	seen->state = MAPPED;
	return ring_copy_newer(&seen->copy, ring->feed->trace_fds[cpu], stats.overrun > 0,
			       seen->time ? seen->time : ring->from);
}

/* Copy some, and keep those that are new. Return: how many. */
static unsigned copy_some(struct latency_ring *ring, struct seen *seen, char *to, unsigned max)
{
	const unsigned size = ring->feed->subbuf_size;
	const size_t copied = ring_copy_fill(&seen->copy, to, max);
	unsigned n = 0;

	for (size_t i = 0; i < copied; i++, seen->first = false) {
		char *subbuf = to + i * size;

		if (!take(ring, seen, subbuf))
			continue;
		if (n < i)
			memcpy(to + n * size, subbuf, size);
		n++;
	}
	if (copied < max) {
		ring_copy_close(&seen->copy);
		seen->events = seen->counted;
		seen->state = EMPTIED;
	}
	return n;
}

int latency_ring_read(struct latency_ring *ring, unsigned cpu, char *to, unsigned max)
{
	struct seen *seen = &ring->seen[cpu];
	unsigned n = 0;
	int r = seen->state == NOT_ASKED ? begin(ring, cpu) : 0;

	while (r >= 0 && n == 0 && seen->state == MAPPED)
		n = copy_some(ring, seen, to, max);
	return r < 0 ? r : (int)n;
}

void latency_ring_leave(struct latency_ring *ring)
{
	for (unsigned cpu = 0; cpu < ring->feed->n_cpus; cpu++)
		ring_copy_close(&ring->seen[cpu].copy);
}

void latency_ring_look(struct latency_ring *ring)
{
	for (unsigned cpu = 0; cpu < ring->feed->n_cpus; cpu++)
		ring->seen[cpu].state = NOT_ASKED;
}
