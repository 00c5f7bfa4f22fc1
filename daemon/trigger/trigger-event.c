/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnEvent= of a session: the instance, what its events do, and for how long nobody listens then.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/plumbing/priority.h"
#include "daemon/trigger/event-watch.h"
#include "daemon/trigger/trigger-internal.h"
#include "recorder/instance.h"

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
static bool has_storm(const struct triggers *all)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);

	for (size_t i = 0; i < strv_length(all->events); i++)
		if (trigger_limit_wait(&all->items[all->first_event + i].limit, all->burst,
				       all->interval_usec, now) > 0)
			return true;
	return false;
}

/*
 * A storm is looked at now and then, so that the others are heard and each has its line in the log.
 * Otherwise one snapshot at a time: what happens meanwhile asks for the next.
 */
static struct event_pause pause_events(void *userdata)
{
	struct triggers *all = userdata;

	if (has_storm(all))
		return (struct event_pause){.usec = strv_length(all->events) > 1 ? STORM_SHARED_USEC
										 : STORM_USEC,
					    .storm = true};
	return (struct event_pause){.usec = all->host->busy(all->userdata) ? WAIT_USEC : 0};
}

static int instance_of(const char *instance, char **ret, struct fault *why)
{
	if (asprintf(ret, "%s" SUFFIX, instance) >= 0)
		return 0;
	*ret = NULL;
	return fault_errno(why, -ENOMEM, "instance %s" SUFFIX, instance);
}

void triggers_remove_stray(const char *session, const char *instance)
{
	_cleanup_free_ char *name = NULL;
	struct fault why;

	if (instance_of(instance, &name, &why) < 0 || event_watch_remove(name, &why) < 0)
		(void)log_full(LOG_WARNING, session, NULL, why.error, "%s, ignoring", why.text);
}

/* First the note, then the deed, as for the session's own instance */
int trigger_open_events(struct triggers *all, const char *instance, char *const *watched,
			struct fault *why)
{
	_cleanup_free_ char *name = NULL;
	bool adopt = watched && strv_equal(watched, all->events);
	int r = 0;

	if (watched && !adopt) {
		triggers_remove_stray(all->name, instance);
		r = all->host->remember(all->userdata, NULL, why);
	}
	if (r < 0 || !all->events)
		return r;
	if (!adopt)
		r = all->host->remember(all->userdata, all->events, why);
	if (r >= 0)
		r = instance_of(instance, &name, why);
	if (r >= 0)
		r = event_watch_new(name, all->events, adopt, &all->watch, why);
	return r;
}

int trigger_start_events(struct triggers *all, struct fault *why)
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

void trigger_close_events(struct triggers *all, bool keep)
{
	struct fault why;

	if (event_watch_free(TAKE_PTR(all->watch), keep, &why) < 0)
		(void)log_full(LOG_WARNING, all->name, NULL, why.error, "%s", why.text);
}

void triggers_watch_again(struct triggers *all, const char *instance, char *const *watched)
{
	struct fault why;
	int r;

	all->gone = false;
	if (!all->armed)
		return;
	trigger_close_events(all, true);
	r = trigger_open_events(all, instance, watched, &why);
	if (r >= 0)
		r = trigger_start_events(all, &why);
	for (size_t i = 0; r < 0 && i < strv_length(all->events); i++)
		(void)trigger_set_unavailable(all, &all->items[all->first_event + i], why.text);
	if (r < 0)
		trigger_close_events(all, false);
}

bool triggers_check(struct triggers *all)
{
	struct fault why;
	int r;

	if (!all->armed || !all->events || all->gone)
		return all->gone;
	r = all->watch ? event_watch_check(all->watch, &why) : INSTANCE_GONE;
	if (all->watch && r != INSTANCE_OK)
		(void)log_full(LOG_WARNING, all->name, MESSAGE_MEDDLING, r < 0 ? r : 0, "%s",
			       why.text);
	all->gone = r == INSTANCE_GONE;
	return all->gone;
}
