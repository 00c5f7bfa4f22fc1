/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions by the names and the paths that callers give. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/near.h"
#include "daemon/control/control-internal.h"

void control_session_path(const char *name, char **ret)
{
	if (sd_bus_path_encode(CONTROL_SESSION_PATH, name, ret) < 0)
		*ret = NULL;
}

int control_no_session(struct control *c, const char *name, sd_bus_error *error)
{
	const struct daemon_config *config = manager_config(c->manager);
	const struct session *s;
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < config->n_sessions; i++)
		if (near_better(name, config->sessions[i]->name, &best))
			near = config->sessions[i]->name;
	for (size_t i = 0; (s = manager_session(c->manager, i)); i++)
		if (near_better(name, session_name(s), &best))
			near = session_name(s);
	if (near)
		return sd_bus_error_setf(error, CONTROL_ERROR("NoSuchSession"),
					 "there is no session %s, did you mean %s?",
					 control_shown(name).text, near);
	return sd_bus_error_setf(error, CONTROL_ERROR("NoSuchSession"), "there is no session %s",
				 control_shown(name).text);
}

int control_look(struct control *c, const char *path, struct control_target *ret)
{
	int r = sd_bus_path_decode(path, CONTROL_SESSION_PATH, &ret->name);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	ret->session = manager_find(c->manager, ret->name);
	ret->configured = config_find(manager_config(c->manager), ret->name);
	return ret->session || ret->configured ? 0 : -ENOENT;
}

void control_target_free(struct control_target *target)
{
	free(target->name);
}

struct session *control_session_of(sd_bus_message *m, struct control *c, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};

	if (control_look(c, sd_bus_message_get_path(m), &t) >= 0 && t.session)
		return t.session;
	(void)sd_bus_error_setf(error, CONTROL_ERROR("NotRecording"),
				"session %s does not record, it is stopped",
				control_shown(t.name ? t.name : "?").text);
	return NULL;
}
