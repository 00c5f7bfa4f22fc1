/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The longest waits of a task: for a CPU, and who ran there meanwhile, or blocked. Takes spans;
 * memory is that of these waits and of each CPU's last runs. One thread.
 */
#pragma once

#include "analysis/run-history.h"
#include "decode/who.h"

#define WHY_SLICES 64U /* of a wait; shorter ones are added up */
#define WHY_LINE   60U /* characters */

struct why_config {
	const char *task;      /* by name, fnmatch(3) */
	int32_t pid;	       /* or, if not 0, by this */
	bool places;	       /* and only where task_place.wanted */
	const struct who *who; /* learns from the same events; NULL: nobody knows */
	unsigned top;	       /* so many waits */
	/* Only those that were going on at this time, to the microsecond, as decoder_time() has it;
	 * read when there are events. NULL: any */
	const uint64_t *at;
};

struct why_wait {
	struct span span; /* SPAN_RUNQUEUE or SPAN_BLOCKED */
	/* Who ran on the CPU meanwhile, as far as it is known; nobody if the task was blocked */
	struct run_shares shares;
	/* The same in order, the last one first */
	struct run_slice slices[WHY_SLICES];
	size_t n;
	uint64_t shorter; /* nanoseconds of slices for which there was no room */
	/* Who ran longest in each part of the wait, as why_letter() has it; '.' where it is not
	 * known who ran */
	char line[WHY_LINE + 1];
	struct span before; /* what the task did until then; its to 0: not known */
	uint64_t after;	    /* nanoseconds that it ran, directly afterwards; 0: not known */
};

/**
 * why_letter() - what stands for a task in the line: 'A' for that of the largest share, 'B'...,
 * '-' for the idle task, '+' for all others
 */
char why_letter(const struct why_wait *wait, const struct span_task *task);

struct why;

int why_new(const struct why_config *config, struct why **ret);
struct why *why_free(struct why *why);
DEFINE_CLEANUP(struct why *, why_free)

/**
 * why_spans() - what is to be fed with events
 */
struct spans *why_spans(struct why *why);

/**
 * why_waits() - what was found, the longest first
 * Return: how many; all are of @why.
 */
size_t why_waits(struct why *why, struct why_wait *const **ret);

/**
 * why_knows() - was there such a task at all?
 */
bool why_knows(const struct why *why);
