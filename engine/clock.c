/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/timex.h>
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
static int read_clock(const struct instance *instance, const char *clock, int64_t *ret)
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

int clock_now_nsec(const struct instance *instance, const char *clock, uint64_t *ret)
{
	int64_t nsec;
	int r = read_clock(instance, clock, &nsec);

	if (r >= 0)
		*ret = (uint64_t)nsec;
	return r;
}

struct reading {
	int64_t realtime, trace, mono_raw, boot; /* nanoseconds */
	int64_t width;
	bool no_trace;
};

static int read_once(const struct instance *instance, const char *clock, struct reading *ret)
{
	int64_t before = (int64_t)now_nsec(CLOCK_REALTIME), after;
	int r = read_clock(instance, clock, &ret->trace);

	if (r < 0 && r != -EOPNOTSUPP)
		return r;
	ret->no_trace = r < 0;
	if (ret->no_trace)
		ret->trace = 0;
	ret->mono_raw = (int64_t)now_nsec(CLOCK_MONOTONIC_RAW);
	ret->boot = (int64_t)now_nsec(CLOCK_BOOTTIME);
	after = (int64_t)now_nsec(CLOCK_REALTIME);
	ret->width = after < before ? INT64_MAX : after - before;
	ret->realtime = before + (after - before) / 2;
	return 0;
}

/* Between the readings others may run for many milliseconds, or the clock be set: the best of some
 */
static int read_best(const struct instance *instance, const char *clock, struct reading *ret)
{
	struct reading best = {.width = INT64_MAX};

	for (unsigned i = 0; i < READINGS_MAX && best.width > READING_NSEC; i++) {
		struct reading now;
		int r = read_once(instance, clock, &now);

		if (r < 0)
			return r;
		if (i == 0 || now.width < best.width)
			best = now;
	}
	*ret = best;
	return 0;
}

int clock_date_usec(const struct instance *instance, const char *clock, int64_t *ret)
{
	struct reading best;
	int r = read_best(instance, clock, &best);

	if (r < 0 || best.no_trace)
		return r < 0 ? r : -EOPNOTSUPP;
	*ret = (best.realtime - best.trace) / (int64_t)NSEC_PER_USEC;
	return 0;
}

/* How well the wall clock is kept. Who may not ask that can still tell TAI from it. */
static void read_status(struct own_clock *c)
{
	struct timex status = {};
	int64_t tai;

	if (adjtimex(&status) >= 0) {
		c->maxerror = (uint32_t)status.maxerror;
		c->status = (uint32_t)status.status;
		c->tai = status.tai;
		return;
	}
	tai = (int64_t)(now_nsec(CLOCK_TAI) - now_nsec(CLOCK_REALTIME));
	c->tai = (int32_t)((tai + (int64_t)NSEC_PER_SEC / 2) / (int64_t)NSEC_PER_SEC);
	c->flags |= OWN_CLOCK_NO_STATUS;
}

int clock_read(const struct instance *instance, const char *clock, enum own_clock_at at,
	       struct own_clock *ret)
{
	struct reading best;
	int r = read_best(instance, clock, &best);

	if (r < 0)
		return r;
	*ret = (struct own_clock){
		.realtime = (uint64_t)best.realtime,
		.trace = (uint64_t)best.trace,
		.mono_raw = (uint64_t)best.mono_raw,
		.boot = (uint64_t)best.boot,
		.width = (uint32_t)MIN(best.width, (int64_t)UINT32_MAX),
		.at = at,
		.flags = best.no_trace ? OWN_CLOCK_NO_TRACE : 0,
	};
	read_status(ret);
	return 0;
}

int64_t clock_reading_date_usec(const struct own_clock *reading)
{
	return ((int64_t)reading->realtime - (int64_t)reading->trace) / (int64_t)NSEC_PER_USEC;
}

bool clock_date_stays(const struct own_clock *before, const struct own_clock *now)
{
	const uint64_t width = (uint64_t)before->width + now->width;
	const int64_t off =
		(int64_t)((now->realtime - now->trace) - (before->realtime - before->trace));

	return !((before->flags | now->flags) & OWN_CLOCK_NO_TRACE) &&
	       before->width <= MAX(now->width, (uint32_t)READING_NSEC) &&
	       (off < 0 ? 0 - (uint64_t)off : (uint64_t)off) <= width / 2;
}

bool clock_date_is_off(int64_t recorded_usec, int64_t now_usec, uint64_t since_usec)
{
	uint64_t off = now_usec > recorded_usec ? (uint64_t)now_usec - (uint64_t)recorded_usec
						: (uint64_t)recorded_usec - (uint64_t)now_usec;

	return off >= STEP_USEC && (off >= BIG_STEP_USEC || since_usec >= BETWEEN_USEC);
}
