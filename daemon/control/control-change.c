/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that change what is recorded: start, stop, events. First the change itself, which the
 * kernel may refuse; then, where it is asked for, a drop-in that keeps it. Main thread.
 */
#include <errno.h>
#include <string.h>
#include <tracefs/tracefs.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/near.h"
#include "basic/strv.h"
#include "daemon/control/control-internal.h"
#include "daemon/manager/override.h"
#include "daemon/manager/runtime-changes.h"

/* A change under way, and how to keep it */
struct change {
	struct control_request *request;
	char *name; /* of the session */
	bool keep;
	bool start; /* else stop; where @events is not set */
	bool events;
};

static void change_free(struct change *change)
{
	if (change)
		free(change->name);
	free(change);
}

static int keep(struct control *c, const struct change *change, struct fault *why)
{
	const struct session_config *config = NULL;
	struct session *s = manager_find(c->manager, change->name);
	int r;

	if (change->events) {
		config = s ? session_config_in_force(s) : NULL;
		if (!config)
			return fault_set(why, -ECANCELED, "session %s has been stopped meanwhile",
					 change->name);
		r = override_events(c->env->config_dir, config, why);
	} else {
		r = override_enabled(c->env->config_dir, change->name, change->start, why);
	}
	return r < 0 ? r : manager_refresh_config(c->manager, change->name, why);
}

static void on_changed(void *userdata, int result, const char *text)
{
	struct change *change = userdata;
	struct control *c = change->request->control;
	struct session *s = manager_find(c->manager, change->name);
	struct fault why = {};

	if (result >= 0 && change->keep) {
		struct fault inner = {};

		result = keep(c, change, &inner);
		if (result < 0)
			(void)fault_set(&why, result, "done, but not kept: %s", inner.text);
		if (result < 0)
			text = why.text;
		if (s)
			manager_session_changed(c->manager, s);
	}
	control_request_done(change->request, result, text);
	change_free(change);
}

static int change_new(sd_bus_message *m, struct control *c, const char *name, bool persist,
		      sd_bus_error *error, struct change **ret)
{
	struct change *change = calloc(1, sizeof(*change));
	int r = -ENOMEM;

	if (change) {
		change->name = strdup(name);
		change->keep = persist;
	}
	if (change && change->name)
		r = control_request_new(c, m, error, &change->request);
	if (r < 0) {
		change_free(change);
		return r;
	}
	*ret = change;
	return 0;
}

static int name_of(sd_bus_message *m, char **ret)
{
	int r = sd_bus_path_decode(sd_bus_message_get_path(m), CONTROL_SESSION_PATH, ret);

	return r == 0 ? -ENOENT : r;
}

/* --- start, stop */

int control_start(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	_cleanup_free_ char *name = NULL;
	struct change *change;
	struct fault why;
	int persist, r = sd_bus_message_read(m, "b", &persist);

	if (r >= 0)
		r = name_of(m, &name);
	if (r >= 0)
		r = change_new(m, c, name, persist, error, &change);
	if (r < 0)
		return r;
	change->start = true;
	r = manager_start_session(c->manager, name, &why);
	if (r < 0) {
		on_changed(change, r, why.text);
		return 1;
	}
	r = session_wait(manager_find(c->manager, name), WAIT_STARTED, on_changed, change);
	if (r < 0)
		on_changed(change, r, NULL);
	return 1;
}

int control_stop(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	_cleanup_free_ char *name = NULL;
	struct session *s;
	struct change *change;
	int persist, r = sd_bus_message_read(m, "b", &persist);

	if (r >= 0)
		r = name_of(m, &name);
	if (r >= 0 && !manager_is_running(c->manager))
		return sd_bus_error_setf(error, CONTROL_ERROR("Busy"),
					 "flyrecd is starting, reloading or stopping");
	if (r >= 0)
		r = change_new(m, c, name, persist, error, &change);
	if (r < 0)
		return r;
	s = manager_find(c->manager, name);
	if (!s) {
		on_changed(change, 0, "");
		return 1;
	}
	session_stop(s, false);
	r = session_wait(s, WAIT_STOPPED, on_changed, change);
	if (r < 0)
		on_changed(change, r, NULL);
	return 1;
}

/* --- events */

/* Names that the kernel has: what was meant? */
static void explain_event(const struct control *c, const char *event, struct fault *why)
{
	_cleanup_free_ char *text = NULL, *wanted = strdup(event);
	char *state = NULL, *near = NULL;
	size_t best = SIZE_MAX, n = strlen(why->text);

	if (!wanted || io_read_file_at(c->env->tracing_fd, "available_events", &text, NULL) < 0)
		return;
	wanted[strcspn(wanted, " ")] = '\0';
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		if (near_better(wanted + (*wanted == '-'), line, &best))
			near = line;
	if (near && best > 0)
		(void)snprintf(why->text + n, sizeof(why->text) - n, ", did you mean %s?", near);
}

static int expand(void *userdata, const char *system, char ***ret)
{
	char **names = tracefs_system_events(NULL, system);
	int r = 0;

	for (char **name = names; r >= 0 && name && *name; name++)
		r = strv_append(ret, *name);
	tracefs_list_free(names);
	return r;
}

/* Which session, and a copy of its configuration to change */
static int begin(sd_bus_message *m, struct control *c, sd_bus_error *error, struct session **ret_s,
		 struct session_config **ret)
{
	_cleanup_free_ char *name = NULL;
	const struct session_config *config;
	struct session *s;
	int r = name_of(m, &name);

	if (r < 0)
		return r;
	s = manager_find(c->manager, name);
	config = s ? session_config_in_force(s) : NULL;
	if (!config || session_state(s) != SESSION_RECORDING)
		return sd_bus_error_setf(
			error, CONTROL_ERROR("NotRecording"),
			"session %s does not record, it is %s", name,
			session_state_name(s ? session_state(s) : SESSION_STOPPED));
	*ret_s = s;
	return session_config_copy(config, ret);
}

static bool traces_nothing(const struct session_config *config)
{
	const struct trace_config *t = &config->trace;

	return t->n_events == 0 && t->n_triggers == 0 && !t->tracer && !t->kprobes && !t->uprobes &&
	       !t->usdts && !t->options;
}

static int refuse(sd_bus_error *error, int r, const struct fault *why)
{
	if (r == -ENOMEM)
		return r;
	return sd_bus_error_setf(error,
				 r == -ENOENT	? CONTROL_ERROR("NoSuchEvent")
				 : r == -EINVAL ? SD_BUS_ERROR_INVALID_ARGS
				 : r == -EBUSY	? CONTROL_ERROR("Busy")
						: CONTROL_ERROR_REFUSED,
				 "%s", why->text);
}

static int apply(sd_bus_message *m, struct control *c, struct session *s,
		 struct session_config *config, const char *event, bool persist,
		 sd_bus_error *error)
{
	struct change *change;
	struct fault why = {};
	int r;

	if (traces_nothing(config))
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
					 "session %s would trace nothing: stop or pause it",
					 session_name(s));
	r = session_config_retext(config);
	if (r >= 0)
		r = change_new(m, c, session_name(s), persist, error, &change);
	if (r < 0)
		return r;
	change->events = true;
	r = session_change_events(s, config, on_changed, change, &why);
	if (r >= 0)
		return 1;
	if (r == -ENOENT)
		explain_event(c, event, &why);
	on_changed(change, r, why.text);
	return 1;
}

static int change_events(sd_bus_message *m, struct control *c, bool enable, sd_bus_error *error)
{
	_cleanup_(session_config_freep) struct session_config *config = NULL;
	_cleanup_(strv_freep) char **events = NULL;
	struct fault why = {};
	struct session *s;
	int persist, r;

	r = sd_bus_message_read_strv(m, &events);
	if (r >= 0)
		r = sd_bus_message_read(m, "b", &persist);
	if (r >= 0)
		r = begin(m, c, error, &s, &config);
	if (r < 0)
		return r;
	if (!events)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "no event is named");
	STRV_FOREACH (event, events) {
		r = enable ? runtime_enable_event(config, *event, &why)
			   : runtime_disable_event(config, *event, expand, NULL, &why);
		if (r == -ENOENT)
			explain_event(c, *event, &why);
		if (r < 0)
			return refuse(error, r, &why);
	}
	return apply(m, c, s, config, events[0], persist, error);
}

int control_enable_events(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return change_events(m, userdata, true, error);
}

int control_disable_events(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return change_events(m, userdata, false, error);
}

int control_set_filter(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(session_config_freep) struct session_config *config = NULL;
	struct control *c = userdata;
	const char *event, *filter;
	struct fault why = {};
	struct session *s;
	int persist, r;

	r = sd_bus_message_read(m, "ssb", &event, &filter, &persist);
	if (r >= 0)
		r = begin(m, c, error, &s, &config);
	if (r < 0)
		return r;
	r = runtime_filter_event(config, event, filter, &why);
	if (r == -ENOENT)
		explain_event(c, event, &why);
	return r < 0 ? refuse(error, r, &why) : apply(m, c, s, config, event, persist, error);
}
