/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MaxOverhead=: what tracing costs is looked at every second, and events are switched off, and on
 * again, as daemon/session/budget.h says. While it costs next to nothing and nothing comes, a look
 * comes with each FlushSec=; of a recording also while little comes, as it tells when it has data.
 * Without MaxOverhead= there is none. How often which event happens is counted only when something
 * is to be switched (recorder/event-rates.h).
 * The only writer of struct session_overhead. Main thread, but for run_count(), which is a job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/plumbing/job.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/calibration.h"
#include "daemon/session/session-internal.h"
#include "engine/clock.h"
#include "recorder/event-rates.h"

#define LOOK_USEC    USEC_PER_SEC
#define LOW_PART     0.1 /* of the budget: so little that it need not be looked at every second */
#define LOW_LOOKS    3U	 /* in succession */
#define SHEDS_MAX    64U /* that files are told of */
#define AGAIN_USEC   (10 * USEC_PER_SEC) /* if nothing could be done */
#define NSEC_AT_MOST 2000.0 /* an event costs no more: below the budget so, nothing is measured */

/* What is under way; the session may end meanwhile */
struct overhead_ask {
	struct session *session; /* NULL: it has */
	const struct environment *env;
	struct event_rates_order order; /* of a count */
	char *name;
	char **events; /* those that were shed, to be counted; NULL: all that are traced */
	struct event_rates rates;
};

static double limit_of(const struct session *s)
{
	return s->spec.config->max_overhead / 10000.0;
}

/* Of an event; not measured yet, it is at most */
static double nsec_of(const struct session *s)
{
	return s->overhead.nsec > 0 ? s->overhead.nsec : NSEC_AT_MOST;
}

static double share_of(double per_sec, double nsec)
{
	return per_sec * nsec / (double)NSEC_PER_SEC /
	       (double)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

/* Those that were lost on the way cost as much */
static void begin_window(struct session *s, uint64_t now)
{
	s->overhead.looked_usec = now;
	s->overhead.cpu_usec = session_cpu_usec(s);
	(void)event_rates_total(instance_dir_fd(s->claim.instance),
				instance_n_cpus(s->claim.instance), &s->overhead.events);
}

/* --- what is under way */

static struct overhead_ask *ask_new(struct session *s)
{
	struct overhead_ask *ask = calloc(1, sizeof(*ask));

	if (!ask)
		return NULL;
	*ask = (struct overhead_ask){
		.session = s,
		.env = s->env,
		.order = {.tracing_fd = -EBADF, .instance_fd = -EBADF},
	};
	s->overhead.ask = ask;
	return ask;
}

static void ask_free(struct overhead_ask *ask)
{
	if (ask->session)
		ask->session->overhead.ask = NULL;
	close_p(&ask->order.tracing_fd);
	close_p(&ask->order.instance_fd);
	event_rates_done(&ask->rates);
	strv_free(ask->events);
	free(ask->name);
	free(ask);
}

/* --- switching */

/* @text: "[-]SYSTEM:NAME …", or "SYSTEM" for each of its events */
static bool is_event_of(const char *event, const char *text)
{
	size_t n;

	text += *text == '-';
	n = strcspn(text, ": \t");
	if (text[n] == ':')
		n += 1 + strcspn(text + n + 1, " \t");
	return strncmp(event, text, n) == 0 && (event[n] == '\0' || event[n] == ':');
}

static int order_of(const struct session *s, const char *event)
{
	int order = 0;

	STRV_FOREACH (shed, s->spec.config->shed) {
		if (is_event_of(event, *shed))
			return order;
		order++;
	}
	return -1;
}

static bool is_needed(const struct session *s, const char *event)
{
	const struct trace_config *trace = &s->spec.config->trace;

	STRV_FOREACH (on_event, s->spec.config->snapshot.on_event) {
		if (is_event_of(event, *on_event))
			return true;
	}
	for (size_t i = 0; i < trace->n_triggers; i++) {
		size_t n = strlen(trace->triggers[i].system);

		if (strncmp(event, trace->triggers[i].system, n) == 0 && event[n] == ':' &&
		    strcmp(event + n + 1, trace->triggers[i].name) == 0)
			return true;
	}
	return false;
}

/* Now, by the trace's clock. Return: false if that counts no time. */
static bool trace_nsec(const struct session *s, uint64_t *ret)
{
	struct own_clock now;

	if (clock_read(s->claim.instance, s->spec.config->trace.clock, OWN_CLOCK_STEP, &now) < 0 ||
	    (now.flags & OWN_CLOCK_NO_TRACE))
		return false;
	*ret = now.trace;
	return true;
}

/* For the files: from before it is switched off until after it is on again */
static void tell(struct session *s, const char *event, bool shed)
{
	struct own_sheds *told = &s->overhead.told;
	uint64_t now;

	if (!trace_nsec(s, &now))
		return;
	s->overhead.untold = true;
	if (shed && own_sheds_add(told, event, now, UINT64_MAX) >= 0)
		own_sheds_trim(told, SHEDS_MAX);
	for (size_t i = 0; i < told->n && !shed; i++)
		if (told->list[i].to == UINT64_MAX && strcmp(told->list[i].event, event) == 0)
			told->list[i].to = now;
}

/* Return: false: it is as it was, and the log has why. */
static bool switch_event(struct session *s, const char *event, bool shed)
{
	struct fault why;
	int r = shed ? strv_append(&s->overhead.shed, event) : 0;

	if (r < 0)
		return false;
	if (shed)
		tell(s, event, true);
	r = instance_shed(s->claim.instance, event, shed, &why);
	if (r < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, r, "%s, ignoring", why.text);
	if (!shed || r < 0) {
		strv_remove(s->overhead.shed, event);
		tell(s, event, false);
	}
	return r >= 0;
}

static void mark(const struct session *s, const char *what, const char *names)
{
	_cleanup_free_ char *text = strf("flyrec: %s:%s\n", what, names);

	if (text)
		(void)instance_mark(s->claim.instance, text);
}

/* Switch what is different from how it was, and tell everybody */
static void apply(struct session *s, const struct event_rates *rates,
		  const struct budget_event *events, bool shed)
{
	_cleanup_free_ char *names = strdup("");

	for (size_t i = 0; i < rates->n && names; i++) {
		char *more;

		if (events[i].shed != shed)
			continue;
		more = strf("%s %s", names, rates->events[i].name);
		free(names);
		names = more;
	}
	if (!names)
		return;
	/* Outside the marks there are all of them, between only those from while they are switched
	 */
	if (shed)
		mark(s, "not recorded from here on", names);
	for (size_t i = 0; i < rates->n; i++)
		if (events[i].shed == shed)
			(void)switch_event(s, rates->events[i].name, shed);
	if (!shed)
		mark(s, "recorded again", names);
	(void)log_full(
		LOG_NOTICE, s->name, NULL, 0,
		shed ? "tracing costs %.2f%% of the machine, MaxOverhead=%.2f%%: not recording%s"
		     : "tracing costs %.2f%% of the machine, MaxOverhead=%.2f%%: recording again%s",
		s->overhead.share * 100, limit_of(s) * 100, names);
	s->events->changed(s->events->userdata, s);
}

/* An event's share: of one that is shed, as it was counted; else its part of what the last second
 * has cost, which a short count, of a burst maybe, would not tell */
static double share_of_event(const struct session *s, const struct event_rate *event, bool shed,
			     double sum)
{
	if (!shed)
		return share_of(event->per_sec, s->overhead.nsec);
	return sum > 0 ? s->overhead.share * event->per_sec / sum : 0;
}

static void decide(struct session *s, const struct event_rates *rates, bool shed)
{
	struct session_overhead *o = &s->overhead;
	_cleanup_free_ struct budget_event *events = calloc(MAX(rates->n, 1U), sizeof(*events));
	uint64_t now = now_usec(CLOCK_MONOTONIC);
	double sum = 0;
	size_t changed;

	if (!events)
		return;
	o->budget.limit = limit_of(s);
	for (size_t i = 0; i < rates->n; i++)
		sum += rates->events[i].per_sec;
	for (size_t i = 0; i < rates->n; i++)
		events[i] = (struct budget_event){
			.share = share_of_event(s, &rates->events[i], shed, sum),
			.order = order_of(s, rates->events[i].name),
			.needed = is_needed(s, rates->events[i].name),
			.shed = !shed,
		};
	changed = shed ? budget_shed(&o->budget, now, o->share, events, rates->n)
		       : budget_restore(&o->budget, now, o->share, events, rates->n);
	if (changed > 0) {
		apply(s, rates, events, shed);
		begin_window(s, now_usec(CLOCK_MONOTONIC));
	} else if (shed && sum > 0 && !o->helpless) {
		(void)log_full(
			LOG_WARNING, s->name, NULL, 0,
			"tracing costs %.2f%% of the machine, MaxOverhead=%.2f%%: nothing is left that could be switched off",
			o->share * 100, limit_of(s) * 100);
		o->helpless = true;
	}
}

/* --- counting */

static int run_count(void *userdata, struct fault *why)
{
	struct overhead_ask *ask = userdata;

	ask->order.name = ask->name;
	ask->order.events = ask->events;
	return event_rates_measure(&ask->order, &ask->rates, why);
}

static void on_counted(void *userdata, int result, const struct fault *why)
{
	struct overhead_ask *ask = userdata;
	struct session *s = ask->session;
	struct calibration *c = ask->env->calibration;

	if (s && result >= 0) {
		s->overhead.unknown = false;
		decide(s, &ask->rates, !ask->events);
	} else if (s && !s->overhead.unknown) {
		(void)log_full(LOG_WARNING, s->name, NULL, result,
			       "%s: MaxOverhead= has no effect for now", why->text);
		s->overhead.unknown = true;
	}
	ask_free(ask);
	c->counting = false;
	c->over(c->userdata);
}

/* @events: NULL: those that are traced */
static void count(struct session *s, char *const *events)
{
	struct calibration *c = s->env->calibration;
	struct overhead_ask *ask;

	if (c->counting || !(ask = ask_new(s)))
		return;
	s->overhead.counted_usec = now_usec(CLOCK_MONOTONIC);
	ask->name = strf("%s" CALIBRATION_RATES, s->env->instance_prefix);
	ask->order.tracing_fd = fcntl(s->env->tracing_fd, F_DUPFD_CLOEXEC, 0);
	ask->order.instance_fd = fcntl(instance_dir_fd(s->claim.instance), F_DUPFD_CLOEXEC, 0);
	if (!ask->name || ask->order.tracing_fd < 0 || ask->order.instance_fd < 0 ||
	    (events && strv_copy(events, &ask->events) < 0) ||
	    job_start(s->env->event, run_count, on_counted, ask) < 0)
		ask_free(ask); /* the next look tries again */
	else
		c->counting = true;
}

static void on_calibrated(void *userdata, int result, double nsec, const struct fault *why)
{
	struct overhead_ask *ask = userdata;
	struct session *s = ask->session;

	if (s && result >= 0) {
		s->overhead.nsec = nsec;
		(void)timer_rearm(s->overhead.source, LOOK_USEC / 10);
	} else if (s && !s->overhead.unknown) {
		(void)log_full(LOG_WARNING, s->name, NULL, result,
			       "%s: MaxOverhead= has no effect for now", why->text);
		s->overhead.unknown = true;
	}
	ask_free(ask);
}

static void calibrate(struct session *s)
{
	struct overhead_ask *ask = ask_new(s);

	if (ask && calibration_ask(s->env, on_calibrated, ask) < 0)
		ask_free(ask);
}

/* --- looking */

/* Something has to be done about it, or could be */
static void act(struct session *s, uint64_t now)
{
	struct session_overhead *o = &s->overhead;
	bool over = o->share > limit_of(s);

	if (o->ask)
		return;
	if (o->nsec <= 0) {
		if (over) /* maybe: the next look knows */
			calibrate(s);
		return;
	}
	if (!over)
		o->helpless = false;
	if (over && (!(o->helpless || o->unknown) || now >= o->counted_usec + AGAIN_USEC))
		count(s, NULL);
	else if (!over && o->shed && o->shed[0] && budget_due(&o->budget, now))
		count(s, o->shed);
}

/* Does nothing come that need be looked at every second? A recording tells when it has data. */
static bool rests(const struct session *s)
{
	return s->overhead.low == LOW_LOOKS && (s->mode->drains || s->overhead.silent);
}

/* Of one that can wait the kernel may choose a time at which something else wakes the machine */
static void look_again(struct session *s)
{
	const struct session_overhead *o = &s->overhead;
	uint64_t usec = rests(s) ? MAX(s->spec.config->storage.flush_usec, LOOK_USEC) : LOOK_USEC;

	(void)sd_event_source_set_time_accuracy(o->source,
						o->low == LOW_LOOKS ? usec / 2 : LOOK_USEC / 10);
	(void)timer_rearm(o->source, usec);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;
	struct session_overhead *o = &s->overhead;
	uint64_t now = now_usec(CLOCK_MONOTONIC), before = o->looked_usec, events = o->events,
		 cpu_usec = o->cpu_usec;
	double seconds = (double)MAX(now - before, 1U) / USEC_PER_SEC;

	begin_window(s, now);
	o->silent = o->events == events;
	o->share = share_of((double)(o->events - MIN(events, o->events)) / seconds, nsec_of(s)) +
		   share_of((double)(o->cpu_usec - MIN(cpu_usec, o->cpu_usec)) / seconds,
			    (double)NSEC_PER_USEC);
	if (o->share < limit_of(s) * LOW_PART && !(o->shed && o->shed[0]))
		o->low = MIN(o->low + 1, LOW_LOOKS);
	else
		o->low = 0;
	act(s, now);
	look_again(s);
	return 0;
}

void session_overhead_begin(struct session *s)
{
	if (s->mode->salvage || !s->spec.config || s->spec.config->max_overhead == 0)
		return;
	/* What an earlier process had switched off when it was killed is on again */
	if (s->claim.adopted) {
		(void)trace_nsec(s, &s->overhead.ended);
		mark(s, "recorded again", " all events");
	}
	begin_window(s, now_usec(CLOCK_MONOTONIC));
	if (timer_arm(s->env->event, &s->overhead.source, LOOK_USEC, on_look, s) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, 0,
			       "cannot watch what tracing costs: MaxOverhead= has no effect");
}

void session_overhead_data(struct session *s)
{
	if (!s->overhead.source || s->overhead.low < LOW_LOOKS)
		return;
	s->overhead.low = 0;
	begin_window(s, now_usec(CLOCK_MONOTONIC));
	look_again(s);
}

void session_overhead_restore(struct session *s)
{
	while (s->overhead.shed && s->overhead.shed[0]) {
		_cleanup_free_ char *event = strdup(s->overhead.shed[0]);

		if (!event)
			break;
		if (switch_event(s, event, false)) {
			_cleanup_free_ char *name = strf(" %s", event);

			mark(s, "recorded again", name ? name : "");
		}
	}
	if (s->overhead.ask)
		s->overhead.ask->session = NULL;
	s->overhead.ask = NULL;
}

void session_overhead_end(struct session *s, bool keep_instance)
{
	if (keep_instance && s->claim.instance)
		session_overhead_restore(s);
	if (s->overhead.ask)
		s->overhead.ask->session = NULL;
	sd_event_source_disable_unref(s->overhead.source);
	strv_free(s->overhead.shed);
	own_sheds_done(&s->overhead.told);
	s->overhead = (struct session_overhead){};
}

int session_overhead_tell(const struct session *s, struct file_plan *plan)
{
	plan->params.own.shed_room =
		s->spec.config && s->spec.config->max_overhead > 0 ? OWN_SHED_ROOM : 0;
	plan->sheds_ended = s->overhead.ended;
	own_sheds_done(&plan->sheds);
	return own_sheds_add_all(&plan->sheds, &s->overhead.told);
}

char *const *session_shed(const struct session *s)
{
	return s->overhead.shed;
}
