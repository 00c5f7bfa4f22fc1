/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turning all events of a file into bytes, with all cores: the main thread collects batches of
 * events, worker threads turn these into bytes, the main thread writes them in order. Memory is
 * bounded by the number of batches, whatever the file's size. Main thread; workers live as long as
 * event_batches_run().
 */
#pragma once

#include "decode/event-stream.h"
#include "decode/text.h"

/* The place of a batch among the others */
struct event_turn;

struct event_batches {
	const struct decoder *decoder;
	struct event_stream_config stream;
	size_t batch;	  /* events of one, at most */
	unsigned workers; /* 0: as many as there are CPUs */
	int fd;		  /* stays the caller's */
	void *userdata;
	/* Main thread: what comes first, once it is known that events can be read. NULL: nothing.
	 * Return: 0 or negative errno, with @why */
	int (*begin)(void *userdata, struct text *out, struct fault *why);
	/* Main thread: each event, in order. @out: goes in front of all that its batch becomes.
	 * What this changes workers see that get the event. Return: 0 or -ENOMEM. NULL: none */
	int (*on_event)(void *userdata, struct decode_event *event, struct text *out);
	/* What a worker has of its own; both are called by the main thread */
	int (*maker_new)(void *userdata, void **ret);
	void (*maker_free)(void *maker); /* NULL is fine */
	/* Worker: append what the events become. Return: 0 or negative errno */
	int (*make)(void *maker, const struct decode_event *events, size_t n,
		    const struct event_turn *turn, struct text *out);
	size_t n_faults; /* parts of the file that are broken, when it is done */
};

/**
 * event_batches_run() - write to batches->fd
 * Return: 0, OUT_FILE_E_PIPE, or negative errno with the story in @why.
 */
int event_batches_run(struct event_batches *batches, struct fault *why);

/**
 * event_turn_wait() - until all batches before are made; from then on to the end of this one no
 * other worker comes back from this
 */
void event_turn_wait(const struct event_turn *turn);
