/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ftrace's clocks against the wall clock, for the DATE option and for file names. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "recorder/instance.h"

/**
 * clock_counts_time() - is a timestamp of this trace_clock a number of nanoseconds?
 * Not so for "counter", "uptime" and those of the machine ("x86-tsc" …).
 */
bool clock_counts_time(const char *clock);

/**
 * clock_goes_on_asleep() - does this trace_clock count the time in which the machine is suspended?
 */
bool clock_goes_on_asleep(const char *clock);

/**
 * clock_slept_usec() - how long this machine has been suspended since it was started
 */
int64_t clock_slept_usec(void);

/**
 * clock_date_usec() - realtime minus the instance's clock, microseconds
 * Exact where user space can read the same clock, else from "now ts" of CPU 0's stats (some µs
 * off).
 */
int clock_date_usec(struct instance *instance, const char *clock, int64_t *ret);
