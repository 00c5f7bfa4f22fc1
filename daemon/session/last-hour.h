/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many events came and were lost in each minute of the last hour, for a picture. Nothing is
 * woken for it: it goes by the counters whenever they are read, so that a row may be longer than a
 * minute. Pure functions over a plain structure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LAST_HOUR_ROWS 60

/* Times in microseconds of a clock that does not go back */
struct last_hour_row {
	uint64_t end_usec, usec; /* until when, for how long */
	uint64_t events, lost;
};

/* All zero: nothing is known */
struct last_hour {
	struct last_hour_row rows[LAST_HOUR_ROWS];
	unsigned n, next;
	/* the row that is not complete yet begins there */
	bool begun;
	uint64_t from_usec, events_before, lost_before;
};

/**
 * last_hour_begin() - counting begins, anew after a break; what is known of before stays
 * @events, @lost: totals, as in the others
 */
void last_hour_begin(struct last_hour *hour, uint64_t now_usec, uint64_t events, uint64_t lost);

/**
 * last_hour_add() - the counters have been read
 */
void last_hour_add(struct last_hour *hour, uint64_t now_usec, uint64_t events, uint64_t lost);

/**
 * last_hour_get() - the rows of the hour before @now_usec, oldest first, and the one not complete
 * yet
 * @ret: [LAST_HOUR_ROWS + 1]
 * Return: their number.
 */
unsigned last_hour_get(const struct last_hour *hour, uint64_t now_usec, uint64_t events,
		       uint64_t lost, struct last_hour_row *ret);
