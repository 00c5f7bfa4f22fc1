/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "basic/parse.h"

#define SPACE  " \t"
#define DIGITS "0123456789"

struct unit {
	const char *names;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"B", 1}, {"K", KIB}, {"M", MIB}, {"G", GIB}, {"T", TIB},
};

#define MINUTE (60 * USEC_PER_SEC)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* systemd.time(7): 30.44 and 365.25 days */
#define MONTH (2629800 * USEC_PER_SEC)
#define YEAR  (31557600 * USEC_PER_SEC)

static const struct unit time_units[] = {
	{"us usec µs", 1},
	{"ms msec", 1000},
	{"s sec second seconds", USEC_PER_SEC},
	{"m min minute minutes", MINUTE},
	{"h hr hour hours", HOUR},
	{"d day days", DAY},
	{"w week weeks", 7 * DAY},
	{"M month months", MONTH},
	{"y year years", YEAR},
};

static int read_digits(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t n = 0;

	if (!*p || !strchr(DIGITS, *p))
		return -EINVAL;
	for (; *p && strchr(DIGITS, *p); p++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -ERANGE;
	*text = p;
	*ret = n;
	return 0;
}

/* A decimal fraction's digits; the tenth and later say less than any unit here can show */
static int read_fraction(const char **text, uint64_t *ret_digits, uint64_t *ret_scale)
{
	const char *p = *text;
	uint64_t digits = 0, scale = 1;

	if (!*p || !strchr(DIGITS, *p))
		return -EINVAL;
	for (; *p && strchr(DIGITS, *p); p++)
		if (scale < 1000000000) {
			digits = digits * 10 + (uint64_t)(*p - '0');
			scale *= 10;
		}
	*text = p;
	*ret_digits = digits;
	*ret_scale = scale;
	return 0;
}

/* The longest run of bytes that can be a unit's name; UTF-8 continues with bytes >= 0x80 */
static size_t unit_length(const char *p)
{
	size_t n = 0;

	while ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= 'A' && p[n] <= 'Z') ||
	       (unsigned char)p[n] >= 0x80)
		n++;
	return n;
}

static bool is_unit(const struct unit *unit, const char *name, size_t n)
{
	for (const char *p = unit->names; *p; p += strspn(p, " ")) {
		size_t k = strcspn(p, " ");

		if (k == n && memcmp(p, name, n) == 0)
			return true;
		p += k;
	}
	return false;
}

/* One "NUMBER[.FRACTION] [UNIT]"; no unit: @bare */
static int read_scaled(const char **text, const struct unit *units, size_t n_units, uint64_t bare,
		       uint64_t *ret)
{
	uint64_t whole, digits = 0, scale = 1, factor = bare, sum;
	const char *p = *text, *after;
	size_t n;
	int r;

	r = read_digits(&p, &whole);
	if (r < 0)
		return r;
	if (*p == '.') {
		p++;
		r = read_fraction(&p, &digits, &scale);
		if (r < 0)
			return r;
	}
	after = p + strspn(p, SPACE);
	n = unit_length(after);
	if (n > 0) {
		size_t i = 0;

		while (i < n_units && !is_unit(&units[i], after, n))
			i++;
		if (i == n_units)
			return -EINVAL;
		factor = units[i].factor;
		p = after + n;
	}
	/* factor × digits / scale, rounded down; in two parts so that no product overflows */
	digits = digits * (factor / scale) + digits * (factor % scale) / scale;
	if (__builtin_mul_overflow(whole, factor, &sum) ||
	    __builtin_add_overflow(sum, digits, &sum))
		return -ERANGE;
	*text = p;
	*ret = sum;
	return 0;
}

int parse_u64(const char *text, uint64_t *ret)
{
	uint64_t n;
	int r;

	text += strspn(text, SPACE);
	r = read_digits(&text, &n);
	if (r < 0)
		return r;
	if (text[strspn(text, SPACE)])
		return -EINVAL;
	*ret = n;
	return 0;
}

int parse_unsigned(const char *text, unsigned *ret)
{
	uint64_t n;
	int r;

	r = parse_u64(text, &n);
	if (r < 0)
		return r;
	if (n > UINT_MAX)
		return -ERANGE;
	*ret = (unsigned)n;
	return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t n;
	int r;

	text += strspn(text, SPACE);
	r = read_scaled(&text, size_units, ARRAY_SIZE(size_units), 1, &n);
	if (r < 0)
		return r;
	if (text[strspn(text, SPACE)])
		return -EINVAL;
	*ret_bytes = n;
	return 0;
}

int parse_time(const char *text, uint64_t *ret_usec)
{
	uint64_t sum = 0, n;
	int r;

	text += strspn(text, SPACE);
	do {
		r = read_scaled(&text, time_units, ARRAY_SIZE(time_units), USEC_PER_SEC, &n);
		if (r < 0)
			return r;
		if (__builtin_add_overflow(sum, n, &sum))
			return -ERANGE;
		text += strspn(text, SPACE);
	} while (*text);
	*ret_usec = sum;
	return 0;
}

int parse_bool(const char *text, bool *ret)
{
	static const char *const words[][6] = {
		{"0", "no", "n", "false", "f", "off"},
		{"1", "yes", "y", "true", "t", "on"},
	};

	for (size_t b = 0; b < ARRAY_SIZE(words); b++)
		for (size_t i = 0; i < ARRAY_SIZE(words[b]); i++)
			if (strcasecmp(text, words[b][i]) == 0) {
				*ret = b == 1;
				return 0;
			}
	return -EINVAL;
}

int parse_percent(const char *text, unsigned *ret)
{
	uint64_t n;
	int r;

	text += strspn(text, SPACE);
	r = read_digits(&text, &n);
	if (r < 0)
		return r;
	if (*text == '%')
		text++;
	if (text[strspn(text, SPACE)])
		return -EINVAL;
	if (n > 100)
		return -ERANGE;
	*ret = (unsigned)n;
	return 0;
}

void cpu_list_add(struct cpu_list *list, unsigned cpu)
{
	list->bits[cpu / 64] |= 1ULL << (cpu % 64);
}

/* "N" or "N-M" */
static int read_cpu_range(const char **text, struct cpu_list *list)
{
	uint64_t from, to;
	int r;

	r = read_digits(text, &from);
	if (r < 0)
		return r;
	to = from;
	if (**text == '-') {
		(*text)++;
		r = read_digits(text, &to);
		if (r < 0)
			return r;
	}
	if (to < from)
		return -EINVAL;
	if (to >= CPU_LIST_MAX)
		return -ERANGE;
	for (uint64_t cpu = from; cpu <= to; cpu++)
		cpu_list_add(list, cpu);
	return 0;
}

int parse_cpu_list(const char *text, struct cpu_list *ret)
{
	struct cpu_list list = {};
	int r;

	text += strspn(text, SPACE);
	do {
		const char *end;

		r = read_cpu_range(&text, &list);
		if (r < 0)
			return r;
		end = text;
		text += strspn(text, SPACE);
		if (*text == ',') {
			text++;
			text += strspn(text, SPACE);
			if (!*text)
				return -EINVAL;
		} else if (*text && text == end) {
			return -EINVAL;
		}
	} while (*text);
	*ret = list;
	return 0;
}

bool cpu_list_has(const struct cpu_list *list, unsigned cpu)
{
	return cpu < CPU_LIST_MAX && (list->bits[cpu / 64] >> (cpu % 64) & 1);
}

int cpu_list_format(const struct cpu_list *list, char **ret)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < CPU_LIST_MAX; cpu++) {
		unsigned last = cpu;

		if (!cpu_list_has(list, cpu))
			continue;
		while (cpu_list_has(list, last + 1))
			last++;
		(void)fprintf(f, "%s%u", ftell(f) > 0 ? "," : "", cpu);
		if (last > cpu)
			(void)fprintf(f, "-%u", last);
		cpu = last;
	}
	if (fclose(f) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}
