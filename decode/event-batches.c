/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "basic/out-file.h"
#include "decode/event-batches.h"

#define BATCH_BLOCKS  (8 * MIB)	 /* bytes of the file that a batch keeps in memory */
#define BATCH_TEXT    (16 * MIB) /* room for text that is kept for the next batch */
#define MAX_WORKERS   64U
#define BATCHES_SPARE 2U

struct batch {
	bool done; /* a worker is */
	struct decode_event *events;
	size_t n;
	struct event_keep keep;
	struct text text;
	int error;
};

struct run;

struct worker {
	struct run *run;
	void *maker;
	pthread_t thread;
	bool started;
};

/*
 * Batches go round in a ring, numbered from 0 without end. The lock is for the numbers and for what
 * is done; a batch's content belongs to the main thread, but to a worker from started to done.
 */
struct run {
	struct event_batches *job;
	struct event_stream *stream;

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
};

struct event_turn {
	struct run *run;
	uint64_t number;
};

static struct batch *batch_of(struct run *run, uint64_t number)
{
	return &run->batches[number % run->n_batches];
}

void event_turn_wait(const struct event_turn *turn)
{
	struct run *run = turn->run;

	pthread_mutex_lock(&run->lock);
	while (run->done != turn->number)
		pthread_cond_wait(&run->progress, &run->lock);
	pthread_mutex_unlock(&run->lock);
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
		r = run->job->make(w->maker, batch->events, batch->n,
				   &(struct event_turn){run, number}, &batch->text);
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
	const struct event_batches *job = run->job;
	size_t most = event_stream_keep_most(run->stream, BATCH_BLOCKS);

	for (batch->n = 0; batch->n < job->batch && batch->keep.n < most; batch->n++) {
		struct decode_event *event = &batch->events[batch->n];
		int r = event_next_keep(run->stream, &batch->keep, event, why);

		if (r <= 0)
			return r;
		r = job->on_event ? job->on_event(job->userdata, event, &batch->text) : 0;
		if (r < 0)
			return fault_errno(why, r, "%s: cannot export",
					   decoder_dat(job->decoder)->path);
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

static int write_begin(struct run *run, struct fault *why)
{
	_cleanup_(text_done) struct text text = {};
	int r = run->job->begin ? run->job->begin(run->job->userdata, &text, why) : 0;

	if (r >= 0 && text.no_memory)
		r = fault_errno(why, -ENOMEM, "%s: cannot export",
				decoder_dat(run->job->decoder)->path);
	return r < 0 ? r : out_file_write(run->job->fd, text.bytes, text.size, why);
}

static int start_workers(struct run *run)
{
	const struct event_batches *job = run->job;
	int r = 0;

	run->workers = calloc(run->n_workers, sizeof(*run->workers));
	run->batches = calloc(run->n_batches, sizeof(*run->batches));
	if (!run->workers || !run->batches)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_batches; i++) {
		run->batches[i].events = calloc(job->batch, sizeof(struct decode_event));
		if (!run->batches[i].events)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < run->n_workers && r >= 0; i++)
		r = job->maker_new(job->userdata, &run->workers[i].maker);
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
		run->job->maker_free(run->workers[i].maker);
	}
	for (size_t i = 0; run->batches && i < run->n_batches; i++) {
		event_keep_done(&run->batches[i].keep);
		text_done(&run->batches[i].text);
		free(run->batches[i].events);
	}
	free(run->workers);
	free(run->batches);
}

static unsigned count_workers(const struct event_batches *job)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (job->workers)
		return MIN(job->workers, MAX_WORKERS);
	return (unsigned)MIN(MAX(n, 1L), (long)MAX_WORKERS);
}

int event_batches_run(struct event_batches *batches, struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(batches->decoder);
	struct run run = {.job = batches, .n_workers = count_workers(batches)};
	int r;

	run.n_batches = 2 * run.n_workers + BATCHES_SPARE;
	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.work, NULL);
	pthread_cond_init(&run.progress, NULL);
	r = event_stream_new(batches->decoder, &batches->stream, &run.stream, why);
	if (r >= 0) {
		r = start_workers(&run);
		if (r < 0)
			(void)fault_errno(why, r, "%s: cannot export", dat->path);
	}
	if (r >= 0)
		r = write_begin(&run, why);
	if (r == 0)
		r = write_all(&run, why);
	stop_workers(&run);
	if (run.stream)
		batches->n_faults = event_stream_faults(run.stream);
	event_stream_free(run.stream);
	pthread_cond_destroy(&run.progress);
	pthread_cond_destroy(&run.work);
	pthread_mutex_destroy(&run.lock);
	return r;
}
