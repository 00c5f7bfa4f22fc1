/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a clock says now: clock_gettime(2) as one number. Any thread.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds */
uint64_t now_nsec(clockid_t clock);

/* Microseconds */
uint64_t now_usec(clockid_t clock);

uint64_t timespec_usec(struct timespec time);
