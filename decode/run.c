/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "basic/io.h"
#include "basic/log.h"
#include "decode/run.h"
#include "decode/source.h"

#define BATCH_EVENTS  2048U
#define BATCH_BLOCKS  (8 * MIB)	 /* bytes of the file that a batch keeps in memory */
#define BATCH_TEXT    (16 * MIB) /* room for text that is kept for the next batch */
#define MAX_WORKERS   64U
#define BATCHES_SPARE 2U

enum batch_state {
	BATCH_FREE,
	BATCH_READY,
	BATCH_BUSY,
	BATCH_DONE,
};

struct batch {
	enum batch_state state;
	struct decode_event events[BATCH_EVENTS];
	size_t n;
	struct merge_keep keep;
	struct text text;
	int error;
};

struct run;

struct worker {
	struct run *run;
	struct formatter *formatter;
	pthread_t thread;
	bool started;
};

/*
 * Batches go round in a ring, numbered from 0 without end. The lock is for the numbers and the
 * states; a batch's content belongs to the main thread, but to a worker while it is busy.
 */
struct run {
	struct export_job *job;
	struct export_source source;
	struct event_days days;

	pthread_mutex_t lock;
	pthread_cond_t work, progress; /* for workers; for the main thread and those who wait */
	struct batch *batches;
	size_t n_batches;
	uint64_t filled;  /* batches handed to workers */
	uint64_t started; /* taken by a worker */
	uint64_t done;	  /* the first that is not done: all before are */
	uint64_t written;
	bool stop;

	struct worker *workers;
	unsigned n_workers;
	struct formatter *ordered; /* of the worker whose batch is the first not done */
};

static struct batch *batch_of(struct run *run, uint64_t number)
{
	return &run->batches[number % run->n_batches];
}

/* Until all batches before are done; then the ordered formatter is ours up to the batch's end */
static void wait_turn(struct run *run, uint64_t number)
{
	pthread_mutex_lock(&run->lock);
	while (run->done != number)
		pthread_cond_wait(&run->progress, &run->lock);
	pthread_mutex_unlock(&run->lock);
}

static int format_batch(struct worker *w, struct batch *batch, uint64_t number)
{
	struct run *run = w->run;
	int r = 0;

	for (size_t i = 0; i < batch->n && r >= 0; i++) {
		const struct decode_event *event = &batch->events[i];

		if (run->job->format == EXPORT_JSON) {
			r = formatter_json(w->formatter, event, &batch->text);
			continue;
		}
		r = formatter_text(w->formatter, event, false, &batch->text);
		if (r == FORMATTER_E_ORDER) {
			wait_turn(run, number);
			r = formatter_text(run->ordered, event, true, &batch->text);
		}
	}
	return r;
}

static void *worker_main(void *userdata)
{
	struct worker *w = userdata;
	struct run *run = w->run;

	pthread_mutex_lock(&run->lock);
	for (;;) {
		struct batch *batch;
		uint64_t number;
		int r;

		while (!run->stop && run->started == run->filled)
			pthread_cond_wait(&run->work, &run->lock);
		if (run->started == run->filled)
			break;
		number = run->started++;
		batch = batch_of(run, number);
		batch->state = BATCH_BUSY;
		pthread_mutex_unlock(&run->lock);
		r = format_batch(w, batch, number);
		pthread_mutex_lock(&run->lock);
		batch->error = r;
		batch->state = BATCH_DONE;
		while (run->done < run->filled && batch_of(run, run->done)->state == BATCH_DONE)
			run->done++;
		pthread_cond_broadcast(&run->progress);
	}
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

static void start_batch(struct run *run)
{
	pthread_mutex_lock(&run->lock);
	batch_of(run, run->filled)->state = BATCH_READY;
	run->filled++;
	pthread_cond_signal(&run->work);
	pthread_mutex_unlock(&run->lock);
}

static int write_out(struct run *run, const void *bytes, size_t size, struct fault *why)
{
	int r = io_write_all(run->job->fd, bytes, size);

	if (r == -EPIPE)
		return EXPORT_E_PIPE;
	return r < 0 ? fault_errno(why, r, "cannot write") : 0;
}

/* Write the oldest batch, when it is done, and make it free */
static int finish_batch(struct run *run, struct fault *why)
{
	struct batch *batch = batch_of(run, run->written);
	int r;

	pthread_mutex_lock(&run->lock);
	while (run->done <= run->written)
		pthread_cond_wait(&run->progress, &run->lock);
	pthread_mutex_unlock(&run->lock);
	r = batch->error;
	if (r < 0)
		return fault_errno(why, r, "%s: cannot format", run->job->dat->path);
	r = write_out(run, batch->text.bytes, batch->text.size, why);
	if (r != 0)
		return r;
	merge_keep_clear(&batch->keep);
	if (batch->text.room > BATCH_TEXT)
		text_done(&batch->text);
	batch->text.size = 0;
	batch->state = BATCH_FREE;
	run->written++;
	return 0;
}

/* 1: full, 0: the file's end, or negative errno */
static int fill_batch(struct run *run, struct batch *batch, uint64_t serial, struct fault *why)
{
	const struct export_job *job = run->job;
	size_t most = MAX(BATCH_BLOCKS / run->source.block_size, run->source.n_regions + 1);

	batch->n = 0;
	batch->keep.serial = serial + 1;
	while (batch->n < BATCH_EVENTS && batch->keep.n < most) {
		struct decode_event *event = &batch->events[batch->n];
		int r;

		r = merge_next(run->source.merge, &batch->keep, event, why);
		if (r <= 0)
			return r;
		if (event->ts > job->filter->to)
			return 0;
		r = decoder_task(job->decoder, event);
		if (r < 0)
			return fault_errno(why, r, "%s: cannot go on", job->dat->path);
		if (!export_filter_wants(job->filter, job->decoder, event))
			continue;
		event->new_day = event_days_changed(&run->days, event->ts);
		batch->n++;
	}
	return 1;
}

static int write_all(struct run *run, struct fault *why)
{
	bool more = true;
	int r;

	while (more || run->written < run->filled) {
		if (!more || run->filled - run->written == run->n_batches) {
			r = finish_batch(run, why);
			if (r != 0)
				return r;
			continue;
		}
		r = fill_batch(run, batch_of(run, run->filled), run->filled, why);
		if (r < 0)
			return r;
		more = r > 0;
		start_batch(run);
	}
	return 0;
}

static int new_formatter(const struct export_job *job, struct formatter **ret)
{
	int r = formatter_new(job->decoder, true, ret);

	if (r >= 0)
		formatter_escape(*ret, job->escape);
	if (r >= 0)
		formatter_times(*ret, &job->time);
	return r;
}

static int start_workers(struct run *run)
{
	int r = 0;

	run->workers = calloc(run->n_workers, sizeof(*run->workers));
	run->batches = calloc(run->n_batches, sizeof(*run->batches));
	if (!run->workers || !run->batches)
		return -ENOMEM;
	r = new_formatter(run->job, &run->ordered);
	if (r >= 0 && run->job->format == EXPORT_TEXT && !formatter_has_plugins(run->ordered))
		log_notice(
			"libtraceevent's plugins (libtraceevent1-plugin) are not installed: some "
			"kinds of events are printed otherwise than by trace-cmd report");
	for (unsigned i = 0; i < run->n_workers && r >= 0; i++)
		r = new_formatter(run->job, &run->workers[i].formatter);
	for (unsigned i = 0; i < run->n_workers && r >= 0; i++) {
		struct worker *w = &run->workers[i];

		w->run = run;
		r = -pthread_create(&w->thread, NULL, worker_main, w);
		w->started = r == 0;
	}
	return r;
}

static void stop_workers(struct run *run)
{
	pthread_mutex_lock(&run->lock);
	run->stop = true;
	pthread_cond_broadcast(&run->work);
	pthread_mutex_unlock(&run->lock);
	for (unsigned i = 0; run->workers && i < run->n_workers; i++) {
		if (run->workers[i].started)
			(void)pthread_join(run->workers[i].thread, NULL);
		formatter_free(run->workers[i].formatter);
	}
	for (size_t i = 0; run->batches && i < run->n_batches; i++) {
		merge_keep_done(&run->batches[i].keep);
		text_done(&run->batches[i].text);
	}
	formatter_free(run->ordered);
	free(run->workers);
	free(run->batches);
}

static unsigned count_workers(const struct export_job *job)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (job->workers)
		return MIN(job->workers, MAX_WORKERS);
	return (unsigned)MIN(MAX(n, 1L), (long)MAX_WORKERS);
}

int export_run(struct export_job *job, struct fault *why)
{
	struct run run = {.job = job, .n_workers = count_workers(job)};
	char head[32];
	int r;

	*why = (struct fault){};
	run.n_batches = 2 * run.n_workers + BATCHES_SPARE;
	event_days_init(&run.days, job->time.mode, false);
	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.work, NULL);
	pthread_cond_init(&run.progress, NULL);
	r = export_source_open(&run.source, job->dat, job->decoder, job->filter,
			       job->format == EXPORT_TEXT, job->on_fault, why);
	if (r >= 0)
		r = start_workers(&run);
	if (r < 0 && why->error == 0)
		(void)fault_errno(why, r, "%s: cannot export", job->dat->path);
	if (r >= 0 && job->format == EXPORT_TEXT) {
		(void)snprintf(head, sizeof(head), "cpus=%u\n", job->dat->n_cpus);
		r = write_out(&run, head, strlen(head), why);
	}
	if (r == 0)
		r = write_all(&run, why);
	stop_workers(&run);
	job->n_faults += run.source.n_faults;
	export_source_done(&run.source);
	pthread_cond_destroy(&run.progress);
	pthread_cond_destroy(&run.work);
	pthread_mutex_destroy(&run.lock);
	return r;
}
