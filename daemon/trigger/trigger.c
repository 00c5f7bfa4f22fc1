/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/latency.h"
#include "config/post.h"
#include "daemon/plumbing/priority.h"
#include "daemon/trigger/event-watch.h"
#include "daemon/trigger/kernel-latency.h"
#include "daemon/trigger/pressure-watch.h"
#include "daemon/trigger/trigger.h"
#include "daemon/trigger/unit-watch.h"
#include "recorder/instance.h"
#include "writer/retention.h"

#define COUNT_USEC (20 * 1000) /* many clients may ask: not each counts anew */
#define SAID_MAX   5	       /* refused triggers in the log, in an interval */

struct pressure_source {
	struct triggers *triggers;
	size_t index; /* in the list of triggers */
	struct pressure_watch *watch;
};

struct triggers {
	sd_event *event;
	const char *name; /* of the session */
	const struct trigger_host *host;
	void *userdata;
	unsigned burst; /* as configured, and: */
	uint64_t interval_usec;
	struct snapshot_burst guests; /* of other hosts */
	struct trigger *items;
	size_t n;
	size_t first_event; /* in items, as many as: */
	char **events;	    /* as watched: each event once */
	struct event_watch *watch;
	char **latencies;     /* OnLatency=, each once, from: */
	size_t first_latency; /* in items */
	struct latency_watch *latency_watch;
	char **kernel_latencies; /* those with way=kernel, each once, from: */
	size_t first_kernel;	 /* in items */
	struct kernel_latency *kernel_latency;
	char **noted; /* what instances of our own are for */
	struct pressure_source *pressures;
	size_t n_pressures;
	bool armed;
	bool gone;	       /* the instance is, and is to be made again */
	uint64_t counted_usec; /* monotonic */
};

const char *trigger_kind_name(enum trigger_kind kind)
{
	static const char *const names[] = {"signal",  "event",	  "pressure", "unit",
					    "latency", "control", "journal",  "peer"};

	return names[kind];
}

/* --- firing */

/* As the configuration says it, for the log */
static void describe(const struct trigger *t, char *ret, size_t size)
{
	static const char *const keys[] = {"SIGUSR1",	    "OnEvent=",	      "OnPressure=",
					   "OnUnitFailed=", "OnLatency=",     "Call",
					   "OnJournal=",    TRIGGER_PEER_NAME};

	(void)snprintf(ret, size, "%s%s", keys[t->kind], t->text);
}

/* Of the lines for the file what is new to who knows the trigger: whose event, which unit, how much
 * pressure */
static void detail_of(const struct trigger *t, const char *lines, char *ret, size_t size)
{
	const char *line = lines;

	if (line && t->kind == TRIGGER_PRESSURE)
		line = strstr(line, "\nnow: ");
	if (line)
		line = strstr(line, ": ");
	(void)snprintf(ret, size, "%s%.*s", line ? ", " : "",
		       line ? (int)strcspn(line + 2, "\n") : 0, line ? line + 2 : "");
}

static struct snapshot_burst limits_of(const struct triggers *all, const struct trigger *t)
{
	return t->kind == TRIGGER_PEER ? all->guests
				       : (struct snapshot_burst){all->burst, all->interval_usec};
}

static bool trigger_admit(const struct triggers *all, struct trigger *t)
{
	struct snapshot_burst limits = limits_of(all, t);

	return trigger_limit_admit(&t->limit, limits.burst, limits.interval_usec,
				   now_usec(CLOCK_MONOTONIC));
}

static uint64_t trigger_wait(const struct triggers *all, const struct trigger *t)
{
	struct snapshot_burst limits = limits_of(all, t);

	return trigger_limit_wait(&t->limit, limits.burst, limits.interval_usec,
				  now_usec(CLOCK_MONOTONIC));
}

/*
 * Once an interval, or as often as it may be about somebody else: who was killed, which unit. That
 * snapshots become rarer is said when a storm begins.
 */
static void log_refused(const struct triggers *all, struct trigger *t, const char *lines)
{
	bool tells = t->kind == TRIGGER_EVENT || t->kind == TRIGGER_UNIT ||
		     t->kind == TRIGGER_LATENCY || t->kind == TRIGGER_CONTROL ||
		     t->kind == TRIGGER_JOURNAL || t->kind == TRIGGER_PEER;
	uint64_t wait_usec = trigger_wait(all, t);
	char what[256], detail[512];

	if (t->limit.refused > (tells ? SAID_MAX : 1))
		return;
	describe(t, what, sizeof(what));
	detail_of(t, lines, detail, sizeof(detail));
	if (t->limit.refused > 1 && t->refused && strcmp(t->refused, detail) == 0)
		return;
	free(t->refused);
	t->refused = strdup(detail);
	if (t->limit.period_usec > 0)
		(void)log_full(LOG_WARNING, all->name, MESSAGE_SNAPSHOT, 0,
			       "%s goes on%s, no snapshot of it for %llu s", what, detail,
			       (unsigned long long)(wait_usec / USEC_PER_SEC + 1));
	else
		(void)log_full(
			LOG_WARNING, all->name, MESSAGE_SNAPSHOT, 0,
			"%s triggered%s, no snapshot of it for %llu s: Burst=%u is used up; "
			"while it goes on the next ones are each twice as far apart, up to an hour",
			what, detail, (unsigned long long)(wait_usec / USEC_PER_SEC + 1),
			limits_of(all, t).burst);
}

/*
 * Ask for the snapshot, and count. @usec: realtime, 0: now; @asker: of a call, or NULL
 * Return: 0; -ENOTCONN; -EUSERS: it has had its snapshots; or another negative errno.
 */
static int trigger_ask(struct triggers *all, struct trigger *t, const char *detail, uint64_t usec,
		       const struct snapshot_asker *asker)
{
	char what[256], text[512];
	struct snapshot_cause cause = {
		.reason = trigger_kind_name(t->kind),
		.what = what,
		.text = text,
		.detail = detail,
		.time_usec = usec,
		.post_usec = t->post_usec,
		.asker = asker,
	};
	int r;

	describe(t, what, sizeof(what));
	detail_of(t, detail, text, sizeof(text));
	cause.rank = retention_rank(t->kind == TRIGGER_PRESSURE, false);
	r = all->host->join(all->userdata, &cause);
	if (r > 0) {
		t->fired++;
		return 0;
	}
	if (r == -ENOTCONN) {
		t->suppressed++;
		return r;
	}
	if (!trigger_admit(all, t)) {
		t->suppressed++;
		log_refused(all, t, detail);
		return -EUSERS;
	}
	cause.rank = retention_rank(t->kind == TRIGGER_PRESSURE, t->limit.taken > 1);
	r = all->host->fire(all->userdata, &cause);
	if (r >= 0) {
		t->fired++;
		return 0;
	}
	t->suppressed++;
	trigger_limit_give_back(&t->limit);
	return r;
}

static void trigger_fire(struct triggers *all, struct trigger *t, const char *detail, uint64_t usec)
{
	(void)trigger_ask(all, t, detail, usec, NULL);
}

void triggers_give_back(struct triggers *all, const char *what)
{
	char text[256];

	for (size_t i = 0; i < all->n; i++) {
		describe(&all->items[i], text, sizeof(text));
		if (strcmp(text, what) == 0)
			trigger_limit_give_back(&all->items[i].limit);
	}
}

/* @why: NULL: it is available. Logged when it is new. A unit may come and go. */
static int trigger_set_unavailable(struct triggers *all, struct trigger *t, const char *why)
{
	char *text = NULL;

	if (why) {
		if (!t->unavailable || strcmp(t->unavailable, why) != 0)
			(void)log_full(*t->text == '-' ? LOG_INFO : LOG_WARNING, all->name,
				       MESSAGE_TRIGGER_UNAVAILABLE, 0,
				       "Trigger %s %s is unavailable, continuing without it: %s",
				       trigger_kind_name(t->kind), t->text, why);
		text = strdup(why);
		if (!text)
			return -ENOMEM;
	} else if (t->unavailable) {
		(void)log_full(LOG_INFO, all->name, NULL, 0, "Trigger %s %s is available",
			       trigger_kind_name(t->kind), t->text);
	}
	free(t->unavailable);
	t->unavailable = text;
	return 0;
}

void triggers_on_signal(struct triggers *all)
{
	if (all->n > 0 && all->items[0].kind == TRIGGER_SIGNAL)
		trigger_fire(all, &all->items[0], NULL, 0);
}

void triggers_on_unit(struct triggers *all, const char *unit, uint64_t usec)
{
	char lines[300];

	(void)snprintf(lines, sizeof(lines), "unit: %s\n", unit);
	for (size_t i = 0; all->armed && i < all->n; i++)
		if (all->items[i].kind == TRIGGER_UNIT &&
		    fnmatch(all->items[i].condition, unit, FNM_NOESCAPE) == 0) {
			trigger_fire(all, &all->items[i], lines, usec);
			return; /* one snapshot, however many patterns */
		}
}

void triggers_on_journal(struct triggers *all, const char *text, const char *lines, uint64_t usec)
{
	for (size_t i = 0; all->armed && i < all->n; i++)
		if (all->items[i].kind == TRIGGER_JOURNAL &&
		    strcmp(all->items[i].condition, text) == 0)
			trigger_fire(all, &all->items[i], lines, usec);
}

/* Of those of which there is one at most */
static struct trigger *find_kind(struct triggers *all, enum trigger_kind kind)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i].kind == kind)
			return &all->items[i];
	return NULL;
}

static int used_up(const struct triggers *all, const struct trigger *t, const char *by,
		   struct fault *why)
{
	return fault_set(why, -EUSERS,
			 "session %s: Burst=%u is used up by earlier %s, no snapshot of one for "
			 "%llu s",
			 all->name, limits_of(all, t).burst, by,
			 (unsigned long long)(trigger_wait(all, t) / USEC_PER_SEC + 1));
}

int triggers_on_call(struct triggers *all, const char *lines, const struct snapshot_asker *asker,
		     struct fault *why)
{
	struct trigger *t = find_kind(all, TRIGGER_CONTROL);
	int r = all->armed && t ? trigger_ask(all, t, lines, 0, asker) : -ENOTCONN;

	if (r == -ENOTCONN)
		return fault_set(why, r, "session %s does not record", all->name);
	if (r != -EUSERS)
		return r < 0 ? fault_errno(why, r, "session %s: cannot take a snapshot", all->name)
			     : 0;
	return used_up(all, t, "calls", why);
}

int triggers_on_peer(struct triggers *all, const char *lines, struct fault *why)
{
	struct trigger *t = find_kind(all, TRIGGER_PEER);

	if (!all->armed || !t)
		return fault_set(why, -ENOTCONN, "session %s does not record", all->name);
	if (!trigger_admit(all, t)) {
		t->suppressed++;
		log_refused(all, t, lines);
		return used_up(all, t, "calls of other hosts", why);
	}
	t->fired++;
	return 0;
}

/* --- the list */

static int add(struct triggers *all, enum trigger_kind kind, const char *text)
{
	struct trigger *more = reallocarray(all->items, all->n + 1, sizeof(*more)), *t;
	struct fault why;

	if (!more)
		return -ENOMEM;
	all->items = more;
	t = &more[all->n++];
	*t = (struct trigger){.kind = kind, .text = strdup(text), .way = ""};
	return t->text ? post_split(text, &t->condition, &t->post_usec, &why) : -ENOMEM;
}

static bool has(const struct triggers *all, enum trigger_kind kind, const char *text)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i].kind == kind && strcmp(all->items[i].text, text) == 0)
			return true;
	return false;
}

/* Each once */
static int add_list(struct triggers *all, enum trigger_kind kind, char *const *list)
{
	int r = 0;

	STRV_FOREACH (text, list)
		if (r >= 0 && !has(all, kind, *text))
			r = add(all, kind, *text);
	return r;
}

static int is_in_kernel(const char *text)
{
	_cleanup_(latency_done) struct latency_config latency = {};
	struct fault why;
	int r = latency_parse(text, true, &latency, &why);

	return r < 0 ? r : latency.in_kernel;
}

/* Each once: those of one way, whose texts are in @ret, too */
static int add_latencies(struct triggers *all, char *const *list, bool in_kernel, char ***ret)
{
	int r = 0;

	STRV_FOREACH (text, list) {
		if (r >= 0)
			r = is_in_kernel(*text);
		if (r < 0 || r != in_kernel || has(all, TRIGGER_LATENCY, *text))
			continue;
		r = add(all, TRIGGER_LATENCY, *text);
		if (r >= 0)
			r = strv_append(ret, *text);
		if (r >= 0)
			all->items[all->n - 1].way = in_kernel ? "kernel" : "user";
	}
	return MIN(r, 0);
}

static bool same_event(const char *a, const char *b)
{
	a += *a == '-';
	b += *b == '-';
	return strcspn(a, " ") == strcspn(b, " ") && strncmp(a, b, strcspn(a, " ")) == 0;
}

/* As for Event=: given again, the later line takes the place of the earlier one */
static int add_events(struct triggers *all, char *const *list)
{
	int r = 0;

	STRV_FOREACH (text, list) {
		bool again = false;

		for (char *const *later = text + 1; *later; later++)
			again |= same_event(*text, *later);
		if (!again && r >= 0)
			r = add(all, TRIGGER_EVENT, *text);
		if (!again && r >= 0)
			r = strv_append(&all->events, all->items[all->n - 1].condition);
	}
	return r;
}

static void free_items(struct trigger *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(items[i].text);
		free(items[i].condition);
		free(items[i].unavailable);
		free(items[i].refused);
	}
	free(items);
}

/* Counters never go back, as long as a trigger is there */
static void carry_over(struct triggers *all, const struct trigger *old, size_t n_old)
{
	for (size_t i = 0; i < all->n; i++)
		for (size_t j = 0; j < n_old; j++)
			if (all->items[i].kind == old[j].kind &&
			    strcmp(all->items[i].text, old[j].text) == 0) {
				all->items[i].fired = old[j].fired;
				all->items[i].suppressed = old[j].suppressed;
				all->items[i].limit = old[j].limit;
			}
}

static int make_list(struct triggers *all, const struct snapshot_config *config)
{
	struct trigger *old = TAKE_PTR(all->items);
	size_t n_old = all->n;
	int r = 0;

	all->n = 0;
	strv_free(TAKE_PTR(all->events));
	strv_free(TAKE_PTR(all->latencies));
	strv_free(TAKE_PTR(all->kernel_latencies));
	strv_free(TAKE_PTR(all->noted));
	if (config->on_signal)
		r = add(all, TRIGGER_SIGNAL, "");
	if (r >= 0)
		r = add(all, TRIGGER_CONTROL, "");
	if (r >= 0 && config->peer_max_usec > 0)
		r = add(all, TRIGGER_PEER, "");
	all->first_event = all->n;
	if (r >= 0)
		r = add_events(all, config->on_event);
	if (r >= 0)
		r = add_list(all, TRIGGER_PRESSURE, config->on_pressure);
	all->first_latency = all->n;
	if (r >= 0)
		r = add_latencies(all, config->on_latency, false, &all->latencies);
	all->first_kernel = all->n;
	if (r >= 0)
		r = add_latencies(all, config->on_latency, true, &all->kernel_latencies);
	if (r >= 0)
		r = strv_copy(all->events, &all->noted);
	STRV_FOREACH (text, all->kernel_latencies)
		if (r >= 0)
			r = strv_append(&all->noted, *text);
	if (r >= 0)
		r = add_list(all, TRIGGER_JOURNAL, config->on_journal);
	if (r >= 0)
		r = add_list(all, TRIGGER_UNIT, config->on_unit_failed);
	carry_over(all, old, n_old);
	free_items(old, n_old);
	return r;
}

/* --- pressure */

static void on_pressure(void *userdata, const char *lines)
{
	struct pressure_source *p = userdata;

	trigger_fire(p->triggers, &p->triggers->items[p->index], lines, 0);
}

static void on_pressure_state(void *userdata, const char *trouble)
{
	struct pressure_source *p = userdata;

	(void)trigger_set_unavailable(p->triggers, &p->triggers->items[p->index], trouble);
}

static int watch_pressure(struct triggers *all, struct pressure_source *source, struct trigger *t)
{
	const struct pressure_watch_calls calls = {
		.on_pressure = on_pressure,
		.on_state = on_pressure_state,
		.userdata = source,
	};
	struct fault why;
	int r = pressure_watch_new(all->event, PRIORITY_TRIGGER, t->condition, &calls,
				   &source->watch, &why);

	return trigger_set_unavailable(all, t, r < 0 ? why.text : NULL);
}

static int watch_pressures(struct triggers *all)
{
	int r = 0;

	all->pressures = calloc(MAX(all->n, 1U), sizeof(*all->pressures));
	if (!all->pressures)
		return -ENOMEM;
	for (size_t i = 0; i < all->n && r >= 0; i++) {
		struct pressure_source *source = &all->pressures[all->n_pressures];

		if (all->items[i].kind != TRIGGER_PRESSURE)
			continue;
		*source = (struct pressure_source){.triggers = all, .index = i};
		all->n_pressures++;
		r = watch_pressure(all, source, &all->items[i]);
	}
	return r;
}

static void close_pressures(struct triggers *all)
{
	for (size_t i = 0; i < all->n_pressures; i++)
		pressure_watch_free(all->pressures[i].watch);
	free(TAKE_PTR(all->pressures));
	all->n_pressures = 0;
}

/* --- events: the instance, what its events do, and for how long nobody listens then */

#define SUFFIX	  ".trigger"   /* of the instance: no session's name has a dot in it */
#define WAIT_USEC (100 * 1000) /* between looks whether the snapshot before is finished */
/* Between looks at a storm that has had its snapshots; where other events share the ring buffer: */
#define STORM_USEC	  USEC_PER_SEC
#define STORM_SHARED_USEC (100 * 1000)

static void on_event(void *userdata, size_t index, const struct event_hit *first, uint64_t more)
{
	struct triggers *all = userdata;
	struct trigger *t = &all->items[all->first_event + index];

	if (first)
		trigger_fire(all, t, first->lines, first->time_usec);
	t->suppressed += more;
}

/* One that goes on beyond its limit */
static bool has_storm(const struct triggers *all, size_t first, size_t n)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);

	for (size_t i = first; i < first + n; i++)
		if (trigger_limit_wait(&all->items[i].limit, all->burst, all->interval_usec, now) >
		    0)
			return true;
	return false;
}

/*
 * A storm is looked at now and then, so that the others are heard and each has its line in the log.
 * Otherwise one snapshot at a time: what happens meanwhile asks for the next.
 */
static struct event_pause pause_of(struct triggers *all, size_t first, size_t n)
{
	if (has_storm(all, first, n))
		return (struct event_pause){.usec = n > 1 ? STORM_SHARED_USEC : STORM_USEC,
					    .storm = true};
	return (struct event_pause){.usec = all->host->busy(all->userdata) ? WAIT_USEC : 0};
}

static struct event_pause pause_events(void *userdata)
{
	struct triggers *all = userdata;

	return pause_of(all, all->first_event, strv_length(all->events));
}

static int instance_of(const char *instance, char **ret, struct fault *why)
{
	*ret = strf("%s" SUFFIX, instance);
	return *ret ? 0 : fault_errno(why, -ENOMEM, "instance %s" SUFFIX, instance);
}

void triggers_remove_stray(const char *session, const char *instance)
{
	_cleanup_free_ char *name = NULL;
	struct fault why;

	if (instance_of(instance, &name, &why) < 0 || instance_remove(name, &why) < 0)
		(void)log_full(LOG_WARNING, session, NULL, why.error, "%s, ignoring", why.text);
	if (kernel_latency_remove_stray(instance, &why) < 0)
		(void)log_full(LOG_WARNING, session, NULL, why.error, "%s, ignoring", why.text);
}

static struct trigger *kernel_trigger(struct triggers *all, size_t i)
{
	return &all->items[all->first_kernel + i];
}

static void trigger_close_kernel(struct triggers *all)
{
	struct fault why;

	if (kernel_latency_free(TAKE_PTR(all->kernel_latency), &why) < 0)
		(void)log_full(LOG_WARNING, all->name, NULL, why.error, "%s", why.text);
}

/* What this kernel cannot do is no reason to record nothing */
static void trigger_open_kernel(struct triggers *all, const char *instance)
{
	struct fault why;
	int r = kernel_latency_new(instance, all->kernel_latencies, &all->kernel_latency, &why);

	for (size_t i = 0; r < 0 && i < strv_length(all->kernel_latencies); i++)
		(void)trigger_set_unavailable(all, kernel_trigger(all, i), why.text);
}

/* First the note, then the deed, as for the session's own instance */
static int trigger_open_events(struct triggers *all, const char *instance, char *const *watched,
			       struct fault *why)
{
	_cleanup_free_ char *name = NULL;
	bool adopt = watched && strv_equal(watched, all->noted);
	int r = 0;

	if (watched && !adopt) {
		triggers_remove_stray(all->name, instance);
		r = all->host->remember(all->userdata, NULL, why);
	}
	if (r >= 0 && !adopt && all->noted)
		r = all->host->remember(all->userdata, all->noted, why);
	if (r >= 0 && all->kernel_latencies)
		trigger_open_kernel(all, instance);
	if (r < 0 || !all->events)
		return r;
	r = instance_of(instance, &name, why);
	return r < 0 ? r
		     : event_watch_new(&(struct event_watch_setup){.name = name,
								   .events = all->events,
								   .adopt = adopt},
				       &all->watch, why);
}

static int trigger_start_events(struct triggers *all, struct fault *why)
{
	const struct event_watch_calls calls = {
		.on_event = on_event,
		.pause = pause_events,
		.userdata = all,
	};
	int r = 0;

	if (all->watch)
		r = event_watch_start(all->watch, all->event, PRIORITY_TRIGGER, &calls, why);
	for (size_t i = 0; r >= 0 && i < strv_length(all->events); i++) {
		struct trigger *t = &all->items[all->first_event + i];

		r = trigger_set_unavailable(
			all, t,
			event_watch_has(all->watch, i) ? NULL : "this kernel has no such event");
	}
	return r;
}

static void trigger_close_events(struct triggers *all, bool keep)
{
	struct fault why;

	if (event_watch_free(TAKE_PTR(all->watch), keep, &why) < 0)
		(void)log_full(LOG_WARNING, all->name, NULL, why.error, "%s", why.text);
}

static void on_kernel_latency(void *userdata, size_t condition, const struct event_hit *first,
			      uint64_t more)
{
	struct triggers *all = userdata;
	struct trigger *t = kernel_trigger(all, condition);

	if (first)
		trigger_fire(all, t, first->lines, first->time_usec);
	t->suppressed += more;
}

static struct event_pause pause_kernel(void *userdata)
{
	struct triggers *all = userdata;

	return pause_of(all, all->first_kernel, strv_length(all->kernel_latencies));
}

static void on_kernel_failure(void *userdata, const struct fault *why)
{
	struct triggers *all = userdata;

	for (size_t i = 0; i < strv_length(all->kernel_latencies); i++)
		(void)trigger_set_unavailable(all, kernel_trigger(all, i), why->text);
	trigger_close_kernel(all);
}

static void trigger_start_kernel(struct triggers *all)
{
	const struct kernel_latency_calls calls = {
		.on_event = on_kernel_latency,
		.pause = pause_kernel,
		.on_failure = on_kernel_failure,
		.userdata = all,
	};
	struct fault why;
	int r;

	if (!all->kernel_latency)
		return; /* and why not has been said */
	r = kernel_latency_start(all->kernel_latency, all->event, PRIORITY_TRIGGER, &calls, &why);
	for (size_t i = 0; i < strv_length(all->kernel_latencies); i++)
		(void)trigger_set_unavailable(all, kernel_trigger(all, i), r < 0 ? why.text : NULL);
	if (r < 0)
		trigger_close_kernel(all);
}

void triggers_watch_again(struct triggers *all, const char *instance, char *const *watched)
{
	struct fault why;
	int r;

	all->gone = false;
	if (!all->armed)
		return;
	trigger_close_events(all, true);
	trigger_close_kernel(all);
	r = trigger_open_events(all, instance, watched, &why);
	if (r >= 0)
		r = trigger_start_events(all, &why);
	trigger_start_kernel(all);
	for (size_t i = 0; r < 0 && i < strv_length(all->events); i++)
		(void)trigger_set_unavailable(all, &all->items[all->first_event + i], why.text);
	if (r < 0)
		trigger_close_events(all, false);
}

bool triggers_check(struct triggers *all)
{
	struct fault why;
	int r;

	if (!all->armed || !all->noted || all->gone)
		return all->gone;
	if (all->events) {
		r = all->watch ? event_watch_check(all->watch, &why) : INSTANCE_GONE;
		if (all->watch && r != INSTANCE_OK)
			(void)log_full(LOG_WARNING, all->name, MESSAGE_MEDDLING, r < 0 ? r : 0,
				       "%s", why.text);
		all->gone = r == INSTANCE_GONE;
	}
	if (all->kernel_latency) {
		r = kernel_latency_check(all->kernel_latency, &why);
		if (r != INSTANCE_OK)
			(void)log_full(LOG_WARNING, all->name, MESSAGE_MEDDLING, r < 0 ? r : 0,
				       "%s", why.text);
		all->gone |= r == INSTANCE_GONE;
	}
	return all->gone;
}

/* --- latencies */

static void on_latency(void *userdata, size_t condition, uint64_t usec, const char *lines)
{
	struct triggers *all = userdata;

	trigger_fire(all, &all->items[all->first_latency + condition], lines, usec);
}

static void on_latencies_left_out(void *userdata, size_t condition, uint32_t n)
{
	struct triggers *all = userdata;

	all->items[all->first_latency + condition].suppressed += n;
}

static void on_latency_state(void *userdata, const char *why)
{
	struct triggers *all = userdata;

	for (size_t i = 0; i < strv_length(all->latencies); i++)
		(void)trigger_set_unavailable(all, &all->items[all->first_latency + i], why);
}

static int open_latency(void *userdata, struct latency_feed *ret, struct fault *why)
{
	struct triggers *all = userdata;

	return all->host->open_latency(all->userdata, ret, why);
}

static int trigger_start_latencies(struct triggers *all)
{
	const struct latency_watch_calls calls = {
		.open = open_latency,
		.on_hit = on_latency,
		.on_left_out = on_latencies_left_out,
		.on_state = on_latency_state,
		.userdata = all,
	};

	for (size_t i = 0; i < strv_length(all->latencies); i++) {
		struct trigger *t = &all->items[all->first_latency + i];

		free(t->unavailable);
		t->unavailable = strdup("its process is starting");
	}
	return all->latencies ? latency_watch_new(all->event, PRIORITY_TRIGGER, all->latencies,
						  &calls, &all->latency_watch)
			      : 0;
}

void triggers_tracing_changed(struct triggers *all)
{
	if (all->latency_watch)
		latency_watch_anew(all->latency_watch);
}

/* --- all */

struct triggers *triggers_new(sd_event *event, const char *name, const struct trigger_host *host,
			      void *userdata)
{
	struct triggers *all = calloc(1, sizeof(*all));

	if (all)
		*all = (struct triggers){
			.event = event, .name = name, .host = host, .userdata = userdata};
	return all;
}

int triggers_prepare(struct triggers *all, const struct snapshot_config *config,
		     const char *instance, char *const *watched, struct fault *why)
{
	int r;

	all->gone = false;
	all->burst = config->burst;
	all->interval_usec = config->interval_usec;
	all->guests = snapshot_burst_of_guests(config);
	STRV_FOREACH (name, config->latency_events)
		(void)log_full(LOG_INFO, all->name, NULL, 0,
			       "Also recording %s, for OnLatency=", *name);
	r = make_list(all, config);
	return r < 0 ? fault_errno(why, r, "cannot set up triggers")
		     : trigger_open_events(all, instance, watched, why);
}

int triggers_arm(struct triggers *all, struct fault *why)
{
	int r = trigger_start_events(all, why);

	if (r >= 0) {
		r = watch_pressures(all);
		if (r >= 0)
			r = trigger_start_latencies(all);
		trigger_start_kernel(all);
		if (r < 0)
			(void)fault_errno(why, r, "cannot set up triggers");
	}
	all->armed = r >= 0;
	all->host->watch_wanted(all->userdata);
	return r;
}

void triggers_disarm(struct triggers *all, bool keep)
{
	all->latency_watch = latency_watch_free(all->latency_watch);
	close_pressures(all);
	trigger_close_events(all, keep);
	trigger_close_kernel(all); /* its histograms hold what is of this process */
	if (!all->armed)
		return;
	all->armed = all->gone = false;
	all->host->watch_wanted(all->userdata);
}

void triggers_free(struct triggers *all)
{
	if (!all)
		return;
	triggers_disarm(all, true);
	free_items(all->items, all->n);
	strv_free(all->events);
	strv_free(all->latencies);
	strv_free(all->kernel_latencies);
	strv_free(all->noted);
	free(all);
}

bool triggers_want_units(const struct triggers *all)
{
	/* They are the last in the list */
	return all->armed && all->n > 0 && all->items[all->n - 1].kind == TRIGGER_UNIT;
}

int triggers_want_journal(const struct triggers *all, char ***list)
{
	int r = 0;

	for (size_t i = 0; all->armed && i < all->n && r >= 0; i++)
		if (all->items[i].kind == TRIGGER_JOURNAL &&
		    !strv_contains(*list, all->items[i].condition))
			r = strv_append(list, all->items[i].condition);
	return r;
}

const struct trigger *triggers_list(struct triggers *all, const char *unit_trouble,
				    const char *journal_trouble, size_t *ret_n)
{
	*ret_n = all->n;
	if (all->watch && now_usec(CLOCK_MONOTONIC) - all->counted_usec >= COUNT_USEC) {
		event_watch_count(all->watch);
		all->counted_usec = now_usec(CLOCK_MONOTONIC);
	}
	for (size_t i = 0; i < all->n; i++) {
		struct trigger *t = &all->items[i];

		const char *trouble = t->kind == TRIGGER_UNIT ? unit_trouble : journal_trouble;

		if (t->kind == TRIGGER_UNIT || t->kind == TRIGGER_JOURNAL) {
			free(t->unavailable);
			t->unavailable = trouble ? strdup(trouble) : NULL;
		}
	}
	return all->items;
}

bool triggers_armed(const struct triggers *all)
{
	return all->armed;
}
