/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An ask, by set_state():
 *
 *	WAITING -> LISTING   ask_begin(), unless Sessions= says which
 *	LISTING -> ASKING    on_listed(): which sessions; or ask_begin()
 *	ASKING -> DONE       on_taken(): all have answered; it stays, so that its id is known
 *	any -> WAITING       ask_wait(): flyrecd is away
 *	WAITING -> DONE      no longer of use
 *
 * One that has to wait has a file from then on, until it is DONE.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "fleet/asks.h"
#include "fleet/recorder.h"

#define KNOWN_MAX 256U /* of all, and */
#define OPEN_MAX  64U  /* of them, not DONE */
/* Calls at a time: flyrecd has 16 for a client */
#define CALLS_MAX 12U
/* So many ids are in a file */
#define IDS_MAX	   16U
#define AGAIN_USEC (USEC_PER_SEC / 2)

enum ask_state {
	ASK_WAITING,
	ASK_LISTING,
	ASK_ASKING,
	ASK_DONE,
};

struct ask {
	struct ask *next;
	struct asks *asks;
	enum ask_state state;
	struct message m;
	struct window window;
	char **sessions; /* of ASKING */
	size_t n_begun;	 /* of them */
	unsigned n_calls;
	bool away;   /* flyrecd, for one of them */
	bool stored; /* there is a file */
};

struct asks {
	sd_event *event;
	const struct fleet_follow_config *config;
	struct recorder *recorder;
	struct pending *pending;
	sd_event_source *again; /* armed while flyrecd is away */
	struct ask *list;	/* oldest first */
	unsigned n_calls;
	bool away_said, budget_said, none_said;
};

struct call {
	struct ask *ask;
	char *session;
};

static void asks_run(struct asks *a);

static void set_state(struct ask *ask, enum ask_state state)
{
	ask->state = state;
	if (state == ASK_DONE && ask->stored)
		pending_remove(ask->asks->pending, ask->m.id);
	ask->stored = ask->stored && state != ASK_DONE;
}

static void ask_free(struct ask *ask)
{
	strv_free(ask->sessions);
	free(ask);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	asks_run(userdata);
	return 0;
}

int asks_new(sd_event *event, const struct fleet_follow_config *config, const char *runtime_dir,
	     struct pending *pending, struct asks **ret)
{
	struct asks *a = calloc(1, sizeof(*a));
	int r = a ? recorder_new(event, runtime_dir, &a->recorder) : -ENOMEM;

	if (r >= 0) {
		a->event = sd_event_ref(event);
		a->config = config;
		a->pending = pending;
		r = sd_event_add_time_relative(event, &a->again, CLOCK_MONOTONIC, 0, 0, on_again,
					       a);
	}
	if (r < 0) {
		asks_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void asks_free(struct asks *a)
{
	struct ask *ask;

	if (!a)
		return;
	recorder_free(a->recorder);
	while ((ask = a->list)) {
		a->list = ask->next;
		ask_free(ask);
	}
	(void)sd_event_source_disable_unref(a->again);
	(void)sd_event_unref(a->event);
	free(a);
}

/* --- flyrecd is away */

static void ask_store(struct ask *ask)
{
	_cleanup_free_ char *payload = NULL;

	if (!ask->stored && message_write(&ask->m, &payload) >= 0)
		ask->stored = pending_put(ask->asks->pending, ask->m.id, payload);
}

static void ask_wait(struct ask *ask, const char *why)
{
	struct asks *a = ask->asks;

	if (!a->away_said)
		(void)log_warning("flyrecd is away, asking again: %s", why);
	a->away_said = true;
	ask->away = false;
	strv_free(ask->sessions);
	ask->sessions = NULL;
	ask->n_begun = 0;
	set_state(ask, ASK_WAITING);
	ask_store(ask);
	if (sd_event_source_set_time_relative(a->again, AGAIN_USEC) < 0 ||
	    sd_event_source_set_enabled(a->again, SD_EVENT_ONESHOT) < 0)
		(void)log_error("Failed to set a timer");
}

static bool ask_too_old(const struct ask *ask)
{
	return ask->window.until_usec + ask->asks->config->max_age_usec < now_usec(CLOCK_REALTIME);
}

static void flyrecd_answers(struct asks *a)
{
	if (a->away_said)
		(void)log_info("flyrecd is back");
	a->away_said = false;
}

/* --- a session's snapshot */

static void say_taken(struct ask *ask, const char *session, enum recorder_result result,
		      const char *path, bool had, const char *why)
{
	struct asks *a = ask->asks;
	const char *id = ask->m.id;

	switch (result) {
	case RECORDER_DONE:
		a->budget_said = false;
		(void)log_info("%s of %s is %sin %s", id, ask->m.host, had ? "also " : "", path);
		break;
	case RECORDER_NOTHING:
		(void)log_info("%s of %s: nothing was recorded by %s then", id, ask->m.host,
			       session);
		break;
	case RECORDER_LIMITED:
		if (!a->budget_said)
			(void)log_warning("%s of %s, and maybe more: %s", id, ask->m.host, why);
		a->budget_said = true;
		break;
	default:
		(void)log_warning("%s of %s: %s", id, ask->m.host, why);
	}
}

static void on_taken(void *userdata, enum recorder_result result, const char *path, bool had,
		     const char *why)
{
	struct call *call = userdata;
	struct ask *ask = call->ask;
	struct asks *a = ask->asks;

	ask->n_calls--;
	a->n_calls--;
	if (result == RECORDER_AWAY) {
		ask->away = true;
	} else {
		flyrecd_answers(a);
		say_taken(ask, call->session, result, path, had, why);
	}
	free(call->session);
	free(call);
	if (ask->n_calls == 0 && ask->away)
		ask_wait(ask, why);
	else if (ask->n_calls == 0 && ask->n_begun == strv_length(ask->sessions))
		set_state(ask, ASK_DONE);
	asks_run(a);
}

static int call_begin(struct ask *ask, const char *session)
{
	struct call *call = calloc(1, sizeof(*call));
	_cleanup_free_ char *reason = NULL;
	int r = -ENOMEM;

	if (!call)
		return -ENOMEM;
	*call = (struct call){.ask = ask, .session = strdup(session)};
	reason = strf("%s on %s%s%s", ask->m.reason, ask->m.host, ask->m.text[0] ? ": " : "",
		      ask->m.text);
	if (reason && call->session) {
		const struct recorder_window window = {
			.since_usec = ask->window.since_usec,
			.until_usec = ask->window.until_usec,
			.id = ask->m.id,
			.reason = reason,
		};

		r = recorder_take(ask->asks->recorder, session, &window, on_taken, call);
	}
	if (r < 0) {
		free(call->session);
		free(call);
		return r;
	}
	ask->n_calls++;
	ask->asks->n_calls++;
	return 0;
}

/* --- which sessions */

static void on_listed(void *userdata, enum recorder_result result, char **sessions, const char *why)
{
	struct ask *ask = userdata;
	struct asks *a = ask->asks;

	a->n_calls--;
	ask->sessions = sessions;
	if (result == RECORDER_AWAY) {
		ask_wait(ask, why);
	} else if (result != RECORDER_DONE) {
		(void)log_warning("%s of %s: %s", ask->m.id, ask->m.host, why);
		set_state(ask, ASK_DONE);
	} else {
		flyrecd_answers(a);
		if (!sessions && !a->none_said)
			(void)log_warning("%s of %s: no session records and takes snapshots for "
					  "other hosts",
					  ask->m.id, ask->m.host);
		a->none_said = !sessions;
		set_state(ask, sessions ? ASK_ASKING : ASK_DONE);
	}
	asks_run(a);
}

static void ask_begin(struct ask *ask)
{
	struct asks *a = ask->asks;
	int r;

	if (ask_too_old(ask)) {
		(void)log_warning("%s of %s is no longer of use, dropped", ask->m.id, ask->m.host);
		set_state(ask, ASK_DONE);
		return;
	}
	if (a->config->sessions) {
		r = strv_copy(a->config->sessions, &ask->sessions);
		if (r >= 0)
			set_state(ask, ASK_ASKING);
	} else {
		r = recorder_list(a->recorder, on_listed, ask);
		if (r >= 0) {
			set_state(ask, ASK_LISTING);
			a->n_calls++;
		}
	}
	if (r < 0)
		ask_wait(ask, strerror(-r));
}

/* --- all of them */

/* Sessions that have not been asked, while there may be more calls */
static void ask_go_on(struct ask *ask)
{
	struct asks *a = ask->asks;
	int r = 0;

	while (r >= 0 && a->n_calls < CALLS_MAX && !ask->away && ask->sessions[ask->n_begun]) {
		r = call_begin(ask, ask->sessions[ask->n_begun]);
		ask->n_begun += r >= 0;
	}
	if (r < 0 && ask->n_calls == 0)
		ask_wait(ask, strerror(-r));
	else if (r < 0)
		ask->away = true;
}

static void asks_run(struct asks *a)
{
	for (struct ask *ask = a->list; ask; ask = ask->next) {
		if (a->n_calls >= CALLS_MAX)
			return;
		/* One that waits for flyrecd waits for the timer */
		if (ask->state == ASK_WAITING)
			ask_begin(ask);
		if (ask->state == ASK_WAITING)
			return;
		if (ask->state == ASK_ASKING)
			ask_go_on(ask);
	}
}

/* The oldest that is DONE, of too many */
static void asks_forget(struct asks *a, unsigned n)
{
	struct ask *ask = a->list;

	while (ask && (n <= KNOWN_MAX || ask->state != ASK_DONE))
		ask = ask->next;
	if (ask) {
		LIST_REMOVE(a->list, ask);
		ask_free(ask);
	}
}

int asks_add(struct asks *a, const struct message *m, const struct window *window)
{
	struct ask *ask, **at;
	unsigned n = 0, n_open = 0, n_covering = 0;

	for (at = &a->list; *at; at = &(*at)->next) {
		if (strcmp((*at)->m.id, m->id) == 0)
			return ASKS_REPEATED;
		n++;
		n_open += (*at)->state != ASK_DONE;
		n_covering += window_covers(&(*at)->window, window);
	}
	if (n_covering >= IDS_MAX)
		return ASKS_COVERED;
	if (n_open >= OPEN_MAX)
		return ASKS_TOO_MANY;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -ENOMEM;
	*ask = (struct ask){.asks = a, .m = *m, .window = *window};
	*at = ask;
	asks_forget(a, n + 1);
	asks_run(a);
	if (ask->state == ASK_WAITING)
		ask_store(ask);
	return ASKS_TAKEN;
}
