/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared parts of the test tools, see common.h.
 */
#include "tests/tools/common.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static unsigned int cpus_allowed(int *cpus)
{
	cpu_set_t set;
	unsigned int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		err(2, "sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	}
	return n;
}

unsigned int cpus_parse(const char *list, int **ret_cpus)
{
	int *cpus = calloc(CPU_SETSIZE, sizeof(int));
	unsigned int n = 0;

	if (!cpus)
		err(2, "calloc");
	*ret_cpus = cpus;
	if (!list)
		return cpus_allowed(cpus);

	for (const char *p = list;;) {
		unsigned int from, to;
		int used = 0;

		if (sscanf(p, "%u-%u%n", &from, &to, &used) != 2 || !used) {
			if (sscanf(p, "%u%n", &from, &used) != 1)
				errx(2, "Not a CPU list: %s", list);
			to = from;
		}
		if (to < from || to >= CPU_SETSIZE || n + (to - from) >= CPU_SETSIZE)
			errx(2, "Not a CPU list: %s", list);
		while (from <= to)
			cpus[n++] = (int)from++;
		p += used;
		if (!*p)
			return n;
		if (*p++ != ',')
			errx(2, "Not a CPU list: %s", list);
	}
}

int pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

uint64_t number_parse(const char *what, const char *text)
{
	uint64_t n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		errx(2, "--%s: not a number: %s", what, text);
	return n;
}

uint64_t seconds_parse(const char *what, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !isfinite(seconds) || seconds < 0 || seconds > 1e9)
		errx(2, "--%s: not a time in seconds: %s", what, text);
	return (uint64_t)(seconds * (double)NSEC_PER_SEC);
}

uint64_t now_nsec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
}

void stop_signals_block(void)
{
	sigset_t set;

	stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void stop_wait(uint64_t nsec, const unsigned int *running)
{
	uint64_t end = now_nsec() + nsec;
	sigset_t set;

	stop_signals(&set);
	while (__atomic_load_n(running, __ATOMIC_ACQUIRE)) {
		uint64_t left = 20 * 1000 * NSEC_PER_USEC;
		struct timespec ts;

		if (nsec) {
			uint64_t now = now_nsec();

			if (now >= end)
				return;
			left = MIN(left, end - now);
		}
		ts = (struct timespec){.tv_nsec = (long)left};
		if (sigtimedwait(&set, NULL, &ts) > 0)
			return;
	}
}

void ranges_read(const char *path,
		 void (*each)(unsigned int cpu, uint64_t first, int64_t last, void *data),
		 void *data)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	unsigned int lines = 0;

	if (!f)
		err(2, "Cannot open %s", path);
	while (getline(&line, &size, f) > 0) {
		unsigned int cpu;
		uint64_t first;
		int64_t last;

		if (sscanf(line, "cpu=%u first=%" SCNu64 " last=%" SCNd64, &cpu, &first, &last) !=
		    3)
			errx(2, "%s: not a line of `markers`: %s", path, line);
		each(cpu, first, last, data);
		lines++;
	}
	if (!lines)
		errx(2, "%s: empty; did `markers` end?", path);
}
