/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/run-history.h"

struct run_history {
	struct ring {
		struct run_slice *slices; /* made with the first one */
		uint64_t n;		  /* ever */
	} * cpus;
	uint32_t n_cpus;
};

int run_history_new(struct run_history **ret)
{
	struct run_history *history = calloc(1, sizeof(*history));

	if (!history)
		return -ENOMEM;
	*ret = history;
	return 0;
}

struct run_history *run_history_free(struct run_history *history)
{
	if (!history)
		return NULL;
	for (uint32_t i = 0; i < history->n_cpus; i++)
		free(history->cpus[i].slices);
	free(history->cpus);
	free(history);
	return NULL;
}

static int add_cpus(struct run_history *history, uint32_t n)
{
	struct ring *cpus;

	if (n <= history->n_cpus)
		return 0;
	cpus = reallocarray(history->cpus, n, sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	history->cpus = cpus;
	while (history->n_cpus < n)
		cpus[history->n_cpus++] = (struct ring){};
	return 0;
}

int run_history_add(struct run_history *history, const struct span *span)
{
	struct ring *ring;

	if (add_cpus(history, span->cpu + 1) < 0)
		return -ENOMEM;
	ring = &history->cpus[span->cpu];
	if (!ring->slices) {
		ring->slices = calloc(RUN_HISTORY_SLICES, sizeof(*ring->slices));
		if (!ring->slices)
			return -ENOMEM;
	}
	ring->slices[ring->n++ % RUN_HISTORY_SLICES] = (struct run_slice){
		.task = span->task,
		.from = span->from,
		.to = span->to,
		.prio = span->prio,
		.irq = span->irq,
		.softirq = span->softirq,
	};
	return 0;
}

bool run_history_next(const struct run_history *history, uint32_t cpu, uint64_t since, size_t *at,
		      struct run_slice *ret)
{
	const struct ring *ring;
	size_t i = (*at)++;

	if (cpu >= history->n_cpus)
		return false;
	ring = &history->cpus[cpu];
	if (i >= MIN(ring->n, (uint64_t)RUN_HISTORY_SLICES))
		return false;
	*ret = ring->slices[(ring->n - 1 - i) % RUN_HISTORY_SLICES];
	return ret->to > since;
}

bool run_history_within(const struct run_history *history, const struct span *span, size_t *at,
			struct run_slice *ret)
{
	struct run_slice slice;

	while (run_history_next(history, span->cpu, span->from, at, &slice)) {
		slice.from = MAX(slice.from, span->from);
		slice.to = MIN(slice.to, span->to);
		if (slice.to <= slice.from)
			continue;
		*ret = slice;
		return true;
	}
	return false;
}

/* --- shares */

struct sums {
	struct run_share list[4 * RUN_SHARES];
	size_t n;
	uint64_t others;
};

static void add_share(struct sums *sums, const struct run_slice *slice)
{
	size_t i = 0;

	while (i < sums->n && sums->list[i].task != slice->task)
		i++;
	if (i == ARRAY_SIZE(sums->list)) {
		sums->others += slice->to - slice->from;
		return;
	}
	if (i == sums->n)
		sums->list[sums->n++] = (struct run_share){.task = slice->task};
	sums->list[i].nsec += slice->to - slice->from;
	sums->list[i].runs++;
}

static int by_nsec(const void *a, const void *b)
{
	const struct run_share *x = a, *y = b;

	return x->nsec < y->nsec ? 1 : -(x->nsec > y->nsec);
}

void run_history_shares(const struct run_history *history, const struct span *span,
			struct run_shares *ret)
{
	struct sums sums = {};
	struct run_slice slice;
	size_t at = 0;

	while (run_history_within(history, span, &at, &slice))
		add_share(&sums, &slice);
	if (sums.n > 0)
		qsort(sums.list, sums.n, sizeof(sums.list[0]), by_nsec);
	ret->n = MIN(sums.n, (size_t)RUN_SHARES);
	memcpy(ret->list, sums.list, ret->n * sizeof(ret->list[0]));
	ret->others = sums.others;
	for (size_t i = ret->n; i < sums.n; i++)
		ret->others += sums.list[i].nsec;
}
