/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * markers - write "flyrec-test cpu=N seq=M" into an instance's trace_marker, one thread pinned to
 * each CPU, and print at the end which numbers were written: "cpu=N first=A last=B" (last is below
 * first if none was). `check-markers --expect=` compares that with what is in the files. With
 * --time " time=USEC" follows, the wall clock just before the marker is written.
 *
 * An open trace_marker keeps the instance from being removed. With --retry the file is opened for
 * each marker anew, and an instance that is missing or switched off is waited for.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/tools/common.h"

struct writer {
	const struct job *job;
	pthread_t thread;
	int cpu;
	int fd;
	int error;
	uint64_t first;
	uint64_t next; /* not written yet */
};

struct job {
	char path[256];
	uint64_t rate;	/* markers a second and CPU, 0: as fast as possible */
	uint64_t count; /* markers a CPU, UINT64_MAX: until stopped */
	bool retry;
	bool time;
	bool stop;
	unsigned int running;
	struct writer *writers;
	unsigned int n_writers;
};

static const char help[] =
	"markers --instance=NAME [--tracefs=DIR] [--cpus=LIST] [--rate=N] [--count=N]\n"
	"        [--duration=SEC] [--start=N | --continue=FILE] [--retry] [--time]\n"
	"Writes numbered markers on each CPU until SIGTERM, --count a CPU or --duration;\n"
	"prints \"cpu=N first=A last=B\". --continue goes on after the numbers in FILE.\n";

static bool stopped(const struct job *job)
{
	return __atomic_load_n(&job->stop, __ATOMIC_RELAXED);
}

static int write_once(int fd, const char *text, size_t size)
{
	ssize_t n;

	do {
		n = write(fd, text, size);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

static int write_retry(const struct job *job, const char *text, size_t size)
{
	while (!stopped(job)) {
		_cleanup_close_ int fd = open(job->path, O_WRONLY | O_CLOEXEC);

		if (fd >= 0 && write_once(fd, text, size) == 0)
			return 0;
		usleep(1000);
	}
	return -ECANCELED;
}

static void sleep_until(uint64_t nsec)
{
	struct timespec ts = {
		.tv_sec = (time_t)(nsec / NSEC_PER_SEC),
		.tv_nsec = (long)(nsec % NSEC_PER_SEC),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static int marker_text(const struct writer *w, char *text, size_t room)
{
	struct timespec now;

	if (!w->job->time)
		return snprintf(text, room, "flyrec-test cpu=%d seq=%" PRIu64 "\n", w->cpu,
				w->next);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return snprintf(text, room, "flyrec-test cpu=%d seq=%" PRIu64 " time=%" PRIu64 "\n", w->cpu,
			w->next,
			(uint64_t)now.tv_sec * USEC_PER_SEC +
				(uint64_t)now.tv_nsec / NSEC_PER_USEC);
}

static int writer_loop(struct writer *w)
{
	const struct job *job = w->job;
	uint64_t begin = now_nsec();
	char text[96];
	int r;

	r = pin_to_cpu(w->cpu);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < job->count && !stopped(job); i++) {
		int size;

		if (job->rate)
			sleep_until(begin + i * (NSEC_PER_SEC / job->rate));
		size = marker_text(w, text, sizeof(text));
		r = job->retry ? write_retry(job, text, (size_t)size)
			       : write_once(w->fd, text, (size_t)size);
		if (r < 0)
			return r;
		w->next++;
	}
	return 0;
}

static void *writer_thread(void *data)
{
	struct writer *w = data;

	w->error = writer_loop(w);
	__atomic_sub_fetch((unsigned int *)&w->job->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ranges_read callback: go on after what an earlier run wrote */
static void on_range(unsigned int cpu, uint64_t first, int64_t last, void *data)
{
	struct job *job = data;

	for (unsigned int i = 0; i < job->n_writers; i++) {
		struct writer *w = &job->writers[i];

		if (w->cpu == (int)cpu && last >= (int64_t)w->next)
			w->first = w->next = (uint64_t)last + 1;
	}
}

static void writers_new(struct job *job, const char *cpu_list, uint64_t start)
{
	_cleanup_free_ int *cpus = NULL;

	job->n_writers = cpus_parse(cpu_list, &cpus);
	job->writers = calloc(job->n_writers, sizeof(*job->writers));
	if (!job->writers)
		err(2, "calloc");
	for (unsigned int i = 0; i < job->n_writers; i++) {
		job->writers[i] = (struct writer){
			.job = job, .cpu = cpus[i], .fd = -1, .first = start, .next = start};
	}
}

static void run(struct job *job, uint64_t duration)
{
	int fd = -1;

	if (!job->retry) {
		fd = open(job->path, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			err(1, "Cannot open %s", job->path);
	}
	stop_signals_block();
	job->running = job->n_writers;
	for (unsigned int i = 0; i < job->n_writers; i++) {
		struct writer *w = &job->writers[i];

		w->fd = fd;
		errno = pthread_create(&w->thread, NULL, writer_thread, w);
		if (errno)
			err(2, "pthread_create");
	}
	stop_wait(duration, &job->running);
	__atomic_store_n(&job->stop, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < job->n_writers; i++)
		pthread_join(job->writers[i].thread, NULL);
	close_p(&fd);
}

static int report(const struct job *job)
{
	int status = 0;

	for (unsigned int i = 0; i < job->n_writers; i++) {
		const struct writer *w = &job->writers[i];

		printf("cpu=%d first=%" PRIu64 " last=%" PRId64 "\n", w->cpu, w->first,
		       (int64_t)w->next - 1);
		if (w->error < 0 && w->error != -ECANCELED) {
			warnx("cpu %d: cannot write %s: %s", w->cpu, job->path,
			      strerror(-w->error));
			status = 1;
		}
	}
	return status;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"instance", required_argument, NULL, 'i'},
						{"tracefs", required_argument, NULL, 't'},
						{"cpus", required_argument, NULL, 'c'},
						{"rate", required_argument, NULL, 'r'},
						{"count", required_argument, NULL, 'n'},
						{"duration", required_argument, NULL, 'd'},
						{"start", required_argument, NULL, 's'},
						{"continue", required_argument, NULL, 'f'},
						{"retry", no_argument, NULL, 'R'},
						{"time", no_argument, NULL, 'T'},
						{"help", no_argument, NULL, 'h'},
						{}};
	const char *tracefs = "/sys/kernel/tracing", *instance = NULL, *cpus = NULL, *from = NULL;
	struct job job = {.count = UINT64_MAX};
	uint64_t start = 0, duration = 0;
	int c, status;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'i':
			instance = optarg;
			break;
		case 't':
			tracefs = optarg;
			break;
		case 'c':
			cpus = optarg;
			break;
		case 'r':
			job.rate = number_parse("rate", optarg);
			break;
		case 'n':
			job.count = number_parse("count", optarg);
			break;
		case 'd':
			duration = seconds_parse("duration", optarg);
			break;
		case 's':
			start = number_parse("start", optarg);
			break;
		case 'f':
			from = optarg;
			break;
		case 'R':
			job.retry = true;
			break;
		case 'T':
			job.time = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (!instance || optind != argc)
		errx(2, "usage: %s", help);
	snprintf(job.path, sizeof(job.path), "%s/instances/%s/trace_marker", tracefs, instance);
	writers_new(&job, cpus, start);
	if (from)
		ranges_read(from, on_range, &job);
	run(&job, duration);
	status = report(&job);
	free(job.writers);
	return status;
}
