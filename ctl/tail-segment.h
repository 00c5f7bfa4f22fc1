/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One file of a session as tail reads it: one that is being written, whose sizes grow, or a
 * finished one. Events are given out in the order of their "key": their time as it is shown, unless
 * somebody has set the clock on the wall, which the keys do not follow. Main thread.
 */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "ctl/ctl.h"
#include "decode/event-stream.h"
#include "decode/printer.h"

/* When the kernel was asked for the name of a task, and what it said */
struct tail_asked {
	int32_t pid;
	time_t when;   /* monotonic, seconds */
	char name[16]; /* NUL-terminated; "": nothing yet */
};

#define TAIL_ASKED 4096U

struct tail_segment {
	struct tail_segment *next; /* the one recorded after it */
	char *path;		   /* for messages; of a finished one also to open it */
	int fd;			   /* -EBADF: not open yet */
	uint64_t number;	   /* the daemon's; 0: finished before */
	dev_t dev;
	ino_t ino;
	uint64_t from; /* a finished one's first time, for when it is opened */
	bool arrived;  /* the daemon knows that it is being read */
	bool complete; /* its sizes are final */

	struct trace_dat *dat;
	struct decoder *decoder;
	struct printer *printer;
	struct event_filter filter; /* names belong to whom it was copied from */
	struct event_stream *stream;
	struct who *who; /* NULL: nobody asks */
	uint64_t *sizes; /* [dat->n_cpus]: bytes that may be read */
	uint64_t *last;	 /* [dat->n_cpus]: keys of the last events; 0: none */
	int64_t adjust;	 /* key of a time: so much later */
	bool json;
	enum event_time_mode time;	     /* how times are printed */
	struct tail_asked asked[TAIL_ASKED]; /* of tasks, by pid modulo that */
};

/**
 * tail_segment_new() - without a file yet
 */
struct tail_segment *tail_segment_new(const char *path);
struct tail_segment *tail_segment_free(struct tail_segment *segment);
DEFINE_CLEANUP(struct tail_segment *, tail_segment_free)

/**
 * tail_segment_open() - read what its events are decoded with
 * @fd: consumed, also on error
 * @filter: what is wanted; must outlive the segment
 * @beside: an open segment recorded before or after this one, with whose keys this one's shall
 * compare, or NULL
 * Return: 0 or negative errno with the story in @why.
 */
int tail_segment_open(struct tail_segment *segment, int fd, const struct event_filter *filter,
		      const struct tail_segment *beside, const struct ctl *ctl, struct fault *why);

/**
 * tail_segment_inherit_names() - what the kernel said while @before was read; before the first
 * event
 */
void tail_segment_inherit_names(struct tail_segment *segment, const struct tail_segment *before);

/**
 * tail_segment_grow() - it is so large now
 * @sizes: NULL: as its own table says. Else dat->n_cpus of them; the low bits do not count.
 */
int tail_segment_grow(struct tail_segment *segment, const uint64_t *sizes, struct fault *why);

/* The key of the newest event of all CPUs */
uint64_t tail_segment_newest(const struct tail_segment *segment);

/**
 * tail_segment_count() - how many of the last events there are
 * @until: the last key that counts
 * @enough: stop looking back when there are so many
 * @ret_from: time from which on they were counted, to become filter.from
 */
int tail_segment_count(struct tail_segment *segment, uint64_t until, uint64_t enough,
		       uint64_t *ret_count, uint64_t *ret_from, struct fault *why);

/**
 * tail_segment_peek() - key of the next event up to the key @until
 * filter.from is to be set before the first call. Return: 1, 0 none (now), or negative errno.
 */
int tail_segment_peek(struct tail_segment *segment, uint64_t until, uint64_t *ret,
		      struct fault *why);

/**
 * tail_segment_print() - take that event
 * @skip: events that are wanted and yet left out, counted down
 * @days: of the lines before
 * @out: gets its line, if the event is wanted
 */
int tail_segment_print(struct tail_segment *segment, uint64_t *skip, struct event_days *days,
		       struct text *out, struct fault *why);

/* Is an event of this key later than filter.to? */
bool tail_segment_past(const struct tail_segment *segment, uint64_t key);

/* Bytes that were not read yet */
uint64_t tail_segment_left(const struct tail_segment *segment);
