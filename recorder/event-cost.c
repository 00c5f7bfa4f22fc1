/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/now.h"
#include "recorder/event-cost.h"
#include "recorder/instance.h"

/* A batch is short, so that most of them see no interrupt; of a round the fastest one counts */
#define CALLS	250U
#define BATCHES 8U
/* Rounds alternate, as clock rates and neighbours of virtual machines change; the median counts */
#define ROUNDS 7U

#define EXIT_ENABLE "events/raw_syscalls/sys_exit/enable"

struct event_cost {
	struct trace_config config;
	struct trace_event events[2];
	struct instance *instance;
};

int event_cost_free(struct event_cost *cost, struct fault *why)
{
	int r = 0;

	if (!cost)
		return 0;
	r = instance_destroy(cost->instance, why);
	free(cost);
	return r;
}

int event_cost_new(const char *name, struct event_cost **ret, struct fault *why)
{
	struct event_cost *cost = calloc(1, sizeof(*cost));
	struct fault inner;
	int r;

	if (!cost)
		return fault_errno(why, -ENOMEM, "cannot measure what an event costs");
	cost->events[0] =
		(struct trace_event){.system = (char *)"raw_syscalls", .name = (char *)"sys_enter"};
	cost->events[1] =
		(struct trace_event){.system = (char *)"raw_syscalls", .name = (char *)"sys_exit"};
	cost->config = (struct trace_config){
		.events = cost->events,
		.n_events = ARRAY_SIZE(cost->events),
		.clock = (char *)"mono",
		.buffer_size = 64 * KIB,
		.buffer_percent = 100,
	};
	r = instance_remove(name, &inner);
	if (r >= 0)
		r = instance_create(name, name, &cost->config, &cost->instance, &inner);
	if (r < 0) {
		(void)event_cost_free(cost, NULL);
		return fault_set(why, r, "cannot measure what an event costs: %s", inner.text);
	}
	*ret = cost;
	return 0;
}

/* Nanoseconds of the fastest batch */
static uint64_t fastest(void)
{
	uint64_t best = UINT64_MAX;

	for (unsigned batch = 0; batch < BATCHES; batch++) {
		uint64_t begin = now_nsec(CLOCK_MONOTONIC);

		for (unsigned i = 0; i < CALLS; i++)
			(void)syscall(SYS_getppid);
		best = MIN(best, now_nsec(CLOCK_MONOTONIC) - begin);
	}
	return best;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int measure(int dir_fd, double *ret)
{
	double rounds[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t both, one;
		int r = io_write_string_at(dir_fd, EXIT_ENABLE, "1", 0);

		if (r < 0)
			return r;
		both = fastest();
		r = io_write_string_at(dir_fd, EXIT_ENABLE, "0", 0);
		if (r < 0)
			return r;
		one = fastest();
		rounds[i] = ((double)both - (double)one) / CALLS;
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
	*ret = rounds[ROUNDS / 2];
	return 0;
}

/* Events that came into the ring buffer, of all CPUs */
static uint64_t count(const struct instance *instance)
{
	uint64_t events = 0;

	for (unsigned cpu = 0; cpu < instance_n_cpus(instance); cpu++) {
		struct cpu_stats stats;

		if (instance_read_stats(instance, cpu, &stats) >= 0)
			events += stats.entries + stats.overrun;
	}
	return events;
}

int event_cost_measure(const struct event_cost *cost, double *ret_nsec, struct fault *why)
{
	/* twice sys_enter, once sys_exit */
	const uint64_t least = (uint64_t)ROUNDS * BATCHES * CALLS * 3;
	int dir_fd = instance_dir_fd(cost->instance);
	double nsec = 0;
	char tid[24];
	int r;

	(void)snprintf(tid, sizeof(tid), "%ld", syscall(SYS_gettid));
	/* the first of these waits for the kernel, some hundredths of a second */
	r = io_write_string_at(dir_fd, "set_event_pid", tid, 0);
	if (r >= 0)
		r = io_write_string_at(dir_fd, "tracing_on", "1", 0);
	if (r >= 0)
		r = measure(dir_fd, &nsec);
	if (r < 0)
		return fault_errno(why, r, "cannot measure what an event costs");
	/* set_event_pid goes by the thread's number outside of all containers, which none of them
	 * can know */
	if (count(cost->instance) < least)
		return fault_set(
			why, -EOPNOTSUPP,
			"cannot measure what an event costs: no event of flyrecd's own came, as "
			"in a container with process IDs of its own");
	if (nsec <= 0)
		return fault_set(why, -ERANGE,
				 "cannot measure what an event costs: the machine was too busy");
	*ret_nsec = nsec;
	return 0;
}
