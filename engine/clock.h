/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ftrace's clocks against the wall clock, for the DATE option and for file names. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "formats/own-clocks.h"
#include "recorder/instance.h"

/**
 * clock_slept_usec() - how long this machine has been suspended since it was started
 */
int64_t clock_slept_usec(void);

/**
 * clock_now_nsec() - the instance's clock
 * As exact as for clock_date_usec(). Return: 0, -EOPNOTSUPP: it counts no time; or negative errno.
 */
int clock_now_nsec(const struct instance *instance, const char *clock, uint64_t *ret);

/**
 * clock_date_usec() - realtime minus the instance's clock, microseconds
 * Exact where user space can read the same clock, else from "now ts" of CPU 0's stats (some µs
 * off).
 */
int clock_date_usec(const struct instance *instance, const char *clock, int64_t *ret);

/**
 * clock_read() - all clocks at one moment, as near as it gets
 * @at: what it is for
 * The trace's clock as exact as for clock_date_usec(). Return: 0 or negative errno.
 */
int clock_read(const struct instance *instance, const char *clock, enum own_clock_at at,
	       struct own_clock *ret);

/* What clock_date_usec() would have said; of one without OWN_CLOCK_NO_TRACE */
int64_t clock_reading_date_usec(const struct own_clock *reading);

/**
 * clock_date_stays() - do two readings of a clock tell the same date, as far as they can?
 * Then files keep the one that they have: the same event has the same time in all of them. A better
 * reading than the one before is never put aside.
 */
bool clock_date_stays(const struct own_clock *before, const struct own_clock *now);

/**
 * clock_date_is_off() - is the date that a file has not that of now, and shall a new file begin?
 * @recorded_usec: clock_date_usec() as the file has it; @now_usec: as it is now
 * @since_usec: how long ago a file was begun for this reason
 *
 * Only to be asked after the clock was set or the machine was suspended: the kernel tells of both,
 * and slews realtime and "mono", "boot" and "tai" alike. Other clocks drift with the correction of
 * the frequency, 1.8 s an hour at most, which is no reason to begin files for ever.
 * Steps add up, as it is not the last look that counts. Many of less than a second, as hosts of
 * virtual machines may make them, share a file.
 */
bool clock_date_is_off(int64_t recorded_usec, int64_t now_usec, uint64_t since_usec);
