/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * measure - run a recorder beside a load and print what it cost, as lines "key=value":
 *
 *   start          what is written to the disk from here on is the recorder's
 *   ready          CPU time so far is "start"; CPU time of the whole machine counts from here on
 *   load           runs to its end
 *   (--sync)       fdatasync of the live file, timed
 *   stop signal    timed until the finished file is there, and until the recorder has ended
 *   syncfs         what the recorder left to the kernel's writeback is counted too
 *
 * Without a recorder the same is printed for the load alone: the baseline.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "bench/proc.h"
#include "tests/tools/common.h"

#define READY_NSEC (20 * NSEC_PER_SEC)
#define STOP_NSEC  (120 * NSEC_PER_SEC)

struct options {
	const char *load, *load_out, *log;
	const char *disk_stat, *dir;
	struct ready {
		const char *file, *text; /* ready when this file begins with that text */
	} ready[4];
	size_t n_ready;
	const char *finished, *sync;
	uint64_t settle_nsec;
	int signal;
	char **recorder;
};

struct result {
	struct proc_system begin, before, after; /* before the recorder starts; ready; at the end */
	struct proc_tree start, loaded;
	struct rusage recorder, load;
	uint64_t load_nsec, sync_nsec, finished_nsec, ended_nsec, cached_after;
};

static const char help[] =
	"measure --load=COMMAND [--load-out=FILE] [--dir=DIR] [--disk-stat=FILE]\n"
	"        [--ready=FILE=TEXT]... [--settle=SEC] [--sync=FILE] [--finished=GLOB] [--signal=N]\n"
	"        [--log=FILE] [-- RECORDER...]\n";

static double seconds(uint64_t nsec)
{
	return (double)nsec / (double)NSEC_PER_SEC;
}

static uint64_t rusage_nsec(const struct rusage *u)
{
	return ((uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
		(uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec)) *
	       NSEC_PER_USEC;
}

static void nap(uint64_t nsec)
{
	struct timespec ts = {.tv_sec = (time_t)(nsec / NSEC_PER_SEC),
			      .tv_nsec = (long)(nsec % NSEC_PER_SEC)};

	(void)nanosleep(&ts, NULL);
}

static pid_t start(char **argv, const char *out)
{
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (pid > 0)
		return pid;
	if (out) {
		int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
			err(2, "%s", out);
	}
	(void)execvp(argv[0], argv);
	err(127, "%s", argv[0]);
}

static bool begins_with(const char *path, const char *text)
{
	char have[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	(void)!read(fd, have, sizeof(have) - 1);
	close(fd);
	return strncmp(have, text, strlen(text)) == 0;
}

static bool is_ready(const struct options *o)
{
	for (size_t i = 0; i < o->n_ready; i++)
		if (!begins_with(o->ready[i].file, o->ready[i].text))
			return false;
	return true;
}

static void wait_ready(const struct options *o, pid_t pid)
{
	uint64_t end = now_nsec() + READY_NSEC;

	while (!is_ready(o)) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			errx(1, "the recorder ended before it was ready, see %s", o->log);
		if (now_nsec() > end) {
			(void)kill(pid, SIGKILL);
			errx(1, "the recorder does not get ready, see %s", o->log);
		}
		nap(10 * 1000 * NSEC_PER_USEC);
	}
	nap(o->settle_nsec);
}

static void sync_fs(const char *dir)
{
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir && (fd < 0 || syncfs(fd) < 0))
		err(2, "%s", dir);
	close(fd);
}

static void run_load(const struct options *o, struct result *res)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)o->load, NULL};
	uint64_t begin = now_nsec();
	int status;

	if (wait4(start(argv, o->load_out), &status, 0, &res->load) < 0 || status != 0)
		errx(1, "the load failed: %s", o->load);
	res->load_nsec = now_nsec() - begin;
}

static void sync_file(const struct options *o, struct result *res)
{
	int fd = open(o->sync, O_RDONLY | O_CLOEXEC);
	uint64_t begin = now_nsec();

	if (fd < 0 || fdatasync(fd) < 0)
		err(1, "%s", o->sync);
	res->sync_nsec = now_nsec() - begin;
	close(fd);
}

static bool exists(const char *pattern)
{
	glob_t found;
	int r = glob(pattern, GLOB_NOSORT, NULL, &found);

	globfree(&found);
	return r == 0;
}

static void stop(const struct options *o, pid_t pid, struct result *res)
{
	uint64_t begin = now_nsec();
	int status = 0;
	pid_t r = 0;

	if (kill(pid, o->signal) < 0)
		err(1, "the recorder is gone, see %s", o->log);
	while (r == 0) {
		nap(500 * NSEC_PER_USEC);
		r = wait4(pid, &status, WNOHANG, &res->recorder);
		if (!res->finished_nsec && o->finished && exists(o->finished))
			res->finished_nsec = now_nsec() - begin;
		if (now_nsec() - begin > STOP_NSEC) {
			(void)kill(pid, SIGKILL);
			errx(1, "the recorder does not stop");
		}
	}
	res->ended_nsec = now_nsec() - begin;
	if (!o->finished)
		res->finished_nsec = res->ended_nsec;
	if (r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) != 0) ||
	    (WIFSIGNALED(status) && WTERMSIG(status) != o->signal))
		errx(1, "the recorder failed with status %#x, see %s", (unsigned)status, o->log);
	if (!res->finished_nsec)
		errx(1, "no finished file %s", o->finished);
}

static void measure(const struct options *o, struct result *res)
{
	pid_t pid = -1;

	proc_system_read(o->disk_stat, &res->begin);
	if (o->recorder) {
		pid = start(o->recorder, o->log);
		wait_ready(o, pid);
	}
	sync_fs(o->dir);
	if (pid >= 0)
		proc_tree_read(pid, &res->start);
	proc_system_read(NULL, &res->before);
	run_load(o, res);
	if (pid >= 0) {
		proc_tree_read(pid, &res->loaded);
		if (o->sync)
			sync_file(o, res);
		stop(o, pid, res);
	}
	proc_system_read(NULL, &res->after);
	res->cached_after = res->after.cached;
	sync_fs(o->dir);
	proc_system_read(o->disk_stat, &res->after);
}

static void print(const char *key, double value)
{
	printf("%s=%.6f\n", key, value);
}

static void report(const struct result *res)
{
	const struct proc_system *a = &res->before, *b = &res->after;
	uint64_t cpu = rusage_nsec(&res->recorder);

	print("cpu_start", seconds(res->start.cpu_nsec));
	print("cpu_all", seconds(cpu));
	/* Other processes' children that had ended before "ready" are not in start: see proc.h */
	print("cpu", seconds(cpu - MIN(cpu, res->start.cpu_nsec)));
	print("cpu_kthreads", seconds(b->kthread_nsec - MIN(a->kthread_nsec, b->kthread_nsec)));
	print("cpu_busy", seconds(b->busy_nsec - a->busy_nsec));
	print("cpu_load", seconds(rusage_nsec(&res->load)));
	print("load_seconds", seconds(res->load_nsec));
	print("sync_seconds", seconds(res->sync_nsec));
	print("finished_seconds", seconds(res->finished_nsec));
	print("ended_seconds", seconds(res->ended_nsec));
	printf("rss=%" PRIu64 "\n", res->loaded.rss);
	printf("processes=%u\n", res->loaded.processes);
	printf("switches=%" PRIu64 "\n",
	       res->loaded.switches - MIN(res->start.switches, res->loaded.switches));
	printf("cached=%" PRId64 "\n", (int64_t)(res->cached_after - a->cached));
	printf("disk_bytes=%" PRIu64 "\n", b->disk_bytes - res->begin.disk_bytes);
}

static void parse_ready(struct options *o, char *text)
{
	char *split = strrchr(text, '=');

	if (!split || o->n_ready == ARRAY_SIZE(o->ready))
		errx(2, "--ready: FILE=TEXT, a few times, not %s", text);
	*split = '\0';
	o->ready[o->n_ready++] = (struct ready){.file = text, .text = split + 1};
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"load", required_argument, NULL, 'l'},
					      {"load-out", required_argument, NULL, 'o'},
					      {"dir", required_argument, NULL, 'd'},
					      {"disk-stat", required_argument, NULL, 'k'},
					      {"ready", required_argument, NULL, 'r'},
					      {"settle", required_argument, NULL, 's'},
					      {"sync", required_argument, NULL, 'y'},
					      {"finished", required_argument, NULL, 'f'},
					      {"signal", required_argument, NULL, 'n'},
					      {"log", required_argument, NULL, 'g'},
					      {}};
	int c;

	while ((c = getopt_long(argc, argv, "+", longs, NULL)) >= 0) {
		const char **strings[] = {
			['l'] = &o->load,      ['o'] = &o->load_out, ['d'] = &o->dir,
			['k'] = &o->disk_stat, ['y'] = &o->sync,     ['f'] = &o->finished,
			['g'] = &o->log};

		if (c == 'r')
			parse_ready(o, optarg);
		else if (c == 's')
			o->settle_nsec = seconds_parse("settle", optarg);
		else if (c == 'n')
			o->signal = (int)number_parse("signal", optarg);
		else if (c != '?' && strings[c])
			*strings[c] = optarg;
		else
			errx(2, "usage: %s", help);
	}
	if (!o->load)
		errx(2, "usage: %s", help);
	if (optind < argc)
		o->recorder = argv + optind;
}

int main(int argc, char **argv)
{
	struct options o = {.signal = SIGTERM};
	struct result res = {0};

	parse(&o, argc, argv);
	measure(&o, &res);
	report(&res);
	return 0;
}
