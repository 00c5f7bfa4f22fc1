/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/session/last-hour.h"
#include "basic/macro.h"

#define HOUR_USEC (3600 * USEC_PER_SEC)
#define ROW_USEC  (HOUR_USEC / LAST_HOUR_ROWS)

static struct last_hour_row since_then(const struct last_hour *hour, uint64_t now_usec,
				       uint64_t events, uint64_t lost)
{
	return (struct last_hour_row){
		.end_usec = now_usec,
		.usec = now_usec - hour->from_usec,
		.events = events - MIN(hour->events_before, events),
		.lost = lost - MIN(hour->lost_before, lost),
	};
}

void last_hour_begin(struct last_hour *hour, uint64_t now_usec, uint64_t events, uint64_t lost)
{
	hour->begun = true;
	hour->from_usec = now_usec;
	hour->events_before = events;
	hour->lost_before = lost;
}

void last_hour_add(struct last_hour *hour, uint64_t now_usec, uint64_t events, uint64_t lost)
{
	if (!hour->begun || now_usec < hour->from_usec + ROW_USEC)
		return;
	hour->rows[hour->next] = since_then(hour, now_usec, events, lost);
	hour->next = (hour->next + 1) % LAST_HOUR_ROWS;
	hour->n = MIN(hour->n + 1, (unsigned)LAST_HOUR_ROWS);
	last_hour_begin(hour, now_usec, events, lost);
}

unsigned last_hour_get(const struct last_hour *hour, uint64_t now_usec, uint64_t events,
		       uint64_t lost, struct last_hour_row *ret)
{
	unsigned n = 0, first = (hour->next + LAST_HOUR_ROWS - hour->n) % LAST_HOUR_ROWS;

	for (unsigned i = 0; i < hour->n; i++) {
		const struct last_hour_row *row = &hour->rows[(first + i) % LAST_HOUR_ROWS];

		if (row->end_usec + HOUR_USEC > now_usec)
			ret[n++] = *row;
	}
	if (hour->begun && now_usec > hour->from_usec)
		ret[n++] = since_then(hour, now_usec, events, lost);
	return n;
}
