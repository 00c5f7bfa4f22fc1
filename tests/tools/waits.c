/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waits KIND FROM TO COUNT [PAUSE [DEVICE]] - be slow COUNT times, for FROM to TO microseconds,
 * evenly spread, PAUSE (5000) apart, under the name of its file. Prints how long each took,
 * measured from outside.
 *
 *   sleep     in clock_nanosleep(2)
 *   blocked   in D state: a parent waits so for the child of vfork(2)
 *   runqueue  runnable, and a real-time task has CPU 0, where both are
 *   block     a request to DEVICE, a loop device that is done by a worker, and real-time tasks have
 * all CPUs
 */
#include <err.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_usec(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_usec(uint64_t usec)
{
	const struct timespec t = {(time_t)(usec / 1000000), (long)(usec % 1000000) * 1000};

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static uint64_t wait_asleep(uint64_t usec)
{
	uint64_t begin = now_usec();

	sleep_usec(usec);
	return now_usec() - begin;
}

static uint64_t wait_blocked(uint64_t usec)
{
	uint64_t begin = now_usec(), took;
	pid_t pid = vfork();

	if (pid == 0) {
		sleep_usec(usec);
		_exit(0);
	}
	took = now_usec() - begin;
	(void)waitpid(pid, NULL, 0);
	return took;
}

static struct {
	sem_t hog, victim;
	uint64_t usec, begin;
	int schedstat;	/* the victim's */
	uint64_t turns; /* of the victim on the CPU, when the hog began */
} both;

static uint64_t victim_turns(void)
{
	char text[64] = "";
	unsigned long long turns;

	if (pread(both.schedstat, text, sizeof(text) - 1, 0) < 0 ||
	    sscanf(text, "%*u %*u %llu", &turns) != 1)
		err(1, "schedstat");
	return turns;
}

static void *hog_main(void *userdata)
{
	const struct sched_param fifo = {.sched_priority = 10};

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo) != 0)
		errx(77, "no real-time priority here");
	for (;;) {
		(void)sem_wait(&both.hog);
		sleep_usec(1000); /* whoever asked waits to be woken by then */
		both.turns = victim_turns();
		both.begin = now_usec();
		(void)sem_post(&both.victim);
		while (now_usec() - both.begin < both.usec)
			;
	}
}

/* In one piece: a kernel that does not let real-time tasks have all of a CPU may have given it a
 * turn in between, and that makes two waits of one */
static uint64_t wait_for_cpu(uint64_t usec)
{
	uint64_t took;

	both.usec = usec;
	do {
		(void)sem_post(&both.hog);
		(void)sem_wait(&both.victim);
		took = now_usec() - both.begin;
	} while (victim_turns() != both.turns + 1);
	return took;
}

static void begin_hog(void)
{
	pthread_t hog;
	char name[16];
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) < 0)
		err(77, "CPU 0");
	(void)sem_init(&both.hog, 0, 0);
	(void)sem_init(&both.victim, 0, 0);
	both.schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (both.schedstat < 0)
		err(1, "schedstat");
	/* its clone has the name that is there by then */
	(void)prctl(PR_GET_NAME, name);
	(void)prctl(PR_SET_NAME, "hog");
	if (pthread_create(&hog, NULL, hog_main, NULL) != 0)
		errx(1, "no thread");
	(void)prctl(PR_SET_NAME, name);
}

static struct {
	int fd, cpus;
	aio_context_t aio;
	volatile unsigned turn;	 /* all CPUs are taken once in each */
	volatile uint64_t until; /* then */
	volatile int there;
} disk;

static void take_cpu(int i)
{
	const struct sched_param fifo = {.sched_priority = 10};
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(i, &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) < 0 ||
	    pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo) != 0)
		errx(77, "no real-time priority on CPU %d here", i);
}

static void *taker_main(void *userdata)
{
	take_cpu((int)(intptr_t)userdata);
	for (unsigned turn = 0;; turn++) {
		while (disk.turn == turn)
			sleep_usec(100);
		(void)__atomic_add_fetch(&disk.there, 1, __ATOMIC_SEQ_CST);
		while (now_usec() < disk.until)
			;
		(void)__atomic_sub_fetch(&disk.there, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static uint64_t wait_for_disk(uint64_t usec)
{
	static _Alignas(4096) char page[4096];
	struct iocb request = {.aio_fildes = (uint32_t)disk.fd,
			       .aio_lio_opcode = IOCB_CMD_PREAD,
			       .aio_buf = (uintptr_t)page,
			       .aio_nbytes = sizeof(page)};
	struct iocb *requests[] = {&request};
	struct io_event event;
	uint64_t begin;

	while (disk.there > 0)
		sleep_usec(100);
	disk.until = UINT64_MAX;
	disk.turn++;
	while (disk.there < disk.cpus - 1)
		;
	begin = now_usec();
	if (syscall(SYS_io_submit, disk.aio, 1L, requests) != 1)
		err(1, "io_submit");
	disk.until = begin + usec;
	while (now_usec() < begin + usec)
		;
	if (syscall(SYS_io_getevents, disk.aio, 1L, 1L, &event, NULL) != 1 ||
	    event.res != sizeof(page))
		errx(1, "a request failed");
	return now_usec() - begin;
}

static void begin_disk(const char *device)
{
	pthread_t taker;

	disk.fd = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (disk.fd < 0 || syscall(SYS_io_setup, 1, &disk.aio) < 0)
		err(1, "%s", device);
	disk.cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 1; i < disk.cpus; i++)
		if (pthread_create(&taker, NULL, taker_main, (void *)(intptr_t)i) != 0)
			errx(1, "no thread");
	take_cpu(0);
}

int main(int argc, char **argv)
{
	uint64_t (*wait)(uint64_t usec) = wait_asleep;
	uint64_t from, to, count, pause;

	if (argc < 5)
		errx(2, "usage: waits sleep|blocked|runqueue|block FROM TO COUNT [PAUSE [DEVICE]]");
	from = strtoull(argv[2], NULL, 10);
	to = strtoull(argv[3], NULL, 10);
	count = strtoull(argv[4], NULL, 10);
	pause = argc > 5 ? strtoull(argv[5], NULL, 10) : 5000;
	(void)prctl(PR_SET_TIMERSLACK, 1);
	if (strcmp(argv[1], "blocked") == 0)
		wait = wait_blocked;
	else if (strcmp(argv[1], "runqueue") == 0)
		wait = wait_for_cpu;
	else if (strcmp(argv[1], "block") == 0)
		wait = wait_for_disk;
	if (wait == wait_for_cpu)
		begin_hog();
	if (wait == wait_for_disk)
		begin_disk(argc > 6 ? argv[6] : "");
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t usec = count > 1 ? from + (to - from) * i / (count - 1) : from;

		printf("%llu\n", (unsigned long long)wait(usec));
		(void)fflush(stdout);
		/* not in the system call that is looked for, as far as this goes */
		if (pause > 0)
			sleep_usec(pause);
	}
	return 0;
}
