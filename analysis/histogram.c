/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "analysis/histogram.h"

#define STEPS (1U << HISTOGRAM_STEP_BITS)

static uint64_t bucket_end(unsigned bucket)
{
	if (bucket < STEPS)
		return (bucket + UINT64_C(1)) << (HISTOGRAM_FIRST_BITS - HISTOGRAM_STEP_BITS);
	return (UINT64_C(1) + STEPS + bucket % STEPS)
	       << (bucket / STEPS - 1 + HISTOGRAM_FIRST_BITS - HISTOGRAM_STEP_BITS);
}

/* Of the first two both are known by their total and the longer one: most tasks have no more */
int measure_add_first(struct measure *measure, uint64_t nsec)
{
	if (measure->count < 2)
		return 0;
	measure->histogram = calloc(HISTOGRAM_BUCKETS, sizeof(*measure->histogram));
	if (!measure->histogram)
		return -ENOMEM;
	measure->histogram[histogram_bucket(measure->max)]++;
	measure->histogram[histogram_bucket(measure->total - measure->max)]++;
	measure->histogram[histogram_bucket(nsec)]++;
	return 0;
}

void measure_done(struct measure *measure)
{
	free(measure->histogram);
	*measure = (struct measure){};
}

uint64_t measure_quantile(const struct measure *measure, unsigned permille)
{
	/* as many as make up so much, rounded up */
	uint64_t wanted = (measure->count * permille + 999) / 1000, n = 0;

	if (measure->count == 2 && wanted < 2)
		return measure->total - measure->max;
	for (unsigned i = 0; measure->histogram && i < HISTOGRAM_BUCKETS - 1; i++) {
		n += measure->histogram[i];
		if (n >= wanted)
			return MIN(bucket_end(i), measure->max);
	}
	return measure->max;
}
