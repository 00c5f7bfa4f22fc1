/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/ini.h"
#include "basic/strv.h"
#include "config/config-trace.h"
#include "daemon/manager/runtime-changes.h"

/* --- telling */

char *runtime_event_text(const struct trace_event *e)
{
	return strf("%s%s%s%s%s%s", e->optional ? "-" : "", e->system, e->name ? ":" : "",
		    e->name ? e->name : "", e->filter ? " if " : "", e->filter ? e->filter : "");
}

int runtime_events(const struct session_config *config, char ***ret)
{
	for (size_t i = 0; i < config->trace.n_events; i++) {
		_cleanup_free_ char *text = runtime_event_text(&config->trace.events[i]);

		if (!text || strv_append(ret, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* "+Event=…" for what is in @a and not in @b */
static int differences(char *const *a, char *const *b, const char *sign, char ***ret)
{
	STRV_FOREACH (event, a) {
		_cleanup_free_ char *line = NULL;

		if (strv_contains(b, *event))
			continue;
		line = strf("%sEvent=%s", sign, *event);
		if (!line || strv_append(ret, line) < 0)
			return -ENOMEM;
	}
	return 0;
}

int runtime_changes(const struct session_config *configured, const struct runtime_state *now,
		    char ***ret)
{
	_cleanup_(strv_freep) char **list = NULL, **before = NULL, **after = NULL;
	bool enabled = configured && configured->enabled;
	int r = 0;

	if (enabled && !now->running)
		r = strv_append(&list, "stopped");
	if (!enabled && now->running)
		r = strv_append(&list, "started");
	if (r >= 0 && now->paused)
		r = strv_append(&list, "paused");
	if (r >= 0 && configured && now->in_force) {
		r = runtime_events(configured, &before);
		if (r >= 0)
			r = runtime_events(now->in_force, &after);
		if (r >= 0)
			r = differences(before, after, "-", &list);
		if (r >= 0)
			r = differences(after, before, "+", &list);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(list);
	return 0;
}

/* --- changing */

static void take_out(struct trace_config *trace, size_t i)
{
	event_done(&trace->events[i]);
	memmove(&trace->events[i], &trace->events[i + 1],
		(--trace->n_events - i) * sizeof(*trace->events));
}

/*
 * It may be written to a file, where it has to be one value: to the kernel a line's end is as good
 * as a blank, to the reader of that file the next line is configuration. White space around it
 * goes.
 */
static int check_text(const char *what, const char *text, struct fault *why)
{
	_cleanup_free_ char *inner = NULL;
	const char *bad;
	size_t n;

	text += strspn(text, " ");
	n = strlen(text);
	while (n > 0 && text[n - 1] == ' ')
		n--;
	inner = strndup(text, n);
	if (!inner)
		return -ENOMEM;
	bad = ini_bad_value(inner);
	return bad ? fault_set(why, -EINVAL, "%s refused: %s", what, bad) : 0;
}

static int parse(const char *text, struct trace_event *ret, struct fault *why)
{
	struct fault inner = {};
	int r = check_text("event", text, why);

	if (r < 0)
		return r;
	r = event_parse(text, ret, &inner);
	return r < 0 && r != -ENOMEM ? fault_set(why, r, "%s: %s", text, inner.text) : r;
}

int runtime_enable_event(struct session_config *config, const char *text, struct fault *why)
{
	_cleanup_(event_done) struct trace_event event = {};
	int r = parse(text, &event, why);

	return r < 0 ? r : event_put(&config->trace, &event);
}

/* The system's other events, one by one, in the place of the whole */
static int expand_system(struct session_config *config, const struct trace_event *but,
			 runtime_expand_t expand, void *userdata, struct fault *why)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct trace_config *trace = &config->trace;
	bool known = false;
	int r = expand(userdata, but->system, &names);

	STRV_FOREACH (name, names)
		known |= strcmp(*name, but->name) == 0;
	if (r < 0 || !known)
		return fault_set(why, -ENOENT, "there is no event %s:%s", but->system, but->name);
	STRV_FOREACH (name, names) {
		_cleanup_(event_done) struct trace_event event = {};

		if (strcmp(*name, but->name) == 0 || event_find(trace, but->system, *name))
			continue;
		event.system = strdup(but->system);
		event.name = strdup(*name);
		event.optional = true; /* of a module it may go away */
		if (!event.system || !event.name || event_put(trace, &event) < 0)
			return -ENOMEM;
	}
	take_out(trace, (size_t)(event_find(trace, but->system, NULL) - trace->events));
	return 0;
}

int runtime_disable_event(struct session_config *config, const char *text, runtime_expand_t expand,
			  void *userdata, struct fault *why)
{
	_cleanup_(event_done) struct trace_event event = {};
	struct trace_config *trace = &config->trace;
	bool found = false;
	int r = parse(text, &event, why);

	if (r < 0)
		return r;
	if (event.filter)
		return fault_set(why, -EINVAL, "%s: no filter here", text);
	if (event.name && event_find(trace, event.system, NULL)) {
		r = expand_system(config, &event, expand, userdata, why);
		found = true;
	}
	for (size_t i = trace->n_events; r >= 0 && i-- > 0;)
		if (strcmp(trace->events[i].system, event.system) == 0 &&
		    (!event.name || text_equal(trace->events[i].name, event.name))) {
			take_out(trace, i);
			found = true;
		}
	if (r >= 0 && !found)
		return fault_set(why, -ENOENT, "session %s does not trace %s", config->name, text);
	return r;
}

int runtime_filter_event(struct session_config *config, const char *text, const char *filter,
			 struct fault *why)
{
	_cleanup_(event_done) struct trace_event event = {};
	_cleanup_free_ char *line = NULL;
	bool none = !*filter || strcmp(filter, "0") == 0;
	int r = check_text("filter", filter, why);

	if (r >= 0)
		r = parse(text, &event, why);
	if (r < 0)
		return r;
	if (event.filter || !event.name)
		return fault_set(why, -EINVAL, "%s: the filter of one event, SYSTEM:NAME, is set",
				 text);
	if (!event_find(&config->trace, event.system, event.name) &&
	    !event_find(&config->trace, event.system, NULL))
		return fault_set(why, -ENOENT, "session %s does not trace %s", config->name, text);
	line = strf("%s%s%s", text, none ? "" : " if ", none ? "" : filter);
	return line ? runtime_enable_event(config, line, why) : -ENOMEM;
}
