/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "basic/out-file.h"
#include "decode/print-all.h"

#define BATCH_EVENTS  2048U
#define BATCH_BLOCKS  (8 * MIB)	 /* bytes of the file that a batch keeps in memory */
#define BATCH_TEXT    (16 * MIB) /* room for text that is kept for the next batch */
#define MAX_WORKERS   64U
#define BATCHES_SPARE 2U

struct batch {
	bool done; /* a worker is */
	struct decode_event events[BATCH_EVENTS];
	size_t n;
	struct event_keep keep;
	struct text text;
	int error;
};

struct run;

struct worker {
	struct run *run;
	struct printer *printer;
	pthread_t thread;
	bool started;
};

/*
 * Batches go round in a ring, numbered from 0 without end. The lock is for the numbers and for what
 * is done; a batch's content belongs to the main thread, but to a worker from started to done.
 */
struct run {
	struct print_all *job;
	struct event_stream *stream;
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
	struct printer *ordered; /* of the worker whose batch is the first not done */
};

static struct batch *batch_of(struct run *run, uint64_t number)
{
	return &run->batches[number % run->n_batches];
}

/* Until all batches before are done; then the ordered printer is ours up to the batch's end */
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

		r = printer_put(w->printer, event, false, &batch->text);
		if (r == PRINTER_E_ORDER) {
			wait_turn(run, number);
			r = printer_put(run->ordered, event, true, &batch->text);
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
		pthread_mutex_unlock(&run->lock);
		r = format_batch(w, batch, number);
		pthread_mutex_lock(&run->lock);
		batch->error = r;
		batch->done = true;
		while (run->done < run->filled && batch_of(run, run->done)->done)
			run->done++;
		pthread_cond_broadcast(&run->progress);
	}
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

static void start_batch(struct run *run)
{
	pthread_mutex_lock(&run->lock);
	batch_of(run, run->filled++)->done = false;
	pthread_cond_signal(&run->work);
	pthread_mutex_unlock(&run->lock);
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
		return fault_errno(why, r, "%s: cannot format",
				   decoder_dat(run->job->decoder)->path);
	r = out_file_write(run->job->fd, batch->text.bytes, batch->text.size, why);
	if (r != 0)
		return r;
	event_keep_clear(&batch->keep);
	if (batch->text.room > BATCH_TEXT)
		text_done(&batch->text);
	batch->text.size = 0;
	run->written++;
	return 0;
}

/* 1: full, 0: the file's end, or negative errno */
static int fill_batch(struct run *run, struct batch *batch, struct fault *why)
{
	size_t most = event_stream_keep_most(run->stream, BATCH_BLOCKS);

	for (batch->n = 0; batch->n < BATCH_EVENTS && batch->keep.n < most; batch->n++) {
		struct decode_event *event = &batch->events[batch->n];
		int r = event_next_keep(run->stream, &batch->keep, event, why);

		if (r <= 0)
			return r;
		event->new_day = event_days_changed(&run->days, event->ts);
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
		r = fill_batch(run, batch_of(run, run->filled), why);
		if (r < 0)
			return r;
		more = r > 0;
		start_batch(run);
	}
	return 0;
}

static int start_workers(struct run *run)
{
	const struct print_all *job = run->job;
	int r;

	run->workers = calloc(run->n_workers, sizeof(*run->workers));
	run->batches = calloc(run->n_batches, sizeof(*run->batches));
	if (!run->workers || !run->batches)
		return -ENOMEM;
	r = printer_new(job->decoder, &job->printer, &run->ordered);
	for (unsigned i = 0; i < run->n_workers && r >= 0; i++)
		r = printer_new(job->decoder, &job->printer, &run->workers[i].printer);
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
		printer_free(run->workers[i].printer);
	}
	for (size_t i = 0; run->batches && i < run->n_batches; i++) {
		event_keep_done(&run->batches[i].keep);
		text_done(&run->batches[i].text);
	}
	printer_free(run->ordered);
	free(run->workers);
	free(run->batches);
}

static unsigned count_workers(const struct print_all *job)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (job->workers)
		return MIN(job->workers, MAX_WORKERS);
	return (unsigned)MIN(MAX(n, 1L), (long)MAX_WORKERS);
}

int print_all(struct print_all *job, struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(job->decoder);
	struct run run = {.job = job, .n_workers = count_workers(job)};
	const bool text = job->printer.form == PRINTER_TEXT;
	const struct event_stream_config config = {
		.filter = job->filter,
		.pair_leaves = text,
		.on_fault = job->on_fault,
	};
	char head[32];
	int r;

	run.n_batches = 2 * run.n_workers + BATCHES_SPARE;
	event_days_init(&run.days, text ? job->printer.time.mode : EVENT_TIME_EPOCH, false);
	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.work, NULL);
	pthread_cond_init(&run.progress, NULL);
	r = event_stream_new(job->decoder, &config, &run.stream, why);
	if (r >= 0) {
		r = start_workers(&run);
		if (r < 0)
			(void)fault_errno(why, r, "%s: cannot export", dat->path);
	}
	if (r >= 0 && text) {
		(void)snprintf(head, sizeof(head), "cpus=%u\n", dat->n_cpus);
		r = out_file_write(job->fd, head, strlen(head), why);
	}
	if (r == 0)
		r = write_all(&run, why);
	stop_workers(&run);
	if (run.stream)
		job->n_faults += event_stream_faults(run.stream);
	event_stream_free(run.stream);
	pthread_cond_destroy(&run.progress);
	pthread_cond_destroy(&run.work);
	pthread_mutex_destroy(&run.lock);
	return r;
}
