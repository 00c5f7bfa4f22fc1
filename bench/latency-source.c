/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * latency-source DIR [MIB] - how OnLatency= could see what a record session writes: CPU seconds for
 * a GB of
 *
 *   pipe      splice through a pipe to /dev/null, which all the others have, too, and is taken off
 *   tee       a second pipe gets the same by tee(2), and is read
 *   buffered  what was written past the page cache is read through it, 256 KiB at a time
 *   direct    likewise, past it
 *
 * in five rounds of MIB (512) each, the median. Files in DIR. CPU time is that of this process:
 * interrupts of the disk are not in it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PIPE   (1 << 20)
#define BLOCK  (256 << 10)
#define ROUNDS 5

static char *memory; /* PIPE bytes */
static size_t total;

static double cpu_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void make_pipe(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC) < 0 || fcntl(fds[1], F_SETPIPE_SZ, PIPE) < 0)
		err(1, "pipe");
}

static double through_pipes(bool both)
{
	int first[2], second[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	static char block[PIPE];
	double begin;

	make_pipe(first);
	make_pipe(second);
	begin = cpu_seconds();
	for (size_t done = 0; done < total; done += PIPE) {
		struct iovec iov = {memory, PIPE};

		if (vmsplice(first[1], &iov, 1, 0) != PIPE)
			err(1, "vmsplice");
		if (both && tee(first[0], second[1], PIPE, SPLICE_F_NONBLOCK) != PIPE)
			err(1, "tee");
		for (ssize_t n = 0, m; n < PIPE; n += m) {
			m = splice(first[0], NULL, null, NULL, (size_t)(PIPE - n), SPLICE_F_MOVE);
			if (m <= 0)
				err(1, "splice");
		}
		for (ssize_t n = 0, m; both && n < PIPE; n += m) {
			m = read(second[0], block, BLOCK);
			if (m <= 0)
				err(1, "read");
		}
	}
	begin = cpu_seconds() - begin;
	close(first[0]);
	close(first[1]);
	close(second[0]);
	close(second[1]);
	close(null);
	return begin;
}

static double from_disk(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600), in;
	double begin;

	if (fd < 0)
		err(1, "%s", path);
	for (size_t done = 0; done < total; done += PIPE)
		if (pwrite(fd, memory, PIPE, (off_t)done) != PIPE)
			err(1, "%s", path);
	in = open(path, O_RDONLY | O_CLOEXEC | flags);
	if (in < 0)
		err(1, "%s", path);
	begin = cpu_seconds();
	for (size_t done = 0; done < total; done += BLOCK)
		if (pread(in, memory, BLOCK, (off_t)done) != BLOCK)
			err(1, "%s", path);
	begin = cpu_seconds() - begin;
	close(in);
	close(fd);
	(void)unlink(path);
	return begin;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"pipe", "tee", "buffered", "direct"};
	double figures[4][ROUNDS];
	char path[4096];

	if (argc < 2)
		errx(2, "usage: latency-source DIR [MIB]");
	(void)snprintf(path, sizeof(path), "%s/latency-source", argv[1]);
	total = (argc > 2 ? strtoull(argv[2], NULL, 10) : 512) << 20;
	memory = mmap(NULL, PIPE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "memory");
	memset(memory, 'x', PIPE);
	for (unsigned i = 0; i < ROUNDS; i++) {
		figures[0][i] = through_pipes(false);
		figures[1][i] = through_pipes(true);
		figures[2][i] = from_disk(path, 0);
		figures[3][i] = from_disk(path, O_DIRECT);
	}
	for (unsigned k = 0; k < 4; k++)
		qsort(figures[k], ROUNDS, sizeof(double), compare);
	for (unsigned k = 0; k < 4; k++)
		printf("%-9s %.3f\n", names[k],
		       (figures[k][ROUNDS / 2] - (k == 1 ? figures[0][ROUNDS / 2] : 0)) /
			       ((double)total / 1e9));
	return 0;
}
