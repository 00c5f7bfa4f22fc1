/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "basic/parse.h"
#include "basic/timestamp.h"

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

/* Cut @word and the blanks before it off the end */
static bool cut_suffix(char *text, const char *word)
{
	size_t n = strlen(text), w = strlen(word);

	if (n <= w || strcasecmp(text + n - w, word) != 0 ||
	    !isspace((unsigned char)text[n - w - 1]))
		return false;
	for (n -= w; n > 0 && isspace((unsigned char)text[n - 1]); n--)
		;
	text[n] = '\0';
	return true;
}

static int parse_relative(const char *span, bool back, uint64_t now, uint64_t *ret)
{
	uint64_t usec;
	int r;

	r = parse_time(span, &usec);
	if (r < 0)
		return r;
	if (back ? usec > now : usec > UINT64_MAX - now)
		return -ERANGE;
	*ret = back ? now - usec : now + usec;
	return 0;
}

/* Up to six digits behind a point; more are left out */
static const char *parse_fraction(const char *p, uint64_t *ret)
{
	uint64_t scale = USEC_PER_SEC / 10;

	*ret = 0;
	if (*p != '.')
		return p;
	if (!isdigit((unsigned char)*++p))
		return NULL;
	for (; isdigit((unsigned char)*p); p++, scale /= 10)
		*ret += scale * (uint64_t)(*p - '0');
	return p;
}

static int parse_epoch(const char *p, uint64_t *ret)
{
	uint64_t seconds, usec;
	char *end;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	errno = 0;
	seconds = strtoull(p, &end, 10);
	if (errno || seconds > UINT64_MAX / USEC_PER_SEC - 1)
		return -ERANGE;
	p = parse_fraction(end, &usec);
	if (!p || *p)
		return -EINVAL;
	*ret = seconds * USEC_PER_SEC + usec;
	return 0;
}

/* @n digits at least 1, at most @max */
static const char *parse_digits(const char *p, unsigned max, int *ret)
{
	unsigned n;

	*ret = 0;
	for (n = 0; n < max && isdigit((unsigned char)*p); n++, p++)
		*ret = *ret * 10 + (*p - '0');
	return n > 0 ? p : NULL;
}

static int days_of(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (leap && month == 2);
}

/* YYYY-MM-DD */
static const char *parse_date(const char *p, struct tm *tm)
{
	int year, month, day;

	p = parse_digits(p, 4, &year);
	if (!p || *p != '-')
		return NULL;
	p = parse_digits(p + 1, 2, &month);
	if (!p || *p != '-')
		return NULL;
	p = parse_digits(p + 1, 2, &day);
	if (!p || month < 1 || month > 12 || day < 1 || day > days_of(year, month))
		return NULL;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	tm->tm_mday = day;
	return p;
}

/* HH:MM, HH:MM:SS, HH:MM:SS.FRACTION, to the end of the text */
static bool parse_clock(const char *p, struct tm *tm, uint64_t *ret_usec)
{
	p = parse_digits(p, 2, &tm->tm_hour);
	if (!p || *p != ':')
		return false;
	p = parse_digits(p + 1, 2, &tm->tm_min);
	tm->tm_sec = 0;
	if (p && *p == ':') {
		p = parse_digits(p + 1, 2, &tm->tm_sec);
		p = p ? parse_fraction(p, ret_usec) : NULL;
	}
	return p && !*p && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 61;
}

static bool parse_day_word(const char *text, int *ret)
{
	static const struct {
		const char *word;
		int days;
	} words[] = {{"today", 0}, {"yesterday", -1}, {"tomorrow", 1}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasecmp(text, words[i].word) == 0) {
			*ret = words[i].days;
			return true;
		}
	}
	return false;
}

/* Date, time or both; what is missing is today, and midnight */
static int parse_calendar(const char *p, struct tm *tm, uint64_t *ret_usec)
{
	const char *rest;
	int days;

	if (isalpha((unsigned char)*p) && !parse_day_word(p, &days)) {
		p += strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
		if (!isspace((unsigned char)*p))
			return -EINVAL;
		p = skip_space(p);
	}
	*ret_usec = 0;
	tm->tm_isdst = -1;
	if (!strchr(p, '-') && strchr(p, ':'))
		return parse_clock(p, tm, ret_usec) ? 0 : -EINVAL;
	tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
	if (parse_day_word(p, &days)) {
		tm->tm_mday += days;
		return 0;
	}
	rest = parse_date(p, tm);
	if (!rest)
		return -EINVAL;
	if (!*rest)
		return 0;
	if (*rest != 'T' && !isspace((unsigned char)*rest))
		return -EINVAL;
	rest = *rest == 'T' ? rest + 1 : skip_space(rest);
	return parse_clock(rest, tm, ret_usec) ? 0 : -EINVAL;
}

static bool cut_utc(char *text)
{
	size_t n = strlen(text);

	if (cut_suffix(text, "UTC"))
		return true;
	if (n < 2 || text[n - 1] != 'Z' || !isdigit((unsigned char)text[n - 2]))
		return false;
	text[n - 1] = '\0';
	return true;
}

int timestamp_parse(const char *text, uint64_t now, uint64_t *ret)
{
	time_t seconds = (time_t)(now / USEC_PER_SEC), day;
	_cleanup_free_ char *copy = strdup(skip_space(text));
	uint64_t usec;
	struct tm tm;
	bool utc;
	int r;

	if (!copy)
		return -ENOMEM;
	for (size_t n = strlen(copy); n > 0 && isspace((unsigned char)copy[n - 1]); n--)
		copy[n - 1] = '\0';
	if (strcasecmp(copy, "now") == 0) {
		*ret = now;
		return 0;
	}
	if (copy[0] == '@')
		return parse_epoch(copy + 1, ret);
	if (copy[0] == '-' || copy[0] == '+')
		return parse_relative(copy + 1, copy[0] == '-', now, ret);
	if (cut_suffix(copy, "ago"))
		return parse_relative(copy, true, now, ret);
	if (cut_suffix(copy, "left"))
		return parse_relative(copy, false, now, ret);
	utc = cut_utc(copy);
	if (!(utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)))
		return -ERANGE;
	r = parse_calendar(copy, &tm, &usec);
	if (r < 0)
		return r;
	day = utc ? timegm(&tm) : mktime(&tm);
	if (day < 0)
		return -ERANGE;
	*ret = (uint64_t)day * USEC_PER_SEC + usec;
	return 0;
}
