/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "basic/now.h"
#include "engine/clock.h"
#include "formats/trace-clock.h"

#define READINGS_MAX 10
#define READING_NSEC (20 * (int64_t)NSEC_PER_USEC) /* good enough, if one takes no longer */

#define STEP_USEC     (USEC_PER_SEC / 1000) /* less is not worth a file */
#define BIG_STEP_USEC USEC_PER_SEC
#define BETWEEN_USEC  (10 * USEC_PER_SEC) /* files for smaller ones */

/* Clocks that clock_gettime(2) has too; Documentation/trace/ftrace.rst, "trace_clock" */
static const struct {
	const char *name;
	clockid_t id;
} readable[] = {
	{"mono", CLOCK_MONOTONIC},
	{"mono_raw", CLOCK_MONOTONIC_RAW},
	{"boot", CLOCK_BOOTTIME},
	{"tai", CLOCK_TAI},
};

int64_t clock_slept_usec(void)
{
	uint64_t awake = now_usec(CLOCK_MONOTONIC);

	return (int64_t)(now_usec(CLOCK_BOOTTIME) - awake);
}

/* @ret: nanoseconds by the instance's clock */
static int read_clock(struct instance *instance, const char *clock, int64_t *ret)
{
	struct cpu_stats stats;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(readable); i++)
		if (strcmp(clock, readable[i].name) == 0) {
			*ret = (int64_t)now_nsec(readable[i].id);
			return 0;
		}
	if (!trace_clock_counts_time(clock))
		return -EOPNOTSUPP;
	r = instance_read_stats(instance, 0, &stats);
	*ret = r < 0 ? 0 : (int64_t)stats.now_usec * (int64_t)NSEC_PER_USEC;
	return r;
}

/* Between the readings others may run for many milliseconds, or the clock be set: the best of some
 */
int clock_date_usec(struct instance *instance, const char *clock, int64_t *ret)
{
	int64_t best = INT64_MAX;

	for (unsigned i = 0; i < READINGS_MAX && best > READING_NSEC; i++) {
		int64_t before = (int64_t)now_nsec(CLOCK_REALTIME), after, then;
		int r = read_clock(instance, clock, &then);

		if (r < 0)
			return r;
		after = (int64_t)now_nsec(CLOCK_REALTIME);
		if (i > 0 && (after < before || after - before >= best))
			continue;
		best = after < before ? INT64_MAX : after - before;
		*ret = (before + (after - before) / 2 - then) / (int64_t)NSEC_PER_USEC;
	}
	return 0;
}

bool clock_date_is_off(int64_t recorded_usec, int64_t now_usec, uint64_t since_usec)
{
	uint64_t off = now_usec > recorded_usec ? (uint64_t)now_usec - (uint64_t)recorded_usec
						: (uint64_t)recorded_usec - (uint64_t)now_usec;

	return off >= STEP_USEC && (off >= BIG_STEP_USEC || since_usec >= BETWEEN_USEC);
}
