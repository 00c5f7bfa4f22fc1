/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ftrace's clocks, by the names that trace_clock has. Documentation/trace/ftrace.rst,
 * "trace_clock".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/**
 * trace_clock_counts_time() - is a timestamp of this clock a number of nanoseconds?
 * Not so for "counter", "uptime" and those of the machine ("x86-tsc" …).
 */
bool trace_clock_counts_time(const char *clock);

/**
 * trace_clock_goes_on_asleep() - does it count the time in which the machine is suspended?
 */
bool trace_clock_goes_on_asleep(const char *clock);

/**
 * trace_clock_nsec() - a time of day by a clock that counts time, nanoseconds
 * @usec: realtime; UINT64_MAX: the end of all time
 * @date_usec: realtime minus the clock
 */
uint64_t trace_clock_nsec(uint64_t usec, int64_t date_usec);
