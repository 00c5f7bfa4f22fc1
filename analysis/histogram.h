/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long something took, many times: count, total, maximum and a log-linear histogram of fixed
 * size, four buckets for each power of two from 256 ns to 8 s. Owner: the caller; one thread.
 */
#pragma once

#include <errno.h>
#include <stdint.h>

#include "basic/macro.h"

#define HISTOGRAM_BUCKETS 104U

struct measure {
	uint64_t count, total; /* nanoseconds, as all below */
	uint64_t max, max_at;  /* max_at: when the longest one began */
	uint32_t *histogram;   /* HISTOGRAM_BUCKETS counts, made with the third one */
};

/* Times below 1 << FIRST_BITS have linear buckets */
#define HISTOGRAM_FIRST_BITS 8U
/* Buckets for each power of two, as a power of two */
#define HISTOGRAM_STEP_BITS 2U

static inline unsigned histogram_bucket(uint64_t nsec)
{
	unsigned bits, bucket;

	if (nsec < 1U << HISTOGRAM_FIRST_BITS)
		return (unsigned)(nsec >> (HISTOGRAM_FIRST_BITS - HISTOGRAM_STEP_BITS));
	bits = 63U - (unsigned)__builtin_clzll(nsec);
	bucket = ((bits - HISTOGRAM_FIRST_BITS + 1) << HISTOGRAM_STEP_BITS) +
		 (unsigned)((nsec >> (bits - HISTOGRAM_STEP_BITS)) &
			    ((1U << HISTOGRAM_STEP_BITS) - 1));
	return MIN(bucket, HISTOGRAM_BUCKETS - 1);
}

/**
 * measure_add_first() - measure_add() as long as there is no histogram
 */
int measure_add_first(struct measure *measure, uint64_t nsec);

/**
 * measure_add() - one more
 * Return: 0 or -ENOMEM.
 */
static inline int measure_add(struct measure *measure, uint64_t from, uint64_t to)
{
	const uint64_t nsec = to - from;

	if (measure->histogram)
		measure->histogram[histogram_bucket(nsec)]++;
	else if (measure_add_first(measure, nsec) < 0)
		return -ENOMEM;
	if (measure->count++ == 0 || nsec > measure->max) {
		measure->max = nsec;
		measure->max_at = from;
	}
	measure->total += nsec;
	return 0;
}
void measure_done(struct measure *measure);

/**
 * measure_quantile() - so many of them took no longer than this, but for the width of a bucket
 * @permille: of them, 0 to 1000
 * Return: the upper end of the bucket, at most the maximum; 0 if there were none. Of one or two it
 * is exact.
 */
uint64_t measure_quantile(const struct measure *measure, unsigned permille);
