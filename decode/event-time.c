/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "basic/now.h"
#include "decode/decoder.h"
#include "decode/event-time.h"

#define QUARTER_NSEC (900 * NSEC_PER_SEC)
#define DAY_SEC	     86400

bool event_time_parse(const char *text, enum event_time_mode *ret)
{
	static const char *const words[] = {
		[EVENT_TIME_EPOCH] = "epoch",	  [EVENT_TIME_LOCAL] = "local",
		[EVENT_TIME_UTC] = "utc",	  [EVENT_TIME_TRACE] = "trace",
		[EVENT_TIME_TRIGGER] = "trigger",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i], text) == 0) {
			*ret = (enum event_time_mode)i;
			return true;
		}
	return false;
}

/* What flyrecd writes into a snapshot: "…\ntime: 2026-01-31 12:34:56.123456 UTC\n…" */
static int find_trigger(const struct trace_dat *dat, uint64_t *ret, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	const char *time, *end;
	struct tm tm = {};
	size_t from = 0;
	unsigned usec;
	int r = trace_dat_next_note(dat, "flyrec snapshot of session", &from, &text, why);

	if (r < 0)
		return r;
	time = r > 0 ? strstr(text, "\ntime: ") : NULL;
	end = time ? strptime(time + strlen("\ntime: "), "%Y-%m-%d %H:%M:%S", &tm) : NULL;
	if (!end || sscanf(end, ".%6u UTC", &usec) != 1)
		return fault_set(why, -EOPNOTSUPP,
				 "%s: --time=trigger: not a snapshot that says what caused it, and "
				 "when",
				 dat->path);
	*ret = (uint64_t)timegm(&tm) * NSEC_PER_SEC + (uint64_t)usec * NSEC_PER_USEC;
	return 0;
}

int event_time_choose(struct event_time *ret, const char *text, enum event_time_mode usual,
		      const struct decoder *decoder, struct fault *why)
{
	bool dated = decoder_facts(decoder)->has_date && decoder_facts(decoder)->in_usecs;
	struct event_time time = {.mode = usual};
	int r = 0;

	if (text && !event_time_parse(text, &time.mode))
		return fault_set(why, -EINVAL, "--time=: \"%s\" is not known", text);
	if (!text && !dated)
		time.mode = EVENT_TIME_EPOCH;
	if (time.mode == EVENT_TIME_TRACE)
		time.zero = (uint64_t)decoder_facts(decoder)->offset;
	else if (time.mode != EVENT_TIME_EPOCH && !dated)
		return fault_set(why, -EOPNOTSUPP,
				 "%s: --time=%s: the file does not tell the time of day: "
				 "--time=epoch shows its own",
				 decoder_dat(decoder)->path, text);
	if (time.mode == EVENT_TIME_TRIGGER)
		r = find_trigger(decoder_dat(decoder), &time.zero, why);
	if (r < 0)
		return r;
	*ret = time;
	return 0;
}

static void break_down(enum event_time_mode mode, uint64_t ts, struct tm *ret)
{
	time_t seconds = (time_t)(ts / NSEC_PER_SEC);

	if (mode == EVENT_TIME_UTC)
		(void)gmtime_r(&seconds, ret);
	else
		(void)localtime_r(&seconds, ret);
}

/* localtime_r() takes a lock and as long as all the rest: once a quarter of an hour will do */
static unsigned second_of_day(struct event_time *time, uint64_t ts)
{
	uint64_t quarter = ts / QUARTER_NSEC;
	struct tm tm;

	if (!time->known || quarter != time->quarter) {
		break_down(time->mode, quarter * QUARTER_NSEC, &tm);
		time->second = (unsigned)(tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec);
		time->quarter = quarter;
		time->known = true;
	}
	return (time->second + (unsigned)(ts % QUARTER_NSEC / NSEC_PER_SEC)) % DAY_SEC;
}

static void put_time_of_day(struct event_time *time, uint64_t ts, struct text *out)
{
	uint64_t rounded = ts + NSEC_PER_USEC / 2;
	unsigned second = second_of_day(time, rounded);

	text_char(out, ' ');
	text_u64_wide(out, second / 3600, 2, '0');
	text_char(out, ':');
	text_u64_wide(out, second / 60 % 60, 2, '0');
	text_char(out, ':');
	text_u64_wide(out, second % 60, 2, '0');
	text_char(out, '.');
	text_u64_wide(out, rounded / NSEC_PER_USEC % USEC_PER_SEC, 6, '0');
}

void event_time_put(struct event_time *time, uint64_t ts, struct text *out)
{
	char number[32];

	if (time->mode == EVENT_TIME_TRIGGER) {
		bool before = ts < time->zero;
		uint64_t usec = ((before ? time->zero - ts : ts - time->zero) + 500) / 1000;

		(void)snprintf(number, sizeof(number), "%s%" PRIu64 ".%03" PRIu64,
			       before ? "-" : "+", usec / 1000, usec % 1000);
		text_fill(out, ' ', 13 - MIN(strlen(number), (size_t)13));
		text_string(out, number);
		text_string(out, "ms");
	} else {
		put_time_of_day(time, ts, out);
	}
}

static void find_day(struct event_days *days, uint64_t ts)
{
	struct tm tm;

	if (days->mode == EVENT_TIME_UTC) {
		days->begin = ts / (DAY_SEC * NSEC_PER_SEC) * (DAY_SEC * NSEC_PER_SEC);
		days->end = days->begin + DAY_SEC * NSEC_PER_SEC;
		return;
	}
	/* a day in which clocks are set has 23 hours, or 25 */
	break_down(days->mode, ts, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	days->begin = (uint64_t)mktime(&tm) * NSEC_PER_SEC;
	tm.tm_mday++;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	days->end = (uint64_t)mktime(&tm) * NSEC_PER_SEC;
}

void event_days_init(struct event_days *days, enum event_time_mode mode, bool today)
{
	*days = (struct event_days){.mode = mode};
	if (today && (mode == EVENT_TIME_LOCAL || mode == EVENT_TIME_UTC))
		find_day(days, now_usec(CLOCK_REALTIME) * NSEC_PER_USEC);
}

bool event_days_changed(struct event_days *days, uint64_t ts)
{
	if (days->mode != EVENT_TIME_LOCAL && days->mode != EVENT_TIME_UTC)
		return false;
	ts += NSEC_PER_USEC / 2; /* as it is shown */
	if (ts >= days->begin && ts < days->end)
		return false;
	find_day(days, ts);
	return true;
}

void event_time_put_day(const struct event_time *time, uint64_t ts, struct text *out)
{
	char text[64];
	struct tm tm;

	break_down(time->mode, ts + NSEC_PER_USEC / 2, &tm);
	if (strftime(text, sizeof(text), time->mode == EVENT_TIME_UTC ? "%F UTC\n" : "%F %Z\n",
		     &tm) > 0)
		text_string(out, text);
}
