/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * status --graph: the last hour of a session as a row of characters, now at the right. Main thread.
 */
#pragma once

#include "ctl/view.h"

#define GRAPH_COLUMNS 60 /* at most: a minute each */

/**
 * graph_columns() - how many columns there are on so much room; each is as many whole minutes
 * Pure function.
 */
unsigned graph_columns(unsigned room);

/**
 * graph_fit() - what comes in each of @n columns, the last of which ends at @now_usec
 * @ret_rate: events a second; below 0: not known
 * @ret_lost: events; likewise
 * Pure function.
 */
void graph_fit(const struct view_hour *hour, uint64_t now_usec, unsigned n, double *ret_rate,
	       double *ret_lost);

/**
 * graph_line() - a character each: ' ' for what is not known, a dot for 0, and eight heights, of
 * which the last is that of the highest value
 * @utf8: blocks; else ASCII
 * Return: malloc'ed, NULL without memory. Pure function.
 */
char *graph_line(const double *values, unsigned n, bool utf8);

/**
 * graph_print() - all of them
 * Return: 0 or -ENOMEM.
 */
int graph_print(const struct view_hours *hours);
