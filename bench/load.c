/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * load - do something on each CPU, as often as possible or at a steady rate, and tell how often
 *
 * A worker on each CPU:
 *   calls    getppid()
 *   pairs    a byte to another process on the same CPU, and back, through pipes: two switches
 *   network  the same in datagrams over the loopback interface
 *   compile  a file, the words behind the options being the command
 */
#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tools/common.h"

static const char help[] =
	"load [--rate=N] [--skip=SEC] [--seconds=SEC] calls|pairs|network|compile [COMMAND...]\n"
	"Prints, of the seconds behind those that are skipped: how many a second of all CPUs, and the\n"
	"share of the machine's CPU time that was not idle.\n";

#define BATCHES 200U /* a second, at a steady rate */

extern char **environ;

struct worker {
	volatile uint64_t done; /* the parent reads it */
	pid_t pid, partner;	/* partner: 0 if there is none */
	int in, out;		/* to the partner */
	char *const *command;
	char pad[64];
};

typedef void (*work_t)(struct worker *worker);

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		err(1, "CPU %d", cpu);
}

static pid_t begin_child(int cpu)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid > 0)
		return pid;
	stay_on(cpu);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	return 0;
}

/* --- what is done */

static void call(struct worker *w)
{
	(void)syscall(SYS_getppid);
}

static void send_and_wait(struct worker *w)
{
	char byte = 'x';

	if (write(w->out, &byte, 1) != 1 || read(w->in, &byte, 1) != 1)
		err(1, "partner");
}

static void run_command(struct worker *w)
{
	int status;
	pid_t pid;

	errno = posix_spawnp(&pid, w->command[0], NULL, NULL, w->command, environ);
	if (errno || waitpid(pid, &status, 0) < 0 || status != 0)
		errx(1, "%s does not work", w->command[0]);
}

static pid_t begin_partner(int cpu, int in, int out)
{
	pid_t pid = begin_child(cpu);
	char byte;

	if (pid != 0)
		return pid;
	while (read(in, &byte, 1) == 1 && write(out, &byte, 1) == 1)
		;
	_exit(0);
}

static void pair_by_pipes(struct worker *w, int cpu)
{
	int to[2], from[2];

	if (pipe(to) < 0 || pipe(from) < 0)
		err(1, "pipe");
	w->out = to[1];
	w->in = from[0];
	w->partner = begin_partner(cpu, to[0], from[1]);
}

static int udp_socket(struct sockaddr_in *ret)
{
	socklen_t size = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	*ret = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)ret, sizeof(*ret)) < 0 ||
	    getsockname(fd, (struct sockaddr *)ret, &size) < 0)
		err(1, "socket");
	return fd;
}

static void pair_by_network(struct worker *w, int cpu)
{
	struct sockaddr_in mine, theirs;
	int fd = udp_socket(&mine), partner = udp_socket(&theirs);

	if (connect(fd, (struct sockaddr *)&theirs, sizeof(theirs)) < 0 ||
	    connect(partner, (struct sockaddr *)&mine, sizeof(mine)) < 0)
		err(1, "connect");
	w->in = w->out = fd;
	w->partner = begin_partner(cpu, partner, partner);
}

/* --- how often */

static void wait_until(uint64_t nsec)
{
	const struct timespec until = {(time_t)(nsec / NSEC_PER_SEC), (long)(nsec % NSEC_PER_SEC)};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* @rate: a second; 0: as often as possible */
static void work_on(struct worker *w, work_t work, double rate)
{
	const uint64_t begin = now_nsec();
	const uint64_t batch = rate > BATCHES ? (uint64_t)rate / BATCHES : 1;

	for (;;) {
		for (uint64_t i = 0; i < batch; i++)
			work(w);
		w->done += batch;
		if (rate > 0)
			wait_until(begin + (uint64_t)((double)w->done / rate * NSEC_PER_SEC));
	}
}

/* Clock ticks of all CPUs since boot */
static void read_ticks(uint64_t *ret_all, uint64_t *ret_idle)
{
	FILE *stat = fopen("/proc/stat", "re");
	uint64_t t[8];

	if (!stat || fscanf(stat,
			    "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			    " %" SCNu64 " %" SCNu64 " %" SCNu64,
			    &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
		errx(1, "/proc/stat");
	(void)fclose(stat);
	*ret_all = 0;
	for (unsigned i = 0; i < 8; i++)
		*ret_all += t[i];
	*ret_idle = t[3] + t[4];
}

static uint64_t sum(const struct worker *workers, unsigned n)
{
	uint64_t done = 0;

	for (unsigned i = 0; i < n; i++)
		done += workers[i].done;
	return done;
}

static void measure(const struct worker *workers, unsigned n, double skip, double seconds)
{
	uint64_t begin = now_nsec() + (uint64_t)(skip * NSEC_PER_SEC), done, nsec;
	uint64_t all, idle, all_end, idle_end;

	wait_until(begin);
	begin = now_nsec();
	done = sum(workers, n);
	read_ticks(&all, &idle);
	wait_until(begin + (uint64_t)(seconds * NSEC_PER_SEC));
	nsec = now_nsec() - begin;
	done = sum(workers, n) - done;
	read_ticks(&all_end, &idle_end);
	printf("%.1f %.2f\n", (double)done * NSEC_PER_SEC / (double)nsec,
	       100.0 - 100.0 * (double)(idle_end - idle) / (double)MAX(all_end - all, 1U));
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"rate", required_argument, NULL, 'r'},
						{"skip", required_argument, NULL, 'k'},
						{"seconds", required_argument, NULL, 's'},
						{"help", no_argument, NULL, 'h'},
						{}};
	static const struct {
		const char *name;
		work_t work;
		void (*pair)(struct worker *w, int cpu);
	} kinds[] = {{"calls", call, NULL},
		     {"pairs", send_and_wait, pair_by_pipes},
		     {"network", send_and_wait, pair_by_network},
		     {"compile", run_command, NULL}};
	double rate = 0, skip = 0, seconds = 1;
	struct worker *workers;
	size_t kind = 0;
	int c, n = (int)sysconf(_SC_NPROCESSORS_ONLN);

	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		switch (c) {
		case 'r':
			rate = strtod(optarg, NULL);
			break;
		case 'k':
			skip = strtod(optarg, NULL);
			break;
		case 's':
			seconds = strtod(optarg, NULL);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	while (optind < argc && kind < ARRAY_SIZE(kinds) &&
	       strcmp(argv[optind], kinds[kind].name) != 0)
		kind++;
	if (optind == argc || kind == ARRAY_SIZE(kinds) ||
	    (kinds[kind].work == run_command) != (optind + 1 < argc))
		errx(2, "usage: %s", help);
	workers = mmap(NULL, (size_t)n * sizeof(*workers), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (workers == MAP_FAILED)
		err(1, "mmap");
	(void)setpgid(0, 0); /* all are killed together */
	for (int cpu = 0; cpu < n; cpu++) {
		struct worker *w = &workers[cpu];

		w->command = argv + optind + 1;
		if (kinds[kind].pair)
			kinds[kind].pair(w, cpu);
		w->pid = begin_child(cpu);
		if (w->pid == 0)
			work_on(w, kinds[kind].work, rate);
	}
	measure(workers, (unsigned)n, skip, seconds);
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM);
	while (wait(NULL) > 0)
		;
	return 0;
}
