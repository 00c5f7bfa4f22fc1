/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "basic/parse.h"
#include "ctl/timestamp.h"

/* The begin of a day: today's plus @days */
static int begin_of_day(uint64_t now_usec, int days, uint64_t *ret_usec)
{
	time_t now = (time_t)(now_usec / USEC_PER_SEC);
	struct tm tm;

	(void)localtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday += days;
	tm.tm_isdst = -1;
	*ret_usec = (uint64_t)mktime(&tm) * USEC_PER_SEC;
	return 0;
}

/* "-SPAN", "+SPAN", "SPAN ago" */
static int relative(const char *text, uint64_t now_usec, uint64_t *ret_usec)
{
	_cleanup_free_ char *span = strdup(text + (*text == '-' || *text == '+'));
	bool past = *text != '+';
	uint64_t usec;
	size_t n;
	int r;

	if (!span)
		return -ENOMEM;
	n = strlen(span);
	if (*text != '-' && *text != '+')
		span[n - strlen(" ago")] = '\0';
	r = parse_time(span, &usec);
	if (r < 0)
		return r;
	if (past && usec > now_usec)
		return -ERANGE;
	*ret_usec = past ? now_usec - usec : now_usec + usec;
	return 0;
}

/* ".123456": microseconds */
static int parse_fraction(const char *text, uint64_t *ret_usec)
{
	uint64_t usec = 0, unit = USEC_PER_SEC / 10;

	if (*text == '.') {
		if (!text[1])
			return -EINVAL;
		for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
			usec += (uint64_t)(*text - '0') * unit;
	}
	*ret_usec = usec;
	return *text ? -EINVAL : 0;
}

static int absolute(const char *text, uint64_t now_usec, uint64_t *ret_usec)
{
	time_t now = (time_t)(now_usec / USEC_PER_SEC), then;
	const char *end, *time_of_day = text;
	uint64_t fraction = 0;
	struct tm tm, day;
	int r = 0;

	(void)localtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	day = tm;
	end = strptime(text, "%Y-%m-%d", &day); /* writes to it also when it fails */
	if (end) {
		tm = day;
		time_of_day = end + (*end == ' ' || *end == 'T');
		if (*end && time_of_day == end)
			return -EINVAL;
	}
	if (!end || *time_of_day) {
		end = strptime(time_of_day, "%H:%M:%S", &tm);
		if (end)
			r = parse_fraction(end, &fraction);
		else if (!(end = strptime(time_of_day, "%H:%M", &tm)) || *end)
			r = -EINVAL;
	}
	tm.tm_isdst = -1;
	then = mktime(&tm);
	if (r < 0 || then < 0)
		return r < 0 ? r : -ERANGE;
	*ret_usec = (uint64_t)then * USEC_PER_SEC + fraction;
	return 0;
}

int parse_timestamp(const char *text, uint64_t now_usec, uint64_t *ret_usec)
{
	size_t n = strlen(text);
	uint64_t seconds;
	int r;

	if (strcmp(text, "now") == 0) {
		*ret_usec = now_usec;
		return 0;
	}
	if (strcmp(text, "today") == 0)
		return begin_of_day(now_usec, 0, ret_usec);
	if (strcmp(text, "yesterday") == 0)
		return begin_of_day(now_usec, -1, ret_usec);
	if (strcmp(text, "tomorrow") == 0)
		return begin_of_day(now_usec, 1, ret_usec);
	if (*text == '@') {
		r = parse_u64(text + 1, &seconds);
		if (r >= 0 && seconds > UINT64_MAX / USEC_PER_SEC)
			r = -ERANGE;
		if (r >= 0)
			*ret_usec = seconds * USEC_PER_SEC;
		return r;
	}
	if (*text == '-' || *text == '+' || (n > 4 && strcmp(text + n - 4, " ago") == 0))
		return relative(text, now_usec, ret_usec);
	return absolute(text, now_usec, ret_usec);
}
