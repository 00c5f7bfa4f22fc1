/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What takes longer than it should: conditions over spans as they end, and over those that still go
 * on, which latency_tick() asks for. Of each wait a condition is fulfilled once. What can be told
 * of a condition beside that: how long whatever it is about took, so that a limit can be chosen.
 * Memory does not grow with the number of waits. One thread.
 */
#pragma once

#include "analysis/histogram.h"
#include "analysis/latency-config.h"
#include "analysis/sources.h"
#include "decode/who.h"

#define LATENCY_APART_NSEC NSEC_PER_SEC /* triggers within it have one snapshot */

struct latency_setup {
	const struct latency_config *conditions; /* borrowed, as all here */
	size_t n;
	const struct who *who; /* learns from the same events; NULL: nobody knows units */
	/* Whose system calls' numbers these are; read when there are events */
	const struct sources_facts *facts;
	bool measure; /* what does not last long enough, too */
	/* A condition is fulfilled by this span, which may go on. Less than 0 ends the analysis.
	 * NULL: they are only counted. */
	int (*on_hit)(void *userdata, size_t condition, const struct span *span);
	void *userdata;
};

/* Of one condition */
struct latency_facts {
	struct measure measure;	       /* of all that it is about, but for open ones */
	const struct span_task *worst; /* of the longest one; NULL: of no task */
	uint64_t hits;
	uint64_t snapshots; /* hits of which none comes within LATENCY_APART_NSEC of the last one
			       that counted */
};

struct latency;

int latency_new(const struct latency_setup *setup, struct latency **ret);
struct latency *latency_free(struct latency *latency);
DEFINE_CLEANUP(struct latency *, latency_free)

/**
 * latency_spans() - what is to be fed with events
 */
struct spans *latency_spans(struct latency *latency);

/**
 * latency_pick() - which events of a file are looked at
 * The machine of the facts is known by then.
 */
void latency_pick(const struct latency *latency, const struct spans_file *file,
		  struct subbuf_pick *ret);

/**
 * latency_thin() - prepare to drop events that are part of no wait long enough for any condition
 */
void latency_thin(struct latency *latency, const struct spans_file *file, struct thin *ret);

/**
 * latency_tick() - what has been going on for too long at this time?
 * @now: as decoder_time(), not before the last event
 * Return: 0, what on_hit() returned, or -ENOMEM.
 */
int latency_tick(struct latency *latency, uint64_t now);

/**
 * latency_facts() - of the condition so far
 */
const struct latency_facts *latency_facts(const struct latency *latency, size_t condition);

#define LATENCY_NEEDS 2U

/**
 * latency_missing() - events that were not recorded and without which nothing fulfills the
 * condition Return: how many there are in @ret, at most LATENCY_NEEDS.
 */
size_t latency_missing(const struct latency *latency, size_t condition, const char **ret);

/**
 * latency_suggest() - a limit that is reached seldom: three times what 99.9 % take at most, rounded
 * up to two digits
 * Return: nanoseconds, whole microseconds; 0: nothing is known.
 */
uint64_t latency_suggest(const struct measure *measure);
