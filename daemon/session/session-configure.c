/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a session does about a new configuration: nothing, another segment, other events, or all
 * anew. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/log.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/session-runtime.h"

/*
 * Everything but [Trace]: the instance stays, the next segment is made the new way, snapshots are
 * taken the new way and for other reasons
 */
static int take_rest(struct session *s, const struct session_config *config)
{
	_cleanup_(session_config_freep) struct session_config *copy = NULL;
	int r = session_config_copy(config, &copy);

	if (r < 0)
		return r;
	if (!s->flight &&
	    memcmp(&s->config->storage, &config->storage, sizeof(config->storage)) != 0)
		s->wants |= WANT_ROTATE;
	s->config->storage = copy->storage;
	SWAP(s->config->snapshot, copy->snapshot);
	SWAP(s->config->description, copy->description);
	SWAP(s->config->text, copy->text);
	s->wants |= WANT_TRIGGERS | (s->flight ? WANT_METHOD : 0);
	session_advance(s);
	return 0;
}

/* Is nothing but the list of events different? */
static bool only_events_differ(const struct session_config *a, const struct session_config *b)
{
	_cleanup_(session_config_freep) struct session_config *copy = NULL;
	struct trace_event *events;
	size_t n;
	bool same;

	if (session_config_copy(b, &copy) < 0)
		return false;
	events = copy->trace.events;
	n = copy->trace.n_events;
	copy->trace.events = a->trace.events;
	copy->trace.n_events = a->trace.n_events;
	same = session_config_retext(copy) >= 0 && strcmp(copy->trace_text, a->trace_text) == 0;
	copy->trace.events = events;
	copy->trace.n_events = n;
	return same;
}

/* What comes to an end is followed by a start like this */
static int pend(struct session *s, const struct session_config *config)
{
	struct session_config *copy;
	int r = session_config_copy(config, &copy);

	if (r < 0)
		return r;
	session_config_free(s->pending);
	s->pending = copy;
	return 0;
}

static int restart_as(struct session *s, const struct session_config *config)
{
	int r = pend(s, config);

	if (r < 0)
		return r;
	s->wants = (s->wants | WANT_STOP) & ~WANT_HAND_OVER;
	session_advance(s);
	return 0;
}

int session_prepare_triggers(struct session *s, struct fault *why)
{
	if (!s->salvage)
		return triggers_prepare(s->triggers, &s->config->snapshot,
					instance_name(s->instance), s->kernel->watched, why);
	if (s->kernel->watched)
		triggers_remove_stray(s->name, s->kernel->instance);
	return 0;
}

void session_renew_triggers(struct session *s)
{
	struct fault why;
	int r;

	s->wants &= ~(WANT_TRIGGERS | WANT_WATCH);
	triggers_disarm(s->triggers, true);
	r = session_prepare_triggers(s, &why);
	if (r >= 0 && !s->salvage)
		r = triggers_arm(s->triggers, &why);
	if (r >= 0)
		return;
	(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s", why.text);
	(void)restart_as(s, s->config);
}

void session_watch_again(struct session *s)
{
	s->wants &= ~WANT_WATCH;
	triggers_watch_again(s->triggers, instance_name(s->instance), s->kernel->watched);
}

/* Events of a new configuration, while they wait for their turn */
struct reconfiguration {
	struct session *session;
	struct session_config *config;
};

static void reconfiguration_free(struct reconfiguration *r)
{
	if (r)
		session_config_free(r->config);
	free(r);
}

/* The kernel did not take the events of a new configuration: that session fails as a whole */
static void on_events_changed(void *userdata, int result, const char *text)
{
	struct reconfiguration *r = userdata;
	struct session *s = r->session;

	if (result < 0 && s->state == SESSION_RECORDING && !(s->wants & WANT_STOP))
		(void)restart_as(s, r->config);
	else if (result < 0 && s->pending)
		(void)pend(s, r->config); /* its disk went before that came to its turn */
	reconfiguration_free(r);
}

static int change_events(struct session *s, const struct session_config *config)
{
	struct reconfiguration *change = calloc(1, sizeof(*change));
	struct fault why;
	int r = -ENOMEM;

	if (change) {
		change->session = s;
		r = session_config_copy(config, &change->config);
	}
	if (r >= 0)
		r = session_change_events(s, config, on_events_changed, change, &why);
	if (r < 0)
		reconfiguration_free(change);
	return r;
}

/* As the configuration says, whatever was asked for at runtime */
static bool reconfigure(struct session *s, const struct session_config *config)
{
	struct fault why;
	bool same = strcmp(s->config->trace_text, config->trace_text) == 0;

	if (s->config->mode != config->mode)
		return false;
	if (!same && (s->change || !only_events_differ(s->config, config)))
		return false;
	if (s->paused)
		(void)session_pause(s, false, &why);
	if (same && strcmp(s->config->text, config->text) == 0) {
		/* It may have fallen back to another method than the best */
		s->wants |= s->flight ? WANT_METHOD : 0;
		session_advance(s);
		return true;
	}
	if (same)
		return take_rest(s, config) >= 0;
	return change_events(s, config) >= 0 && take_rest(s, config) >= 0;
}

int session_configure(struct session *s, const struct session_config *config)
{
	struct session_config *copy;
	int r;

	/* While its disk is away, a reload for another reason must not send it below the mount
	 * point */
	if (!s->away)
		s->was_mounted = false; /* whoever asks for it may want it elsewhere */
	if (!config) {
		if (s->state != SESSION_STOPPED && s->state != SESSION_FAILED)
			session_stop(s, false);
		else
			session_start(s);
		return 0;
	}
	if (s->state == SESSION_RECORDING && !(s->wants & WANT_STOP) && reconfigure(s, config))
		return 0;
	if (s->state != SESSION_STOPPED && s->state != SESSION_FAILED)
		return restart_as(s, config);
	r = session_config_copy(config, &copy);
	if (r < 0)
		return r;
	session_config_free(s->config);
	s->config = copy;
	session_start(s);
	return 0;
}
