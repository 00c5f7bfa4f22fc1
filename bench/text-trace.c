/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * text-trace generate LINES - an execution trace as QEMU4V writes it, of about a third each of
 * instructions, memory accesses and register writes, on standard output
 * text-trace tokenize FILE - what any reader of text has to do at least: find lines and words.
 * Prints how many.
 * text-trace run COMMAND... - on one CPU; prints "SECONDS CPU-SECONDS KIB-OF-MEMORY" on standard
 * error. For bench/qemu4v-speed.sh.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "basic/macro.h"

#define BLOCK (512U * 1024)

static int generate(unsigned long n)
{
	static const char *const disasm[] = {
		"lui t0,0x1",
		"addiu sp,sp,-32",
		"ldr      r0,[sp,#8]",
		"b.ne     {pc}-0x14 ; 0x809c",
	};
	uint32_t x = 4711;

	for (unsigned long i = 0; i < n; i++) {
		unsigned long time = i / 3;

		x = x * 1664525 + 1013904223;
		if (i % 3 == 0)
			(void)printf("%lu clk 0 I%c (%lu) %08x %08x A svc_s : %s\n", time,
				     x >> 28 ? 'T' : 'S', time, (x >> 8 & 0xffff) << 2, x,
				     disasm[x >> 20 & 3]);
		else if (i % 3 == 1)
			(void)printf("%lu clk M%c4 %08x %08x\n", time, x >> 31 ? 'R' : 'W', x >> 4,
				     x);
		else
			(void)printf("%lu clk R r%u %08x\n", time, x >> 28, x);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

static int tokenize(const char *path)
{
	_cleanup_free_ char *block = malloc(BLOCK);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t lines = 0, words = 0;
	bool inside = false;
	ssize_t n = -1;

	while (block && fd >= 0 && (n = read(fd, block, BLOCK)) > 0)
		for (ssize_t i = 0; i < n; i++) {
			bool blank = block[i] == ' ' || block[i] == '\n';

			lines += block[i] == '\n';
			words += inside && blank;
			inside = !blank;
		}
	if (n < 0) {
		perror(path);
		return 1;
	}
	printf("%" PRIu64 " lines, %" PRIu64 " words\n", lines, words);
	return 0;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static int run(char **command)
{
	struct timespec begin, end;
	struct rusage used;
	cpu_set_t one;
	int status;
	pid_t pid;

	CPU_ZERO(&one);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	pid = fork();
	if (pid == 0) {
		(void)execv(command[0], command);
		perror(command[0]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) < 0 || status != 0)
		return 1;
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	(void)fprintf(stderr, "%.3f %.3f %ld\n",
		      (double)(end.tv_sec - begin.tv_sec) +
			      (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
		      seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "generate") == 0)
		return generate(strtoul(argv[2], NULL, 10));
	if (argc == 3 && strcmp(argv[1], "tokenize") == 0)
		return tokenize(argv[2]);
	if (argc > 2 && strcmp(argv[1], "run") == 0)
		return run(argv + 2);
	(void)fprintf(stderr, "usage: text-trace generate LINES | tokenize FILE | run COMMAND\n");
	return 2;
}
