/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnEvent= of a session: the instance, what its events do, and for how long nobody listens then.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/session/session-internal.h"
#include "daemon/trigger/event-watch.h"
#include "daemon/trigger/trigger-internal.h"

#define SUFFIX	  ".trigger"   /* of the instance: no session's name has a dot in it */
#define WAIT_USEC (100 * 1000) /* between looks whether the snapshot before is finished */
/* Between looks at a storm that has had its snapshots; where other events share the ring buffer: */
#define STORM_USEC	  USEC_PER_SEC
#define STORM_SHARED_USEC (100 * 1000)

static void on_event(void *userdata, size_t index, const struct event_hit *first, uint64_t more)
{
	struct session *s = userdata;
	struct trigger *t = &s->triggers->items[s->triggers->first_event + index];

	if (first)
		trigger_fire(s, t, first->lines, first->time_usec);
	t->suppressed += more;
}

/* One that goes on beyond its limit */
static bool has_storm(const struct session *s)
{
	const struct snapshot_config *config = &s->config->snapshot;
	const struct triggers *all = s->triggers;
	uint64_t now = now_usec(CLOCK_MONOTONIC);

	for (size_t i = 0; i < strv_length(all->events); i++)
		if (trigger_limit_wait(&all->items[all->first_event + i].limit, config->burst,
				       config->interval_usec, now) > 0)
			return true;
	return false;
}

/*
 * A storm is looked at now and then, so that the others are heard and each has its line in the log.
 * Otherwise one snapshot at a time: what happens meanwhile asks for the next.
 */
static struct event_pause pause_events(void *userdata)
{
	struct session *s = userdata;

	if (has_storm(s))
		return (struct event_pause){.usec = strv_length(s->triggers->events) > 1
							    ? STORM_SHARED_USEC
							    : STORM_USEC,
					    .storm = true};
	return (struct event_pause){.usec = session_snapshots_busy(s) ? WAIT_USEC : 0};
}

static int instance_of(const char *instance, char **ret, struct fault *why)
{
	if (asprintf(ret, "%s" SUFFIX, instance) >= 0)
		return 0;
	*ret = NULL;
	return fault_errno(why, -ENOMEM, "instance %s" SUFFIX, instance);
}

void triggers_remove_stray(const struct session *s, const char *instance)
{
	_cleanup_free_ char *name = NULL;
	struct fault why;

	if (instance_of(instance, &name, &why) < 0 || event_watch_remove(name, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring", why.text);
}

/* Between steps only: jobs write the state file, too, and use the segment, which is short of room
 * maybe */
static int note_watched(struct session *s, char *const *events, struct fault *why)
{
	char **copy = NULL;
	int r = strv_copy(events, &copy);

	if (r < 0)
		return fault_errno(why, r, "cannot note the events of session %s", s->name);
	strv_free(s->kernel->watched);
	s->kernel->watched = copy;
	return session_write_state(s, why);
}

/* First the note, then the deed, as for the session's own instance */
int trigger_open_events(struct session *s, struct fault *why)
{
	struct triggers *all = s->triggers;
	_cleanup_free_ char *name = NULL;
	bool adopt;
	int r = 0;

	if (s->kernel->watched && !strv_equal(s->kernel->watched, all->events)) {
		triggers_remove_stray(s, instance_name(s->instance));
		r = note_watched(s, NULL, why);
	}
	if (r < 0 || !all->events)
		return r;
	adopt = s->kernel->watched;
	if (!adopt)
		r = note_watched(s, all->events, why);
	if (r >= 0)
		r = instance_of(instance_name(s->instance), &name, why);
	if (r >= 0)
		r = event_watch_new(name, all->events, adopt, &all->watch, why);
	return r;
}

int trigger_start_events(struct session *s, struct fault *why)
{
	const struct event_watch_calls calls = {
		.on_event = on_event,
		.pause = pause_events,
		.userdata = s,
	};
	struct triggers *all = s->triggers;
	int r = 0;

	if (all->watch)
		r = event_watch_start(all->watch, s->daemon->event, PRIORITY_TRIGGER, &calls, why);
	for (size_t i = 0; r >= 0 && i < strv_length(all->events); i++) {
		struct trigger *t = &all->items[all->first_event + i];

		r = trigger_set_unavailable(
			s, t,
			event_watch_has(all->watch, i) ? NULL : "this kernel has no such event");
	}
	return r;
}

void trigger_close_events(struct session *s, bool keep)
{
	struct fault why;

	if (event_watch_free(TAKE_PTR(s->triggers->watch), keep, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s", why.text);
}

void triggers_watch_again(struct session *s)
{
	struct triggers *all = s->triggers;
	struct fault why;
	int r;

	s->watch_wanted = false;
	if (!all || !all->armed)
		return;
	trigger_close_events(s, true);
	r = trigger_open_events(s, &why);
	if (r >= 0)
		r = trigger_start_events(s, &why);
	for (size_t i = 0; r < 0 && i < strv_length(all->events); i++)
		(void)trigger_set_unavailable(s, &all->items[all->first_event + i], why.text);
	if (r < 0)
		trigger_close_events(s, false);
}

void triggers_check(struct session *s)
{
	struct triggers *all = s->triggers;
	struct fault why;
	int r;

	if (!all || !all->armed || !all->events || s->watch_wanted)
		return;
	r = all->watch ? event_watch_check(all->watch, &why) : INSTANCE_GONE;
	if (all->watch && r != INSTANCE_OK)
		(void)log_full(LOG_WARNING, s->name, MESSAGE_MEDDLING, r < 0 ? r : 0, "%s",
			       why.text);
	s->watch_wanted = r == INSTANCE_GONE;
}
