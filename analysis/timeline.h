/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a picture of a recording is drawn from: who ran where, who waited and was woken by whom,
 * handlers, requests, losses, and how many events came when. Takes spans. Of what is too much for
 * the room what lies closest together is merged, but not in the windows that matter. One thread.
 */
#pragma once

#include "analysis/histogram.h"
#include "analysis/spans.h"

#define TIMELINE_BINS 240U

struct timeline_window {
	uint64_t from, to;
};

struct timeline_config {
	uint64_t from, to; /* of the recording, as decoder_time() has them */
	/* Where nothing is merged, if there is room for that; borrowed */
	const struct timeline_window *windows;
	size_t n_windows;
	size_t room; /* for all that timeline_draw() gives out, bytes */
};

struct timeline_task {
	const struct span_task *task;
	char before[16]; /* the name that it had first, NUL-terminated; "": the same */
};

/*
 * Items are in groups, those of a kind and a row. All numbers are of 7 bits a byte, the lowest
 * first, the 8th bit set in all but the last:
 *
 *   { kind row n { delta length cpu << 2 | flags [count busy] [waker] } * n } * groups
 *
 * delta: from the beginning of the item before, of the first one from the beginning of the
 * recording. row: a task, by its place in @tasks plus 1, 0: those that are too short to be drawn
 * one by one; or a label, by its place in @labels; of a loss the CPU. busy: so many 255ths of it,
 * all of its @count items together. waker: 0 the idle task, 1 an interrupt, 2 a softirq, else a
 * task's row plus 2.
 */
enum timeline_kind {
	TIMELINE_RUN,
	TIMELINE_WAIT, /* for a CPU */
	TIMELINE_BLOCKED,
	TIMELINE_IRQ,
	TIMELINE_SOFTIRQ,
	TIMELINE_REQUEST,
	TIMELINE_LOSS,
	_TIMELINE_MAX,
};

enum {
	TIMELINE_MERGED = 1, /* flags; of a loss: count is of events, 0: unknown */
	TIMELINE_WOKEN = 2,
};

struct timeline_picture {
	uint8_t *bytes;
	size_t size, n_groups, n_items;
	struct timeline_task *tasks;
	size_t n_tasks;
	const struct span_label **labels;
	size_t n_labels;
	uint64_t grain;	   /* what is closer together than this is one; 0: nothing was merged */
	uint64_t left_out; /* waits shorter than that */
	size_t n_exact;	   /* windows in which that is not so */
};

struct timeline;

int timeline_new(const struct timeline_config *config, struct timeline **ret);
struct timeline *timeline_free(struct timeline *timeline);
DEFINE_CLEANUP(struct timeline *, timeline_free)

/**
 * timeline_spans() - what is to be fed with events
 */
struct spans *timeline_spans(struct timeline *timeline);

/**
 * timeline_count() - the same events, for the rate
 */
void timeline_count(void *timeline, const struct event_run *run);

/**
 * timeline_draw() - after the last event
 * @ret: undo with timeline_picture_done(); tasks and labels are of @timeline
 * Return: 0 or -ENOMEM.
 */
int timeline_draw(struct timeline *timeline, struct timeline_picture *ret);
void timeline_picture_done(struct timeline_picture *picture);

/**
 * timeline_rate() - events in each TIMELINE_BINSth of the recording
 */
const uint64_t *timeline_rate(const struct timeline *timeline);

/**
 * timeline_measure() - how long spans of a kind were
 */
const struct measure *timeline_measure(const struct timeline *timeline, enum span_kind kind);
