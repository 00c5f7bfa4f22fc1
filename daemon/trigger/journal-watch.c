/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/journal-match.h"
#include "daemon/plumbing/journal.h"
#include "daemon/plumbing/timer.h"
#include "daemon/trigger/journal-watch.h"

#define RETRY_USEC	    (60 * USEC_PER_SEC)
#define RETRY_ACCURACY_USEC (10 * USEC_PER_SEC)
/* What came while the journal was closed for a reload is still taken */
#define MISSED_USEC USEC_PER_SEC
/* So many entries at once, so that a flood of them leaves the loop to others, then a pause */
#define AT_ONCE		 256
#define PAUSE_USEC	 (20 * 1000)
#define NAME_MAX_SIZE	 64U
#define MESSAGE_MAX_SIZE 250U
/* Longer values than a term cannot match */
#define THRESHOLD (2 * JOURNAL_TERM_MAX)

struct match {
	char *text;
	char **terms;
	bool *found; /* by term, of the entry that is looked at */
};

struct journal_watch {
	sd_event *event; /* borrowed */
	int64_t priority;
	journal_matched_t on_matched;
	void *userdata;
	sd_journal *journal;	 /* NULL: there is none */
	sd_event_source *source; /* of its descriptor */
	sd_event_source *timer;	 /* to go on, or to look for a journal */
	struct match *matches;
	size_t n;
	/* Monotonic: entries up to then are no news. journald writes them again when it moves its
	 * journal to the disk */
	uint64_t seen_usec;
	char pid[16];
	char trouble[512]; /* "": none */
};

static void free_matches(struct journal_watch *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->matches[i].text);
		free(w->matches[i].found);
		strv_free(w->matches[i].terms);
	}
	free(w->matches);
	w->matches = NULL;
	w->n = 0;
}

static void set_trouble(struct journal_watch *w, const char *text)
{
	if (strcmp(w->trouble, text) == 0)
		return;
	if (*text)
		log_warning("OnJournal= does not work: %s", text);
	else
		log_notice("OnJournal= works again");
	(void)snprintf(w->trouble, sizeof(w->trouble), "%s", text);
}

/* --- entries */

static bool data_is(const void *data, size_t size, const char *text)
{
	return strlen(text) == size && memcmp(data, text, size) == 0;
}

/* Which terms of any match the current entry has */
static int look_for_terms(struct journal_watch *w)
{
	const void *data;
	size_t size;
	int r;

	for (size_t i = 0; i < w->n; i++)
		memset(w->matches[i].found, 0, strv_length(w->matches[i].terms));
	sd_journal_restart_data(w->journal);
	while ((r = sd_journal_enumerate_available_data(w->journal, &data, &size)) > 0)
		for (size_t i = 0; i < w->n; i++)
			for (size_t t = 0; w->matches[i].terms[t]; t++)
				w->matches[i].found[t] |=
					data_is(data, size, w->matches[i].terms[t]);
	return r;
}

static bool is_own(struct journal_watch *w)
{
	const char *pid;
	size_t size;

	return journal_field(w->journal, "_PID", &pid, &size) >= 0 && data_is(pid, size, w->pid);
}

/* For the text in the file; the first line is in the log, too */
static char *lines_of(struct journal_watch *w)
{
	_cleanup_free_ char *name = NULL, *pid = NULL, *unit = NULL, *message = NULL;

	name = journal_name(w->journal, "SYSLOG_IDENTIFIER", "_COMM", NAME_MAX_SIZE);
	pid = journal_name(w->journal, "_PID", "SYSLOG_PID", NAME_MAX_SIZE);
	unit = journal_name(w->journal, "_SYSTEMD_UNIT", NULL, NAME_MAX_SIZE);
	message = journal_name(w->journal, "MESSAGE", NULL, MESSAGE_MAX_SIZE);
	if (!name || !pid || !unit || !message)
		return NULL;
	return strf("journal: %s%s%s%s: %s\n%s%s%s", *name ? name : "-", *pid ? "[" : "", pid,
		    *pid ? "]" : "", message, *unit ? "unit: " : "", unit, *unit ? "\n" : "");
}

/* When it came, by today's wall clock. Return: false: it is no news */
static bool is_news(struct journal_watch *w, uint64_t *ret_usec)
{
	uint64_t usec, now = now_usec(CLOCK_MONOTONIC), real = now_usec(CLOCK_REALTIME);
	sd_id128_t boot; /* this one: a container may have made up an ID for it */

	if (sd_journal_get_monotonic_usec(w->journal, &usec, &boot) < 0 || usec <= w->seen_usec)
		return false;
	w->seen_usec = usec;
	*ret_usec = real - MIN(now - MIN(now, usec), real);
	return true;
}

static void take_entry(struct journal_watch *w)
{
	_cleanup_(strv_freep) char **texts = NULL;
	_cleanup_free_ char *lines = NULL;
	uint64_t usec;

	if (!is_news(w, &usec) || is_own(w) || look_for_terms(w) < 0)
		return;
	lines = lines_of(w);
	for (size_t i = 0; i < w->n; i++)
		if (journal_match_holds(w->matches[i].terms, w->matches[i].found))
			(void)strv_append(&texts, w->matches[i].text);
	/* Whoever is told may ask for other entries, or none */
	STRV_FOREACH (text, texts)
		w->on_matched(w->userdata, *text, lines, usec);
}

/* Return: 1 there may be more, 0, or negative errno */
static int take_entries(struct journal_watch *w)
{
	int r = 1;

	for (unsigned i = 0; i < AT_ONCE && r > 0 && w->journal; i++) {
		r = sd_journal_next(w->journal);
		if (r > 0)
			take_entry(w);
	}
	return r;
}

static void find_journal(struct journal_watch *w);

static void lose_journal(struct journal_watch *w, const char *why);

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void go_on(struct journal_watch *w)
{
	int r = take_entries(w);

	if (r > 0 && w->journal)
		r = timer_arm(w->event, &w->timer, PAUSE_USEC, on_timer, w);
	if (r < 0)
		lose_journal(w, strerror(-r));
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct journal_watch *w = userdata;

	if (w->journal)
		go_on(w);
	else
		find_journal(w);
	return 0;
}

static int on_journal(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct journal_watch *w = userdata;
	int r = sd_journal_process(w->journal);

	/* Also what was rotated or vacuumed is no trouble: the place is kept by number, not by file
	 */
	if (r < 0)
		lose_journal(w, strerror(-r));
	else if (r != SD_JOURNAL_NOP)
		go_on(w);
	return 0;
}

/* --- the journal */

/*
 * To the last entry that is no news: from an entry sd-journal goes on by number, from a time by the
 * wall clock, which may be set back. Matches are set later, as with them all files would be
 * searched for an earlier entry.
 */
static int go_to_news(struct journal_watch *w)
{
	const uint64_t now = now_usec(CLOCK_MONOTONIC);
	int r;

	w->seen_usec = MAX(w->seen_usec, now - MIN(now, MISSED_USEC));
	r = sd_journal_seek_realtime_usec(w->journal, now_usec(CLOCK_REALTIME) -
							      (now - MIN(now, w->seen_usec)));
	if (r >= 0)
		r = sd_journal_previous(w->journal);
	return r == 0 ? sd_journal_seek_head(w->journal) : r; /* 0: there is none */
}

/* Any of them: which one is found out by look_for_terms() */
static int set_matches(struct journal_watch *w)
{
	int r = 0;

	sd_journal_flush_matches(w->journal);
	for (size_t i = 0; i < w->n; i++) {
		STRV_FOREACH (term, w->matches[i].terms)
			if (r >= 0)
				r = strcmp(*term, "+") == 0
					    ? sd_journal_add_disjunction(w->journal)
					    : sd_journal_add_match(w->journal, *term, 0);
		if (r >= 0)
			r = sd_journal_add_disjunction(w->journal);
	}
	return r;
}

static int begin_watching(struct journal_watch *w)
{
	int fd, r = sd_journal_set_data_threshold(w->journal, THRESHOLD);

	if (r >= 0)
		r = go_to_news(w);
	if (r >= 0)
		r = set_matches(w);
	fd = r < 0 ? r : sd_journal_get_fd(w->journal);
	if (fd < 0)
		return fd;
	r = sd_event_add_io(w->event, &w->source, fd, EPOLLIN, on_journal, w);
	if (r >= 0)
		r = sd_event_source_set_priority(w->source, w->priority);
	/* what was written since it was opened */
	return r < 0 ? r : sd_journal_process(w->journal);
}

static void forget_journal(struct journal_watch *w)
{
	w->source = sd_event_source_disable_unref(w->source);
	sd_journal_close(w->journal);
	w->journal = NULL;
}

static void lose_journal(struct journal_watch *w, const char *why)
{
	forget_journal(w);
	set_trouble(w, why);
	w->timer = sd_event_source_disable_unref(w->timer);
	(void)sd_event_add_time_relative(w->event, &w->timer, CLOCK_MONOTONIC, RETRY_USEC,
					 RETRY_ACCURACY_USEC, on_timer, w);
}

static void find_journal(struct journal_watch *w)
{
	struct fault why = {};
	int r = journal_open(&w->journal, &why);

	if (r >= 0) {
		r = begin_watching(w);
		if (r < 0)
			(void)fault_errno(&why, r, "cannot watch the journal");
	}
	if (r < 0) {
		lose_journal(w, why.text);
		return;
	}
	w->timer = sd_event_source_disable_unref(w->timer);
	set_trouble(w, "");
	go_on(w);
}

/* Nobody wants any entry */
static void stop(struct journal_watch *w)
{
	forget_journal(w);
	w->timer = sd_event_source_disable_unref(w->timer);
	w->trouble[0] = '\0';
}

int journal_watch_new(sd_event *event, int64_t priority, journal_matched_t on_matched,
		      void *userdata, struct journal_watch **ret)
{
	struct journal_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->event = event;
	w->priority = priority;
	w->on_matched = on_matched;
	w->userdata = userdata;
	w->seen_usec = now_usec(CLOCK_MONOTONIC);
	(void)snprintf(w->pid, sizeof(w->pid), "%d", getpid());
	*ret = w;
	return 0;
}

static int add_match(struct journal_watch *w, const char *text)
{
	struct match *m;
	struct fault why;

	if (array_grow(&w->matches, w->n, sizeof(*w->matches)) < 0)
		return -ENOMEM;
	m = &w->matches[w->n++];
	*m = (struct match){.text = strdup(text)};
	if (!m->text || journal_match_parse(text, &m->terms, &why) < 0)
		return -ENOMEM;
	m->found = calloc(MAX(strv_length(m->terms), (size_t)1), sizeof(*m->found));
	return m->found && m->terms ? 0 : -ENOMEM;
}

int journal_watch_set(struct journal_watch *w, char *const *texts)
{
	int r = 0;

	free_matches(w);
	STRV_FOREACH (text, texts)
		if (r >= 0)
			r = add_match(w, *text);
	if (r < 0) {
		free_matches(w);
		lose_journal(w, strerror(-r));
		return r;
	}
	if (w->n == 0)
		stop(w);
	else if (!w->journal)
		find_journal(w);
	else if (set_matches(w) < 0)
		lose_journal(w, strerror(ENOMEM));
	return 0;
}

void journal_watch_free(struct journal_watch *w)
{
	if (!w)
		return;
	stop(w);
	free_matches(w);
	free(w);
}

const char *journal_watch_trouble(const struct journal_watch *w)
{
	return *w->trouble ? w->trouble : NULL;
}
