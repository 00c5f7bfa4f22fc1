/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Without a map of the ring buffer: everything is taken out of the kernel first, by a swap or by
 * draining it, and kept in the carry. Runs as a job; CPUs in parallel.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/io.h"
#include "engine/flight-internal.h"
#include "engine/parallel.h"
#include "recorder/ring-read.h"

#define TAKE_SIZE MIB /* bytes taken out of the kernel at a time, without a map */

static int open_taken(struct flight *f, unsigned cpu, int *ret)
{
	char path[64];
	int fd;

	if (f->method == FLIGHT_DRAIN)
		return instance_open_cpu(f->params.instance, cpu, ret, NULL);
	(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/snapshot_raw", cpu);
	fd = openat(instance_dir_fd(f->params.instance), path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/*
 * Where the ring buffer has run over since it was last emptied, the history begins anew: what was
 * taken before would stand in front of a hole. It shows in the first sub-buffer, or in the second
 * if the reader had the first one already.
 */
static size_t skip_hole(struct flight *f, unsigned cpu, const char *subbufs, size_t n)
{
	for (size_t i = 0; i < MIN(n, (size_t)2); i++)
		if (ring_read_missed(subbufs + i * f->subbuf_size)) {
			carry_trim(f->carry, cpu, 0);
			return i;
		}
	return 0;
}

static int take(struct flight *f, unsigned cpu, struct ring_read *source)
{
	size_t max = MAX(TAKE_SIZE / f->subbuf_size, (size_t)2), n;
	_cleanup_free_ char *buffer = malloc(max * f->subbuf_size);
	bool first = true;
	int r = buffer ? 0 : -ENOMEM;

	while (r >= 0 && !source->done) {
		size_t skip;
		int kept;

		r = ring_read_fill(source, buffer, max, &n);
		skip = first ? skip_hole(f, cpu, buffer, n) : 0;
		kept = carry_append(f->carry, cpu, buffer + skip * f->subbuf_size, n - skip);
		r = kept < 0 ? kept : r;
		first = false;
	}
	return r;
}

static int capture_taken(void *userdata, unsigned cpu)
{
	struct flight *f = userdata;
	struct flight_cpu *c = &f->cpus[cpu];
	_cleanup_close_ int fd = -EBADF;
	struct ring_read source = {.subbuf_size = f->subbuf_size,
				   .stop_nsec = UINT64_MAX,
				   .left = flight_ring_subbufs(f)};
	int r;

	if (!c->has_stats) /* never online */
		return 0;
	r = open_taken(f, cpu, &fd);
	if (r < 0)
		return flight_fault(f, r, "cannot open CPU %u's ring buffer", cpu);
	source.fd = fd;
	if (f->method == FLIGHT_DRAIN && f->params.counts_time)
		source.stop_nsec = (c->stats.now_usec + 1) * NSEC_PER_USEC;
	r = take(f, cpu, &source);
	carry_sort(f->carry, cpu);
	carry_trim(f->carry, cpu, flight_ring_subbufs(f));
	return r < 0 ? flight_fault(f, r, "cannot keep what CPU %u's ring buffer held", cpu) : 0;
}

static uint64_t item_timestamp(const void *items, size_t i)
{
	const struct carry_item *list = items;

	return list[i].timestamp;
}

static int fill_taken(void *userdata, unsigned group)
{
	struct flight_group *g = userdata;
	struct flight *f = g->flight;

	for (unsigned cpu = group; cpu < f->n_cpus; cpu += g->n) {
		struct flight_cpu *c = &f->cpus[cpu];
		size_t n;

		c->items = carry_list(f->carry, cpu, &n);
		ring_list_range(c->items, n, item_timestamp, f->from_nsec, f->to_nsec, &c->next,
				&c->end);
	}
	return flight_fill_group(g, group);
}

static int write_snapshot(struct flight *f, const char *text)
{
	int r = io_write_string_at(instance_dir_fd(f->params.instance), "snapshot", text, 0);

	f->swap_failed = r < 0;
	return r < 0 ? flight_fault(f, r, "cannot swap the ring buffer") : 0;
}

/*
 * Whoever was writing an event when the buffers were swapped goes on in the one that was taken
 * away, with preemption off: what is read before that is done lacks the event, and clearing loses
 * it. This waits for an RCU grace period, which such sections hold up; membarrier(2). Kernels with
 * nohz_full refuse.
 */
static void wait_for_writers(void)
{
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

/*
 * What is on the other side comes first: a snapshot trigger of somebody's has put it there. A swap
 * does not clear: whoever swaps next would go on in the last sub-buffer, behind what was read of
 * it.
 */
static int capture_by_swap(struct flight *f)
{
	static const char swap[] = "1", clear[] = "2";
	int r = parallel_run(f->n_cpus, f->params.threads, capture_taken, f);

	if (r >= 0)
		r = write_snapshot(f, clear);
	if (r >= 0)
		r = write_snapshot(f, swap);
	if (r >= 0)
		wait_for_writers();
	if (r >= 0)
		r = parallel_run(f->n_cpus, f->params.threads, capture_taken, f);
	return r < 0 ? r : write_snapshot(f, clear);
}

uint64_t flight_count_subbufs(struct flight *f)
{
	uint64_t n = 0;

	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++) {
		struct flight_cpu *c = &f->cpus[cpu];

		c->has_stats = instance_read_stats(f->params.instance, cpu, &c->stats) >= 0;
		n += c->has_stats && c->stats.entries > 0 ? flight_ring_subbufs(f) : 1;
	}
	return n;
}

/* Before anything is taken: is there room for all of it? */
static int prepare_carry(struct flight *f)
{
	uint64_t n = flight_count_subbufs(f);
	int r = 0;

	if (!f->carry)
		r = carry_new(f->params.dir_fd, f->n_cpus, f->subbuf_size, &f->carry);
	if (r >= 0)
		r = carry_reserve(f->carry, n);
	return r < 0 ? flight_fault(f, r, "cannot keep what the ring buffer holds") : 0;
}

int flight_take(struct flight_group *g)
{
	struct flight *f = g->flight;
	int r = prepare_carry(f);

	f->taken = r >= 0;
	if (r >= 0 && f->method == FLIGHT_SWAP)
		r = capture_by_swap(f);
	else if (r >= 0)
		r = parallel_run(f->n_cpus, f->params.threads, capture_taken, f);
	return r < 0 ? r : parallel_run(g->n, g->n, fill_taken, g);
}
