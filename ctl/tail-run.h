/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A tail at work: the segments from the one that is being printed to the one that is being
 * recorded, and what is complete of them. Memory is bounded: of the live files there are two at
 * most, of those that were finished before two are open at a time. Main thread.
 *
 *   tail.c          the verb: options, following, a daemon that restarts
 *   tail-start.c    where to begin: the last N events, or those since a time
 *   tail-run.c      messages of the daemon, printing in order
 *   tail-stream.c   the daemon's socket
 *   tail-segment.c  one file
 */
#pragma once

#include "ctl/bus.h"
#include "ctl/tail-segment.h"

enum {
	TAIL_E_PIPE = 1, /* whoever read the output has gone */
	TAIL_E_DONE,	 /* --until= is over */
};

struct tail {
	const struct ctl *ctl;
	const char *session;
	sd_bus *bus; /* NULL once it is not needed any more */
	int stream;  /* -EBADF: none */
	struct event_filter filter;

	struct tail_segment *first, *last;
	bool live;		/* last is being recorded */
	uint64_t bound;		/* key up to which all events are in the files */
	uint64_t newest;	/* key of the newest event in the files, as of the last message */
	unsigned rounds;	/* told of */
	bool ended;		/* nothing more comes over the stream */
	bool stopped;		/* because the session was stopped */
	uint64_t printed;	/* events */
	uint64_t skip;		/* events to be left out at the beginning */
	struct event_days days; /* of what was printed */
	struct text text;	/* to be written */
};

void tail_done(struct tail *tail);

/* A line on stderr */
void tail_complain(const char *format, ...) _printf_(1, 2);

/**
 * tail_open_finished() - open a segment that was finished before the tail began
 * Return: 1, 0 it is gone or is one of the live ones, or negative errno with the story in @why.
 */
int tail_open_finished(struct tail *tail, struct tail_segment *segment,
		       const struct tail_segment *before, struct fault *why);

/**
 * tail_receive() - take in what the daemon has told
 */
int tail_receive(struct tail *tail, struct fault *why);

/**
 * tail_print() - print what is complete
 * Return: 0, TAIL_E_PIPE, TAIL_E_DONE, or negative errno with the story in @why.
 */
int tail_print(struct tail *tail, struct fault *why);

/**
 * tail_start() - choose the first event, before tail_print()
 * @lines: so many of the last events; UINT64_MAX: all
 */
int tail_start(struct tail *tail, uint64_t lines, struct fault *why);
