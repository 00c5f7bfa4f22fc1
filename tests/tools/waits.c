/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waits KIND FROM TO COUNT [PAUSE] - be slow COUNT times, for FROM to TO microseconds, evenly
 * spread, PAUSE (5000) apart, under the name of its file. Prints how long each took, measured from
 * outside.
 *
 *   sleep     in clock_nanosleep(2)
 *   blocked   in D state: a parent waits so for the child of vfork(2)
 *   runqueue  runnable, and a real-time task has CPU 0, where both are
 */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
} both;

static void *hog_main(void *userdata)
{
	const struct sched_param fifo = {.sched_priority = 10};

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo) != 0)
		errx(77, "no real-time priority here");
	for (;;) {
		(void)sem_wait(&both.hog);
		sleep_usec(1000); /* whoever asked waits to be woken by then */
		both.begin = now_usec();
		(void)sem_post(&both.victim);
		while (now_usec() - both.begin < both.usec)
			;
	}
}

static uint64_t wait_for_cpu(uint64_t usec)
{
	both.usec = usec;
	(void)sem_post(&both.hog);
	(void)sem_wait(&both.victim);
	return now_usec() - both.begin;
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
	/* its clone has the name that is there by then */
	(void)prctl(PR_GET_NAME, name);
	(void)prctl(PR_SET_NAME, "hog");
	if (pthread_create(&hog, NULL, hog_main, NULL) != 0)
		errx(1, "no thread");
	(void)prctl(PR_SET_NAME, name);
}

int main(int argc, char **argv)
{
	uint64_t (*wait)(uint64_t usec) = wait_asleep;
	uint64_t from, to, count, pause;

	if (argc < 5)
		errx(2, "usage: waits sleep|blocked|runqueue FROM TO COUNT [PAUSE]");
	from = strtoull(argv[2], NULL, 10);
	to = strtoull(argv[3], NULL, 10);
	count = strtoull(argv[4], NULL, 10);
	pause = argc > 5 ? strtoull(argv[5], NULL, 10) : 5000;
	(void)prctl(PR_SET_TIMERSLACK, 1);
	if (strcmp(argv[1], "blocked") == 0)
		wait = wait_blocked;
	else if (strcmp(argv[1], "runqueue") == 0)
		wait = wait_for_cpu;
	if (wait == wait_for_cpu)
		begin_hog();
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
