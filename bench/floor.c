/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * floor [--near|--far] INSTANCE-DIRECTORY - what any reader of a ring buffer by splice(2) must
 * spend: moves each CPU's sub-buffers by reference into a pipe and from there to /dev/null, until
 * SIGTERM or SIGINT, then what is left. One thread that sleeps in epoll; with --near one for each
 * CPU, on that CPU, with --far on the next one. Prints "bytes=N".
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "basic/macro.h"
#include "tests/tools/common.h"

#define PIPE_SIZE MIB /* the default of pipe-max-size */
#define BATCH	  8   /* pipe-fulls of one CPU before the others get their turn */
#define MAX_CPUS  1024

struct cpu {
	int trace_fd;
	int pipe[2];
};

/* What one thread moves */
struct floor {
	pthread_t thread;
	struct cpu *cpus;
	size_t n_cpus;
	int place; /* a CPU; -1: anywhere */
	int epoll_fd, null_fd, signal_fd;
	uint64_t bytes;
};

static bool cpu_open(struct cpu *cpu, const char *instance, size_t n)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/per_cpu/cpu%zu/trace_pipe_raw", instance, n);
	cpu->trace_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (cpu->trace_fd < 0 && errno == ENOENT && n > 0)
		return false;
	if (cpu->trace_fd < 0)
		err(2, "%s", path);
	if (pipe2(cpu->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		err(2, "pipe");
	(void)fcntl(cpu->pipe[1], F_SETPIPE_SZ, (int)PIPE_SIZE);
	return true;
}

/* Returns true if it stopped because of the limit, not for want of full sub-buffers */
static bool move(struct floor *floor, struct cpu *cpu, unsigned limit)
{
	while (limit-- > 0) {
		ssize_t n = splice(cpu->trace_fd, NULL, cpu->pipe[1], NULL, INT32_MAX,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			err(2, "splice from the ring buffer");
		if (n <= 0)
			return false;
		floor->bytes += (uint64_t)n;
		while (n > 0) {
			ssize_t out = splice(cpu->pipe[0], NULL, floor->null_fd, NULL, (size_t)n,
					     SPLICE_F_MOVE);

			if (out <= 0)
				err(2, "splice to /dev/null");
			n -= out;
		}
	}
	return true;
}

/* ONESHOT: a partial sub-buffer keeps the file readable, though splice gives nothing */
static void arm(struct floor *floor, size_t n, int operation, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = n};

	if (epoll_ctl(floor->epoll_fd, operation, fd, &event) < 0)
		err(2, "epoll_ctl");
}

static void run(struct floor *floor)
{
	struct epoll_event events[32];

	for (;;) {
		int n = epoll_wait(floor->epoll_fd, events, ARRAY_SIZE(events), -1);

		for (int i = 0; i < n; i++) {
			size_t cpu = events[i].data.u64;

			if (cpu == MAX_CPUS)
				return;
			(void)move(floor, &floor->cpus[cpu], BATCH);
			arm(floor, cpu, EPOLL_CTL_MOD, floor->cpus[cpu].trace_fd);
		}
	}
}

static void *floor_main(void *userdata)
{
	struct floor *floor = userdata;

	if (floor->place >= 0 && pin_to_cpu(floor->place) != 0)
		warnx("cannot run on CPU %d", floor->place);
	floor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (floor->epoll_fd < 0)
		err(2, "epoll");
	arm(floor, MAX_CPUS, EPOLL_CTL_ADD, floor->signal_fd);
	for (size_t i = 0; i < floor->n_cpus; i++)
		arm(floor, i, EPOLL_CTL_ADD, floor->cpus[i].trace_fd);
	run(floor);
	for (size_t i = 0; i < floor->n_cpus; i++)
		(void)move(floor, &floor->cpus[i], UINT32_MAX);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct cpu cpus[MAX_CPUS];
	static struct floor floors[MAX_CPUS];
	bool near = argc == 3 && strcmp(argv[1], "--near") == 0;
	bool far = argc == 3 && strcmp(argv[1], "--far") == 0;
	const char *instance = argv[argc - 1];
	int null_fd, signal_fd;
	size_t n = 0, n_floors;
	uint64_t bytes = 0;
	sigset_t set;

	if (argc != (near || far ? 3 : 2) || instance[0] == '-')
		errx(2, "usage: floor [--near|--far] INSTANCE-DIRECTORY");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (signal_fd < 0 || null_fd < 0)
		err(2, "signalfd or /dev/null");
	while (n < MAX_CPUS && cpu_open(&cpus[n], instance, n))
		n++;
	n_floors = near || far ? n : 1;
	for (size_t i = 0; i < n_floors; i++) {
		floors[i] = (struct floor){.cpus = &cpus[i],
					   .n_cpus = n / n_floors,
					   .place = near  ? (int)i
						    : far ? (int)((i + 1) % n)
							  : -1,
					   .null_fd = null_fd,
					   .signal_fd = signal_fd};
		if (pthread_create(&floors[i].thread, NULL, floor_main, &floors[i]) != 0)
			errx(2, "cannot start a thread");
	}
	for (size_t i = 0; i < n_floors; i++) {
		(void)pthread_join(floors[i].thread, NULL);
		bytes += floors[i].bytes;
	}
	printf("bytes=%" PRIu64 "\n", bytes);
	return 0;
}
