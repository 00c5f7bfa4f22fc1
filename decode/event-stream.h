/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events of a trace.dat one after the other: those of all CPUs and ring buffers in the order of
 * their times, or in another one. Of equal times the lower buffer, then the lower CPU comes first,
 * as in trace-cmd. The file may be one that is still being written. One thread, but what an event
 * points to may be read by others.
 */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include "basic/fault.h"
#include "decode/event-filter.h"
#include "formats/subbuf.h"

struct event_stream;

struct event_stream_config {
	const struct event_filter *filter; /* prepared, outlives the stream; NULL: all events */
	bool all;	  /* what the filter does not want is given out, too, but for its CPUs */
	bool pair_leaves; /* show a function that calls no other as one event */
	bool no_tasks;	  /* leave the events' tasks NULL */
	/* Who the events' tasks are, which takes all events in order of time; outlives the stream.
	 * NULL: nobody asks. Where the filter asks, a file must say */
	struct who *who;
	/* [dat->n_cpus]: bytes of each CPU that are there now, of a file with one ring buffer that
	 * grows; NULL: as the file says */
	const uint64_t *sizes;
	/* Others are as if they were not there; outlives the stream. NULL: all are */
	const struct subbuf_pick *pick;
	/* From the next events of a CPU, none lost between them, with their times as decoder_time()
	 * has them, this leaves some out, not the first one. Return: how many are left. For
	 * event_stream_run(). NULL: all are given out */
	unsigned (*thin)(void *userdata, struct subbuf_event *events, unsigned n);
	void *thin_userdata;
	/* In place of the file's data: the next whole sub-buffers of this CPU, @size bytes at most.
	 * Return: how many, 0: none now, or negative errno with @why. NULL: it is in the file */
	ssize_t (*read)(void *userdata, uint32_t cpu, uint8_t *bytes, size_t size,
			struct fault *why);
	void *userdata; /* of read() */
	size_t memory;	/* bytes for reading all CPUs, roughly; 0: 128 MiB */
	bool aligned;	/* events are read so that the file may have O_DIRECT meanwhile */
	/* A part of the file is broken and was left out; @text names the file. NULL: don't tell */
	void (*on_fault)(const char *text);
};

/**
 * event_stream_new() - begin before the first event that is wanted
 * @decoder: outlives the stream, as does its file
 * Return: 0 or negative errno with the story in @why.
 */
int event_stream_new(const struct decoder *decoder, const struct event_stream_config *config,
		     struct event_stream **ret, struct fault *why);
struct event_stream *event_stream_free(struct event_stream *stream);
DEFINE_CLEANUP(struct event_stream *, event_stream_free)

/**
 * event_stream_order() - give events out by the lowest key, not by time; before the first event
 * @key: of an event that the filter wants; grows within each CPU. false: leave the event out
 * Filtering comes first then: events have no tasks and leaves are not paired.
 */
void event_stream_order(struct event_stream *stream,
			bool (*key)(void *userdata, const struct decode_event *event,
				    uint64_t *ret),
			void *userdata);

/**
 * event_next() - the next event that is wanted
 * @ret: good until the next call
 * Return: 1, 0 when there is none (now), or negative errno with the story in @why.
 */
int event_next(struct event_stream *stream, struct decode_event *ret, struct fault *why);

/* What a set of events points into; all zero to begin with */
struct event_keep {
	struct event_block **blocks;
	size_t n, room;
	uint64_t serial;
};

/**
 * event_next_keep() - event_next(), with @ret good until @keep is cleared
 */
int event_next_keep(struct event_stream *stream, struct event_keep *keep, struct decode_event *ret,
		    struct fault *why);

/**
 * event_keep_clear() - the events are not needed any more; the stream's thread
 */
void event_keep_clear(struct event_keep *keep);
void event_keep_done(struct event_keep *keep);

/* Events of one CPU that come before those of all others */
struct event_run {
	const struct subbuf_event *events; /* their times as decoder_time() has them */
	size_t n;
	uint32_t cpu, buffer;
	uint64_t offset; /* in the file, of the first one's data */
	int64_t missed;	 /* before the first one; as in struct decode_event */
	bool big_endian; /* likewise */
};

/* Which kind of event it is */
static inline uint16_t event_run_id(const struct event_run *run, size_t i)
{
	uint16_t id;

	memcpy(&id, run->events[i].data, sizeof(id));
	return run->big_endian ? be16toh(id) : le16toh(id);
}

/**
 * event_stream_run() - the next events that are wanted, for those who take many of them
 * @ret: good until the next call. They are not looked at: nothing is identified, leaves are not
 * paired, no task's name is learned; not after event_stream_order().
 * Return: as event_next().
 */
int event_stream_run(struct event_stream *stream, struct event_run *ret, struct fault *why);

/**
 * event_peek() - the time of the next event, wanted or not
 * Return: as event_next().
 */
int event_peek(struct event_stream *stream, uint64_t *ret, struct fault *why);

/**
 * event_stream_until() - as if there were no events later than @until (now)
 * Where a function's end is later than that, it is not paired.
 */
void event_stream_until(struct event_stream *stream, uint64_t until);

/**
 * event_stream_grow() - there is more of the file
 * @sizes: as in the configuration; less than before is ignored. With read(): NULL
 */
void event_stream_grow(struct event_stream *stream, const uint64_t *sizes);

/**
 * event_stream_left() - bytes of the file that have not been read yet
 */
uint64_t event_stream_left(const struct event_stream *stream);

/**
 * event_stream_rename() - a task has this name from now on
 * Return: 0 or -ENOMEM.
 */
int event_stream_rename(struct event_stream *stream, int32_t pid, const char *name);

/**
 * event_stream_task() - set event->task again, after event_stream_rename()
 */
int event_stream_task(struct event_stream *stream, struct decode_event *event);

/**
 * event_stream_faults() - how many parts of the file were broken
 */
size_t event_stream_faults(const struct event_stream *stream);

/**
 * event_stream_keep_most() - how many blocks may be kept for about @bytes; no fewer than it takes
 * to go on
 */
size_t event_stream_keep_most(const struct event_stream *stream, size_t bytes);
