/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who ran last on each CPU: so many slices and no more. One thread.
 */
#pragma once

#include "analysis/spans.h"

#define RUN_HISTORY_SLICES 4096U /* of each CPU */
#define RUN_SHARES	   16U	 /* of a time; smaller ones are added up */

struct run_slice {
	const struct span_task *task; /* NULL: the idle task */
	uint64_t from, to;
	int32_t prio;
	uint64_t irq, softirq; /* as of the span */
};

/* How long a task, or the idle task, had a CPU */
struct run_share {
	const struct span_task *task;
	uint64_t nsec;
	uint32_t runs;
};

struct run_shares {
	struct run_share list[RUN_SHARES]; /* the largest one first */
	size_t n;
	uint64_t others; /* nanoseconds of tasks for which there was no room */
};

struct run_history;

int run_history_new(struct run_history **ret);
struct run_history *run_history_free(struct run_history *history);
DEFINE_CLEANUP(struct run_history *, run_history_free)

/**
 * run_history_add() - note a SPAN_RUN
 * Return: 0 or -ENOMEM.
 */
int run_history_add(struct run_history *history, const struct span *span);

/**
 * run_history_next() - the slices of a CPU, the last one first, as long as they end after @since
 * @at: 0 to begin with
 * Return: false if there is none, or none is known any more.
 */
bool run_history_next(const struct run_history *history, uint32_t cpu, uint64_t since, size_t *at,
		      struct run_slice *ret);

/**
 * run_history_within() - the same of a span's CPU, cut off where it begins and ends
 */
bool run_history_within(const struct run_history *history, const struct span *span, size_t *at,
			struct run_slice *ret);

/**
 * run_history_shares() - who had the CPU of a span while it lasted, as far as it is known
 */
void run_history_shares(const struct run_history *history, const struct span *span,
			struct run_shares *ret);
