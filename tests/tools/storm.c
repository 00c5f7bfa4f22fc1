/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * storm - call getppid() on each CPU as fast as possible or at a steady rate: load for raw_syscalls
 * events. Prints how many calls each CPU made and how fast.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/tools/common.h"

/* With --rate the calls of so long a time are made in one go; one more call, the sleep, follows */
#define SLOT_NSEC  (NSEC_PER_SEC / 1000)
#define LATE_SLOTS 20U

struct load {
	pthread_t thread;
	int cpu;
	int error;
	uint64_t count;	  /* wanted */
	uint64_t rate;	  /* calls a second, 0: as fast as possible */
	uint64_t calls;	  /* made */
	uint64_t skipped; /* too late for them */
	uint64_t nsec;
	unsigned int *running;
};

static bool stop;

static const char help[] =
	"storm [--cpus=LIST] [--count=N] [--rate=N] [--duration=SEC]\n"
	"Calls getppid() on each CPU, N times or until SEC are over or SIGTERM, as fast as\n"
	"possible or N times a second; prints calls and calls a second.\n";

/*
 * How many calls are due? At a steady rate it waits for the next ones. Late ones are made up for,
 * but not those of a long time in which others had the CPU: that would be as fast as possible for
 * as long.
 */
static uint64_t next_batch(struct load *load, uint64_t begin)
{
	uint64_t left = load->count - load->calls, slot, due, late;
	struct timespec ts;

	if (!load->rate)
		return MIN(left, 1000);
	slot = (now_nsec() - begin) / SLOT_NSEC + 1;
	due = (uint64_t)((double)slot * SLOT_NSEC / NSEC_PER_SEC * (double)load->rate);
	due -= load->calls + load->skipped;
	late = LATE_SLOTS * load->rate / (NSEC_PER_SEC / SLOT_NSEC) + 1;
	if (due > late) {
		load->skipped += due - late;
		due = late;
	}
	if (due > 0)
		return MIN(left, MIN(due, 1000));
	ts.tv_sec = (time_t)((begin + slot * SLOT_NSEC) / NSEC_PER_SEC);
	ts.tv_nsec = (long)((begin + slot * SLOT_NSEC) % NSEC_PER_SEC);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	return 0;
}

static void *load_thread(void *data)
{
	struct load *load = data;
	uint64_t begin = now_nsec();

	load->error = pin_to_cpu(load->cpu);
	while (load->error == 0 && load->calls < load->count &&
	       !__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint64_t batch = next_batch(load, begin);

		for (uint64_t i = 0; i < batch; i++)
			(void)syscall(SYS_getppid);
		load->calls += batch;
	}
	load->nsec = now_nsec() - begin;
	__atomic_sub_fetch(load->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void print_rate(const char *who, uint64_t calls, uint64_t nsec)
{
	double seconds = (double)nsec / (double)NSEC_PER_SEC;

	printf("%s calls=%" PRIu64 " seconds=%.3f rate=%.0f/s\n", who, calls, seconds,
	       seconds > 0 ? (double)calls / seconds : 0);
}

static int report(const struct load *loads, unsigned int n)
{
	uint64_t calls = 0, nsec = 0;

	for (unsigned int i = 0; i < n; i++) {
		char who[32];

		if (loads[i].error < 0)
			errx(1, "cpu %d: %s", loads[i].cpu, strerror(-loads[i].error));
		snprintf(who, sizeof(who), "cpu=%d", loads[i].cpu);
		print_rate(who, loads[i].calls, loads[i].nsec);
		calls += loads[i].calls;
		nsec = MAX(nsec, loads[i].nsec);
	}
	print_rate("total", calls, nsec);
	return 0;
}

static int storm(const int *cpus, unsigned int n, const struct load *how, uint64_t duration)
{
	_cleanup_free_ struct load *loads = calloc(n, sizeof(*loads));
	unsigned int running = n;

	if (!loads)
		err(2, "calloc");
	stop_signals_block();
	for (unsigned int i = 0; i < n; i++) {
		loads[i] = *how;
		loads[i].cpu = cpus[i];
		loads[i].running = &running;
		errno = pthread_create(&loads[i].thread, NULL, load_thread, &loads[i]);
		if (errno)
			err(2, "pthread_create");
	}
	stop_wait(duration, &running);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(loads[i].thread, NULL);
	return report(loads, n);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"cpus", required_argument, NULL, 'c'}, {"count", required_argument, NULL, 'n'},
		{"rate", required_argument, NULL, 'r'}, {"duration", required_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'},	{}};
	_cleanup_free_ int *cpus = NULL;
	const char *list = NULL;
	struct load how = {.count = UINT64_MAX};
	uint64_t duration = 0;
	unsigned int n;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			list = optarg;
			break;
		case 'n':
			how.count = number_parse("count", optarg);
			break;
		case 'r':
			how.rate = number_parse("rate", optarg);
			break;
		case 'd':
			duration = seconds_parse("duration", optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (optind != argc)
		errx(2, "usage: %s", help);
	n = cpus_parse(list, &cpus);
	return storm(cpus, n, &how, duration);
}
