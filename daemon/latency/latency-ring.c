/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "daemon/latency/latency-ring.h"
#include "recorder/kernel-text.h"
#include "recorder/ring-copy.h"
#include "recorder/ring-header.h"

#define CHUNK	   64U /* sub-buffers that are copied at a time */
#define STATS_SIZE 512

/* How far a CPU was looked at: in the sub-buffer that was the newest */
struct seen {
	uint64_t time;	 /* of that sub-buffer; 0: none yet */
	uint32_t commit; /* bytes of it */
	uint64_t events; /* that the CPU has had by then, as it counts them */
};

struct latency_ring {
	const struct latency_ring_feed *feed;
	struct subbuf_layout layout;
	struct seen *seen; /* [n_cpus] */
	char *chunk, *rest;
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
	ring->chunk = calloc(CHUNK, feed->subbuf_size);
	ring->rest = calloc(1, feed->subbuf_size);
	if (!ring->seen || !ring->chunk || !ring->rest)
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
	free(ring->seen);
	free(ring->chunk);
	free(ring->rest);
	free(ring);
	return NULL;
}

static void set_commit(char *subbuf, unsigned long commit)
{
	memcpy(subbuf + COMMIT_AT, &commit, sizeof(commit));
}

/*
 * What of a sub-buffer that was seen before is new, as one that begins with the last event seen;
 * NULL: it makes no sense
 */
static const char *rest_of(struct latency_ring *ring, const struct seen *seen, const char *subbuf)
{
	const uint32_t more = ring_header_commit(subbuf) - seen->commit;
	struct subbuf_info info;

	memset(ring->rest, 0, ring->feed->subbuf_size);
	memcpy(ring->rest, subbuf, DATA_AT + seen->commit);
	set_commit(ring->rest, seen->commit);
	if (subbuf_check(&ring->layout, ring->rest, NULL, &info, NULL) != 0)
		return NULL;
	memcpy(ring->rest, &info.last_ts, sizeof(info.last_ts));
	set_commit(ring->rest, more);
	memset(ring->rest + DATA_AT, 0, seen->commit);
	memcpy(ring->rest + DATA_AT, subbuf + DATA_AT + seen->commit, more);
	return ring->rest;
}

/* @first: of this look */
static int take(struct latency_ring *ring, unsigned cpu, char *subbuf, bool first,
		int (*put)(void *userdata, unsigned cpu, const char *subbuf), void *userdata)
{
	struct seen *seen = &ring->seen[cpu];
	const uint64_t time = ring_header_time(subbuf);
	const uint32_t commit = ring_header_commit(subbuf);
	const char *fresh = subbuf;

	if (time < seen->time || (time == seen->time && commit <= seen->commit))
		return 0;
	if (time == seen->time)
		fresh = rest_of(ring, seen, subbuf);
	else if (first && seen->time > 0) /* the one that was the newest is gone */
		subbuf_mark_missed(&ring->layout, subbuf);
	seen->time = time;
	seen->commit = commit;
	return fresh ? put(userdata, cpu, fresh) : 0;
}

static int copy(struct latency_ring *ring, unsigned cpu, bool overrun,
		int (*put)(void *userdata, unsigned cpu, const char *subbuf), void *userdata)
{
	const struct seen *seen = &ring->seen[cpu];
	const uint64_t from = seen->time ? seen->time : ring->from;
	const unsigned size = ring->feed->subbuf_size;
	struct ring_copy copy = {};
	bool first = true;
	size_t n;
	int r = ring_copy_open(ring->feed->trace_fds[cpu], size, &copy);

	if (r < 0)
		return r;
	r = ring_copy_map(&copy, ring->feed->trace_fds[cpu], SIZE_MAX);
	if (r >= 0)
		r = ring_copy_list(&copy, overrun);
	if (r >= 0)
		ring_copy_range(&copy, from, UINT64_MAX);
	do {
		n = r < 0 ? 0 : ring_copy_fill(&copy, ring->chunk, CHUNK);
		for (size_t i = 0; i < n && r >= 0; i++, first = false)
			r = take(ring, cpu, ring->chunk + i * size, first, put, userdata);
	} while (r >= 0 && n == CHUNK);
	ring_copy_close(&copy);
	return r;
}

int latency_ring_look(struct latency_ring *ring, unsigned cpu,
		      int (*put)(void *userdata, unsigned cpu, const char *subbuf), void *userdata)
{
	struct seen *seen = &ring->seen[cpu];
	struct cpu_stats stats;
	uint64_t events;
	int r;

	if (ring->feed->trace_fds[cpu] < 0)
		return 0;
	r = read_stats(ring, cpu, &stats);
	if (r < 0)
		return r;
	events = stats.entries + stats.overrun + stats.read_events;
	if (events == seen->events)
		return 0;
	r = copy(ring, cpu, stats.overrun > 0, put, userdata);
	if (r >= 0)
		seen->events = events;
	return r;
}
