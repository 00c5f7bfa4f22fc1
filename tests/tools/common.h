/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What several test tools need: CPU lists, numbers from the command line, stopping by signal or
 * time, and the "cpu=N first=A last=B" lines that `markers` prints and `check-markers` reads. Test
 * programs end with err(3) when something is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/macro.h"

/**
 * cpus_parse() - a list such as "0,2-3"
 * @list: NULL means the CPUs this process may run on
 * @ret_cpus: malloc'ed, ascending as listed
 * Return: how many; ends the program on a bad list.
 */
unsigned int cpus_parse(const char *list, int **ret_cpus);

/**
 * pin_to_cpu() - make the calling thread run on one CPU only
 * Return: 0 or negative errno.
 */
int pin_to_cpu(int cpu);

/**
 * number_parse() - a decimal number or the end of the program, naming @what
 */
uint64_t number_parse(const char *what, const char *text);

/**
 * seconds_parse() - "2", "0.25": seconds as nanoseconds
 */
uint64_t seconds_parse(const char *what, const char *text);

/**
 * now_nsec() - CLOCK_MONOTONIC in nanoseconds
 */
uint64_t now_nsec(void);

/**
 * stop_signals_block() - block SIGTERM and SIGINT; call before threads are made
 */
void stop_signals_block(void);

/**
 * stop_wait() - wait until SIGTERM or SIGINT, the time is over, or nothing runs any more
 * @nsec: 0 means no limit
 * @running: number of threads still at work, decreased by them
 */
void stop_wait(uint64_t nsec, const unsigned int *running);

/**
 * ranges_read() - read the lines that `markers` prints
 * @each: called for each line; last < first when no marker was written
 */
void ranges_read(const char *path,
		 void (*each)(unsigned int cpu, uint64_t first, int64_t last, void *data),
		 void *data);
