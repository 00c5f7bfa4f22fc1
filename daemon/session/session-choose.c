/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "daemon/session/session-choose.h"

const char *session_state_name(enum session_state state)
{
	static const char *const names[] = {"stopped", "starting", "recording", "stopping",
					    "failed"};

	return names[state];
}

/* What a recording session, which goes on, does first */
static enum session_choice choose_of_recording(const struct session_view *v)
{
	bool goes_on = !(v->wants & WANT_STOP);

	if (goes_on && v->wants & WANT_TRIGGERS)
		return CHOICE_TRIGGERS;
	if (goes_on && v->wants & WANT_WATCH)
		return CHOICE_WATCH;
	if (goes_on && v->wants & WANT_LEAVE && !v->copying && !v->compressing)
		return CHOICE_STOP;
	if (v->change)
		return CHOICE_CHANGE;
	return v->wants & WANT_NOTE ? CHOICE_NOTE : CHOICE_NONE;
}

enum session_choice session_choose(const struct session_view *v)
{
	bool recording = v->state == SESSION_RECORDING;
	bool rotate = v->wants & WANT_ROTATE && v->may_rotate;
	enum session_choice first;

	if (!v->busy && v->state == SESSION_FAILED && v->wants & WANT_START)
		return CHOICE_START;
	if (v->busy || (!recording && v->state != SESSION_STOPPING))
		return CHOICE_NONE;
	if (v->flight && v->wants & WANT_METHOD)
		return CHOICE_METHOD;
	first = recording ? choose_of_recording(v) : CHOICE_NONE;
	if (first != CHOICE_NONE)
		return first;
	if (rotate && v->blocked)
		return CHOICE_ROTATE;
	if (recording && v->snapshot && !v->copying)
		return CHOICE_SNAPSHOT;
	if (rotate)
		return CHOICE_ROTATE;
	if (v->wants & WANT_STOP && !v->copying &&
	    !(v->wants & WANT_HAND_OVER && v->wants & WANT_SYNC))
		return CHOICE_STOP;
	return v->wants & WANT_SYNC ? CHOICE_SYNC : CHOICE_NONE;
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

enum session_difference session_compare(const struct session_config *now,
					const struct session_config *next)
{
	if (now->mode != next->mode)
		return DIFFERENT_SESSION;
	if (strcmp(now->trace_text, next->trace_text) != 0)
		return only_events_differ(now, next) ? DIFFERENT_EVENTS : DIFFERENT_SESSION;
	return strcmp(now->text, next->text) == 0 ? DIFFERENT_NOTHING : DIFFERENT_REST;
}
