/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Out of the kernel's ring buffer. Runs as a job; CPUs in parallel.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/flight-internal.h"
#include "engine/parallel.h"
#include "recorder/ring-header.h"

#define CHUNK_MAX     (4 * MIB) /* bytes written to the disk at a time */
#define HEAD_SIZE     (2 * MIB) /* copied of each CPU before anything else is done */
#define HEAD_MAX      (8 * MIB) /* and before it is looked through */
#define CPUS_A_THREAD 4U

/*
 * Of a ring buffer, how much the copy has to be ahead of the kernel before it waits for the disk.
 * Not all that Memory= allows: to touch new memory costs several times what the copy itself does,
 * and that is CPU time of what is traced.
 */
#define LEAD_DIVISOR 4

/*
 * The kernel counts events, without headers, rounds up, and adds a sub-buffer for the reader; what
 * is read while it is written comes in two
 */
#define SUBBUFS_BEYOND 3

void flight_drop(struct flight *f)
{
	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++) {
		struct flight_cpu *c = &f->cpus[cpu];

		ring_copy_close(&c->copy);
		/* The kernel may have it when it wants it; else the next capture has no faults */
		if (c->buffer)
			(void)madvise(c->memory, c->memory_size, MADV_FREE);
		*c = (struct flight_cpu){
			.counts = c->counts, .memory = c->memory, .memory_size = c->memory_size};
	}
}

static void drop_memory(struct flight_cpu *c)
{
	if (c->memory)
		(void)munmap(c->memory, c->memory_size);
	c->memory = NULL;
}

void flight_drop_memory(struct flight *f)
{
	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++)
		drop_memory(&f->cpus[cpu]);
}

size_t flight_left(const struct flight *f, const struct flight_cpu *c)
{
	return f->method == FLIGHT_MAPPED ? ring_copy_left(&c->copy) : c->end - c->next;
}

size_t flight_ring_subbufs(const struct flight *f)
{
	uint64_t room = f->subbuf_size - DATA_AT;

	return (size_t)((f->params.buffer_size + room - 1) / room) + SUBBUFS_BEYOND;
}

bool flight_is_ahead(const struct flight *f, struct flight_cpu *c)
{
	return f->method != FLIGHT_MAPPED || ring_copy_lead(&c->copy) >= c->lead;
}

int flight_fill(struct flight *f, struct flight_cpu *c, char *to, size_t max, size_t *ret_n)
{
	size_t n = 0;
	int r = 0;

	if (f->method == FLIGHT_MAPPED) {
		*ret_n = ring_copy_fill(&c->copy, to, max);
		return 0;
	}
	for (; n < max && c->next < c->end && r >= 0; n++)
		r = carry_read(f->carry, &c->items[c->next++], to + n * f->subbuf_size);
	*ret_n = n;
	return r;
}

static int provide_memory(struct flight_cpu *c, size_t size)
{
	void *p;

	if (c->memory && c->memory_size == size)
		return 0;
	drop_memory(c);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	(void)madvise(p, size, MADV_HUGEPAGE); /* fewer faults: time counts here */
	c->memory = p;
	c->memory_size = size;
	return 0;
}

static size_t find_share(const struct flight *f)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	size_t share = f->params.memory / (uint64_t)MAX(online, 1L) / f->subbuf_size;

	return MIN(MAX(share, (size_t)1), flight_ring_subbufs(f));
}

/* The share; no more than there is to copy */
static int allocate(struct flight *f, struct flight_cpu *c)
{
	size_t left = c->n + flight_left(f, c), share = f->share;
	int r = provide_memory(c, share * f->subbuf_size);

	if (r < 0)
		return r;
	share = MIN(share, left);
	c->chunk = MAX(MIN(CHUNK_MAX / f->subbuf_size, (share + 7) / 8), (size_t)1);
	c->lead = left / LEAD_DIVISOR;
	/* Whole chunks where they are to be filled again */
	if (share < left)
		share = share / c->chunk * c->chunk;
	c->buffer_size = share * f->subbuf_size;
	c->buffer = c->memory;
	return 0;
}

/* --- the CPUs of one thread, in turn, so that each is ahead of its writer soon */

#define STEP_SIZE MIB /* bytes of a CPU before it is the next one's turn */

static int fill_step(struct flight *f, struct flight_cpu *c)
{
	size_t total = c->buffer_size / f->subbuf_size, n = 0;
	size_t until = MIN(c->n + MAX(STEP_SIZE / f->subbuf_size, (size_t)1), total);
	int r;

	if (f->method == FLIGHT_MAPPED) {
		ring_copy_begin(&c->copy, c->buffer, &c->n, until);
		return 0;
	}
	r = flight_fill(f, c, c->buffer + c->n * f->subbuf_size, until - c->n, &n);
	c->n += n;
	return r;
}

/* As much as will be written and filled again, chunk by chunk */
static bool has_enough(const struct flight *f, struct flight_cpu *c)
{
	if (c->n * f->subbuf_size >= c->buffer_size || flight_left(f, c) == 0)
		return true;
	return c->n > 0 && c->n % c->chunk == 0 && flight_is_ahead(f, c);
}

int flight_fill_group(struct flight_group *g, unsigned group)
{
	struct flight *f = g->flight;
	bool more = true;
	int r = 0;

	for (unsigned cpu = group; cpu < f->n_cpus; cpu += g->n) {
		struct flight_cpu *c = &f->cpus[cpu];

		if (c->n + flight_left(f, c) > 0 && allocate(f, c) < 0)
			return flight_fault(f, -ENOMEM, "cannot copy CPU %u's ring buffer", cpu);
	}
	while (more) {
		more = false;
		for (unsigned cpu = group; cpu < f->n_cpus; cpu += g->n) {
			struct flight_cpu *c = &f->cpus[cpu];

			if (has_enough(f, c))
				continue;
			more = true;
			r = fill_step(f, c);
			if (r < 0)
				return flight_fault(f, r, "cannot copy CPU %u's ring buffer", cpu);
		}
	}
	/* Unmapped as soon as all of it is in memory */
	for (unsigned cpu = group; cpu < f->n_cpus; cpu += g->n)
		if (f->method == FLIGHT_MAPPED && flight_left(f, &f->cpus[cpu]) == 0)
			ring_copy_close(&f->cpus[cpu].copy);
		else
			f->cpus[cpu].copy.handed_out = f->cpus[cpu].n;
	return 0;
}

/* --- mapped */

/* Does it overwrite, or may it? */
static bool is_overrun(const struct flight_cpu *c)
{
	return c->stats.overrun > 0 || !c->has_stats;
}

/* No more than half of it: there is the list for the rest */
static void copy_head(const struct flight *f, struct flight_cpu *c, size_t size)
{
	size_t most = MIN(f->share, flight_ring_subbufs(f) / 2);

	ring_copy_head(&c->copy, c->memory, MIN(most, size / f->subbuf_size), &c->n);
}

static int open_mapped(void *userdata, unsigned cpu)
{
	struct flight *f = userdata;
	struct flight_cpu *c = &f->cpus[cpu];
	_cleanup_close_ int fd = -EBADF;
	int r;

	r = instance_open_cpu(f->params.instance, cpu, &fd, NULL);
	if (r < 0)
		return flight_fault(f, r, "cannot open CPU %u's trace_pipe_raw", cpu);
	r = ring_copy_open(fd, f->subbuf_size, &c->copy);
	if (r == -EINVAL) /* a CPU that was never there has no ring buffer */
		return 0;
	if (r >= 0)
		r = provide_memory(c, f->share * f->subbuf_size);
	if (r >= 0)
		r = ring_copy_map(&c->copy, fd, HEAD_SIZE / f->subbuf_size + 2);
	if (r >= 0)
		copy_head(f, c, HEAD_SIZE);
	return r < 0 ? flight_fault(f, r, "cannot map CPU %u's ring buffer", cpu) : 0;
}

static int list_mapped(struct flight *f, unsigned cpu)
{
	struct flight_cpu *c = &f->cpus[cpu];
	_cleanup_close_ int fd = -EBADF;
	int r;

	c->has_stats = instance_read_stats(f->params.instance, cpu, &c->stats) >= 0;
	if (!c->copy.map.meta)
		return 0;
	r = instance_open_cpu(f->params.instance, cpu, &fd, NULL);
	if (r >= 0)
		r = ring_copy_map(&c->copy, fd, SIZE_MAX);
	if (r >= 0)
		copy_head(f, c, HEAD_MAX);
	if (r >= 0)
		r = ring_copy_list(&c->copy, is_overrun(c));
	if (r < 0)
		return flight_fault(f, r, "cannot map CPU %u's ring buffer", cpu);
	ring_copy_range(&c->copy, f->from_nsec, f->to_nsec);
	ring_copy_join(&c->copy, &c->n);
	return 0;
}

static int copy_mapped(void *userdata, unsigned group)
{
	struct flight_group *g = userdata;
	int r = 0;

	for (unsigned cpu = group; cpu < g->flight->n_cpus && r >= 0; cpu += g->n)
		r = list_mapped(g->flight, cpu);
	return r < 0 ? r : flight_fill_group(g, group);
}

/* The first step has no time to lose on any CPU; in the second one few threads disturb less */
static int capture_by_mapping(struct flight_group *g)
{
	struct flight *f = g->flight;
	int r = parallel_run(f->n_cpus, f->params.threads, open_mapped, f);

	return r < 0 ? r : parallel_run(g->n, g->n, copy_mapped, g);
}

/*
 * Ahead of everybody else, for the milliseconds it takes: each one that we wait the oldest events
 * are overwritten, by the very load that makes us wait. Threads that are started meanwhile inherit
 * it. Where it is not allowed (as by our unit) it goes without.
 */
void flight_hurry(bool on)
{
	const struct sched_param param = {.sched_priority = on ? 1 : 0};

	(void)pthread_setschedparam(pthread_self(), on ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* As few threads as do it: they take CPUs away from what is traced */
static unsigned count_groups(const struct flight *f)
{
	unsigned wanted = (f->n_cpus + CPUS_A_THREAD - 1) / CPUS_A_THREAD;

	return MAX(MIN(wanted, f->params.threads), 1U);
}

int flight_capture(struct flight *f, uint64_t from_nsec, uint64_t to_nsec, struct fault *why)
{
	struct flight_group g = {f, count_groups(f)};
	size_t n = 0;
	int r;

	*why = (struct fault){0};
	f->why = why;
	f->from_nsec = from_nsec;
	f->to_nsec = to_nsec;
	f->swap_failed = f->taken = false;
	f->share = find_share(f);
	flight_hurry(true);
	r = f->method == FLIGHT_MAPPED ? capture_by_mapping(&g) : flight_take(&g);
	flight_hurry(false);
	f->why = NULL;
	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++)
		n += f->cpus[cpu].n;
	if (r < 0 && why->error == 0)
		return fault_errno(why, r, "cannot copy the ring buffer");
	if (r >= 0 && n == 0)
		return fault_set(why, -ENODATA, "nothing was recorded in that time");
	return r;
}
