/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * incident - what makes a machine slow, each task with a name of its own, for analyses that are to
 * find out who it was; for machines that have no other language than the shell.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tools/common.h"

static const char help[] =
	"incident victim CPU MS WORK  wakes up all 5 ms and works WORK ms, until MS are over or\n"
	"                             SIGTERM\n"
	"incident hog CPU MS          \"fifo-hog\", a real-time task, does not let go of the CPU\n"
	"incident quota CPU MS PROCS  \"limited\" writes itself to PROCS, then works MS\n"
	"incident storm CPU N         \"stormer\" forks N times 48 tasks that work 8 ms each\n"
	"incident fsync DIR N         N \"writer\" write 2 MB to files there and sync them, thrice\n"
	"incident write DEVICE        \"reader\" writes 4 KiB synchronously\n"
	"incident vfork MS            \"parent\" waits for \"slow-child\", which sleeps\n"
	"incident flood CPU MS        \"flooder\" sends packets to itself\n"
	"incident eat MB PROCS        \"eater\" writes itself to PROCS and takes memory\n";

static void be(const char *name, int cpu)
{
	(void)prctl(PR_SET_NAME, name);
	if (cpu >= 0 && pin_to_cpu(cpu) < 0)
		err(1, "cannot run on CPU %d", cpu);
}

/* By the task's own clock */
static void work(uint64_t msec)
{
	struct timespec ts;
	uint64_t end, now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	end = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec + msec * 1000000;
	do {
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	} while (now < end);
}

static void rest(uint64_t msec)
{
	const struct timespec ts = {(time_t)(msec / 1000), (long)(msec % 1000 * 1000000)};

	(void)nanosleep(&ts, NULL);
}

static void write_zero(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) < 0)
		err(1, "%s", path);
	close(fd);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	return pid;
}

static void reap(void)
{
	while (wait(NULL) >= 0)
		;
}

static void victim(int cpu, uint64_t msec, uint64_t own)
{
	uint64_t end = now_nsec() + msec * 1000000;

	be("victim", cpu);
	while (now_nsec() < end) {
		rest(5);
		work(own);
	}
}

static void hog(int cpu, uint64_t msec)
{
	const struct sched_param param = {.sched_priority = 50};

	be("fifo-hog", cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &param) < 0)
		err(1, "SCHED_FIFO");
	work(msec);
}

static void storm(int cpu, uint64_t n)
{
	be("stormer", cpu);
	for (uint64_t i = 0; i < n; i++) {
		for (int k = 0; k < 48; k++) {
			if (child() == 0) {
				work(8);
				_exit(0);
			}
		}
		reap();
	}
}

static void write_and_sync(const char *dir, uint64_t i)
{
	static char bytes[2 << 20];
	char path[256];
	int fd;

	be("writer", -1);
	(void)snprintf(path, sizeof(path), "%s/%d", dir, (int)i);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (int k = 0; k < 3; k++)
		if (fd < 0 || write(fd, bytes, sizeof(bytes)) < 0 || fsync(fd) < 0)
			err(1, "%s", path);
	_exit(0);
}

static void convoy(const char *dir, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (child() == 0)
			write_and_sync(dir, i);
	reap();
}

static void write_once(const char *device)
{
	int fd = open(device, O_WRONLY | O_SYNC | O_CLOEXEC);
	static const char bytes[4096];

	be("reader", -1);
	if (fd < 0 || write(fd, bytes, sizeof(bytes)) < 0)
		err(1, "%s", device);
}

/* As vfork() does, but in a memory of its own, so that it may do more than exec */
static void wait_for_child(uint64_t msec)
{
	be("parent", -1);
	if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
		(void)prctl(PR_SET_NAME, "slow-child");
		rest(msec);
		_exit(0);
	}
	reap();
}

static void flood(int cpu, uint64_t msec)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(9),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t end = now_nsec() + msec * 1000000;
	static const char bytes[60000];

	be("flooder", cpu);
	while (now_nsec() < end)
		(void)sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to, sizeof(to));
	close(fd);
}

static void eat(uint64_t mb, const char *procs)
{
	size_t size = mb << 20;
	char *bytes;

	be("eater", -1);
	write_zero(procs);
	write_zero("/proc/self/oom_score_adj");
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; bytes != MAP_FAILED && i < size; i += 4096)
		bytes[i] = 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t first = 0, second = 0;

	if (argc < 3) {
		(void)fputs(help, argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
		return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	if (strcmp(what, "fsync") != 0 && strcmp(what, "write") != 0)
		first = number_parse("number", argv[2]);
	if (argc > 3 && strcmp(what, "eat") != 0)
		second = number_parse("number", argv[3]);
	if (strcmp(what, "victim") == 0)
		victim((int)first, second, argc > 4 ? number_parse("work", argv[4]) : 0);
	else if (strcmp(what, "hog") == 0)
		hog((int)first, second);
	else if (strcmp(what, "quota") == 0 && argc == 5) {
		be("limited", (int)first);
		write_zero(argv[4]);
		work(second);
	} else if (strcmp(what, "storm") == 0)
		storm((int)first, second);
	else if (strcmp(what, "fsync") == 0)
		convoy(argv[2], second);
	else if (strcmp(what, "write") == 0)
		write_once(argv[2]);
	else if (strcmp(what, "vfork") == 0)
		wait_for_child(first);
	else if (strcmp(what, "flood") == 0)
		flood((int)first, second);
	else if (strcmp(what, "eat") == 0 && argc == 4)
		eat(first, argv[3]);
	else
		errx(2, "%s: not understood", what);
	return 0;
}
