/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "basic/now.h"
#include "basic/strv.h"
#include "basic/timestamp.h"
#include "decode/event-filter.h"

/* Call @take for each word between commas */
static int each_word(struct event_filter *filter, const char *text,
		     int (*take)(struct event_filter *filter, const char *word))
{
	_cleanup_free_ char *copy = strdup(text);
	char *next = NULL;
	bool any = false;

	if (!copy)
		return -ENOMEM;
	for (char *w = strtok_r(copy, ",", &next); w; w = strtok_r(NULL, ",", &next)) {
		int r = take(filter, w);

		if (r < 0)
			return r;
		any = true;
	}
	return any ? 0 : -EINVAL;
}

static int take_event(struct event_filter *filter, const char *word)
{
	for (const char *p = word; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_-.:*?[]!@", *p))
			return -EINVAL;
	return strv_append(&filter->events, word);
}

int event_filter_event(struct event_filter *filter, const char *text)
{
	return each_word(filter, text, take_event);
}

static int take_pid(struct event_filter *filter, const char *word)
{
	unsigned pid;

	if (parse_unsigned(word, &pid) < 0 || pid > INT32_MAX)
		return -EINVAL;
	if (array_grow(&filter->pids, filter->n_pids, sizeof(*filter->pids)) < 0)
		return -ENOMEM;
	filter->pids[filter->n_pids++] = (int32_t)pid;
	filter->has_pids = true;
	return 0;
}

int event_filter_pids(struct event_filter *filter, const char *text)
{
	return each_word(filter, text, take_pid);
}

static int take_unit(struct event_filter *filter, const char *word)
{
	return strv_append(&filter->units, word);
}

int event_filter_unit(struct event_filter *filter, const char *text)
{
	return each_word(filter, text, take_unit);
}

static int take_container(struct event_filter *filter, const char *word)
{
	return strv_append(&filter->containers, word);
}

int event_filter_container(struct event_filter *filter, const char *text)
{
	return each_word(filter, text, take_container);
}

int event_filter_cpus(struct event_filter *filter, const char *text)
{
	filter->has_cpus = true;
	return parse_cpu_list(text, &filter->cpus) < 0 ? -EINVAL : 0;
}

/* "123", "123.456" to 10^-9 */
static bool parse_shown(const char *text, uint64_t *ret_whole, uint64_t *ret_nsec)
{
	uint64_t scale = NSEC_PER_SEC / 10;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret_whole = strtoull(text, &end, 10);
	*ret_nsec = 0;
	if (errno)
		return false;
	if (*end == '.') {
		for (end++; isdigit((unsigned char)*end); end++, scale /= 10)
			*ret_nsec += scale * (uint64_t)(*end - '0');
	}
	return *end == '\0';
}

int event_filter_time(struct event_filter_time *time, const char *text)
{
	uint64_t whole, nsec;
	char *copy;

	time->realtime = false;
	if (parse_shown(text, &whole, &nsec)) {
		if (strchr(text, '.') && whole > UINT64_MAX / NSEC_PER_SEC - 1)
			return -EINVAL;
		/* which of both it is depends on the file: kept as text until then */
		time->value = 0;
	} else {
		int r = timestamp_parse(text, now_usec(CLOCK_REALTIME), &time->value);

		if (r < 0)
			return r;
		time->realtime = true;
	}
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(time->text);
	time->text = copy;
	time->set = true;
	return 0;
}

/* "SYSTEM:NAME", or one word that is either; all with wildcards */
static bool name_fits(const char *pattern, const char *system, const char *name)
{
	_cleanup_free_ char *full = NULL;

	if (!strchr(pattern, ':'))
		return fnmatch(pattern, system, 0) == 0 || fnmatch(pattern, name, 0) == 0;
	full = strf("%s:%s", system, name);
	return full && fnmatch(pattern, full, 0) == 0;
}

/* That a file has none of them is said: nothing would be printed */
static int prepare_cpus(const struct event_filter *filter, const struct trace_dat *dat,
			struct fault *why)
{
	for (unsigned cpu = 0; filter->has_cpus && cpu < dat->n_cpus; cpu++)
		if (cpu_list_has(&filter->cpus, cpu))
			return 0;
	if (!filter->has_cpus || filter->lenient || dat->n_cpus == 0)
		return 0;
	return fault_set(why, -EINVAL, "%s: --cpu=: the file has CPUs 0-%u only", dat->path,
			 dat->n_cpus - 1);
}

static int prepare_events(struct event_filter *filter, const struct trace_dat *dat,
			  const struct decoder *decoder, struct fault *why)
{
	if (!filter->events)
		return 0;
	filter->ids = calloc(SUBBUF_EVENT_IDS, 1);
	if (!filter->ids)
		return fault_errno(why, -ENOMEM, "%s", dat->path);
	STRV_FOREACH (pattern, filter->events) {
		bool any = false;

		for (uint32_t id = 0; id < SUBBUF_EVENT_IDS; id++) {
			int32_t i = decoder_find(decoder, id);

			if (i < 0 || !name_fits(*pattern, dat->systems[dat->formats[i].system],
						decoder_name(decoder, (size_t)i)))
				continue;
			filter->ids[id] = 1;
			any = true;
		}
		if (!any && !filter->lenient)
			return fault_set(why, -EINVAL, "%s: the file has no format of an event %s",
					 dat->path, *pattern);
	}
	return 0;
}

static int prepare_time(const struct event_filter_time *time, const struct trace_dat *dat,
			const struct decoder *decoder, bool until, uint64_t *ret, struct fault *why)
{
	uint64_t whole, nsec;

	if (!time->set)
		return 0;
	if (time->realtime) {
		if (!decoder_facts(decoder)->has_date || !decoder_facts(decoder)->in_usecs)
			return fault_set(why, -EINVAL,
					 "%s: has no times of day (DATE option): give \"%s\" as "
					 "the file's own times are shown, e.g. 123.456",
					 dat->path, time->text);
		*ret = time->value * NSEC_PER_USEC;
		return 0;
	}
	(void)parse_shown(time->text, &whole, &nsec);
	if (!decoder_facts(decoder)->in_usecs) {
		*ret = whole;
		return 0;
	}
	if (whole > UINT64_MAX / NSEC_PER_SEC - 1)
		return fault_set(why, -EINVAL, "%s: no time: %s", dat->path, time->text);
	/* times are shown rounded to microseconds: what is shown as this time belongs to it */
	*ret = whole * NSEC_PER_SEC + nsec;
	if (until)
		*ret += NSEC_PER_USEC / 2 - 1;
	else
		*ret -= MIN(*ret, NSEC_PER_USEC / 2);
	return 0;
}

int event_filter_prepare(struct event_filter *filter, const struct decoder *decoder,
			 struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	int r;

	filter->from = 0;
	filter->to = UINT64_MAX;
	r = prepare_cpus(filter, dat, why);
	if (r >= 0)
		r = prepare_events(filter, dat, decoder, why);
	if (r >= 0)
		r = prepare_time(&filter->since, dat, decoder, false, &filter->from, why);
	if (r >= 0)
		r = prepare_time(&filter->until, dat, decoder, true, &filter->to, why);
	return r;
}

bool event_filter_wants_task(const struct event_filter *filter, const struct decode_event *event)
{
	if (event_filter_has_places(filter) &&
	    !(event->who && event->who->place && event->who->place->wanted))
		return false;
	for (size_t i = 0; i < filter->n_pids; i++)
		if (filter->pids[i] == event->pid)
			return true;
	return !filter->has_pids;
}

void event_filter_done(struct event_filter *filter)
{
	strv_free(filter->events);
	strv_free(filter->units);
	strv_free(filter->containers);
	free(filter->pids);
	free(filter->ids);
	free(filter->since.text);
	free(filter->until.text);
	*filter = (struct event_filter){};
}
