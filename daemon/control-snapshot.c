/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls that make snapshots, of one session or of several in one file. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "daemon/control-internal.h"

struct snapshot_call {
	struct control_request *request;
	char *session;
	bool pin;
	bool coresight; /* asked for: its directory is part of the answer */
};

static void call_free(struct snapshot_call *call)
{
	if (!call)
		return;
	free(call->session);
	free(call);
}

DEFINE_CLEANUP(struct snapshot_call *, call_free)

/* The path, the directory of the CoreSight snapshot, or "" and why there is none */
static void answer_coresight(const struct snapshot_call *call, const struct session *s,
			     const char *path)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_free_ char *directory = NULL;
	const struct fault *why;
	const char *name = session_coresight_name(s, &why);
	int r = 0;

	if (*name &&
	    asprintf(&directory, "%.*s%s", (int)(strrchr(path, '/') + 1 - path), path, name) < 0) {
		directory = NULL;
		r = -ENOMEM;
	}
	if (r >= 0)
		r = sd_bus_message_new_method_return(call->request->call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "sss", path, directory ? directory : "",
					  *name ? "" : why->text);
	if (r >= 0)
		control_request_reply(call->request, reply);
	else
		control_request_done(call->request, r, NULL);
}

static void on_snapshot(void *userdata, int result, const char *path, const struct fault *why)
{
	struct snapshot_call *call = userdata;
	struct control *c = call->request->control;
	struct session *s;
	_cleanup_free_ char *text = result < 0 ? strdup(why->text) : NULL;

	if (result >= 0) {
		daemon_snapshot_finished(c->daemon, call->session, path);
		if (call->pin)
			result = control_pin_path(c, call->session, path);
	}
	if (result < 0 && !text &&
	    asprintf(&text, "%s is there, but cannot be pinned: %s", path, strerror(-result)) < 0)
		text = NULL;
	s = daemon_find_session(c->daemon, call->session);
	if (result >= 0 && call->coresight && s)
		answer_coresight(call, s, path);
	else
		control_answer_path(call->request, result, path, text);
	call_free(call);
}

/* @s: the file will be its. Return: 0, or what the handler is to return. */
static int call_new(struct control *c, sd_bus_message *m, const struct session *s, bool pin,
		    sd_bus_error *error, struct snapshot_call **ret)
{
	_cleanup_(call_freep) struct snapshot_call *call = calloc(1, sizeof(*call));
	int r;

	if (!call)
		return -ENOMEM;
	call->pin = pin;
	call->session = strdup(session_name(s));
	if (!call->session)
		return -ENOMEM;
	r = control_request_new(c, m, error, &call->request);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(call);
	return 0;
}

static int take_snapshot(sd_bus_message *m, struct control *c, bool coresight, sd_bus_error *error)
{
	struct session *s = control_session_of(m, c, error);
	struct snapshot_call *call;
	const char *reason;
	uint64_t from, to;
	int pin, r;

	if (!s)
		return -ENOTCONN;
	r = sd_bus_message_read(m, "ttsb", &from, &to, &reason, &pin);
	if (r >= 0)
		r = call_new(c, m, s, pin, error, &call);
	if (r < 0)
		return r;
	call->coresight = coresight;
	r = (coresight ? session_snapshot_coresight : session_snapshot)(
		s, from, to, *reason ? reason : "control", on_snapshot, call);
	if (r >= 0)
		return 1;
	control_request_done(call->request, r,
			     r == -ENOTCONN ? "the session does not record"
			     : r == -EINVAL ? SESSION_BAD_SNAPSHOT
					    : NULL);
	call_free(call);
	return 1;
}

int control_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return take_snapshot(m, userdata, false, error);
}

int control_snapshot_coresight(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return take_snapshot(m, userdata, true, error);
}

/* The sessions of an "as", as many as there are names; all of them must run */
static int read_sessions(sd_bus_message *m, struct control *c, struct session ***ret, size_t *ret_n,
			 sd_bus_error *error)
{
	_cleanup_free_ struct session **sessions = NULL;
	const char *name;
	size_t n = 0;
	int r = sd_bus_message_enter_container(m, 'a', "s");

	while (r >= 0 && (r = sd_bus_message_read(m, "s", &name)) > 0) {
		struct session *s = daemon_find_session(c->daemon, name);
		struct session **more = reallocarray(sessions, n + 1, sizeof(*sessions));

		if (!more)
			return -ENOMEM;
		sessions = more;
		if (!s && config_find(c->daemon->config, name))
			return sd_bus_error_setf(error, CONTROL_ERROR("NotRecording"),
						 "session %s does not record, it is stopped", name);
		if (!s)
			return control_no_session(c, name, error);
		sessions[n++] = s;
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(sessions);
	*ret_n = n;
	return 0;
}

int control_snapshot_together(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_free_ struct session **sessions = NULL;
	struct control *c = userdata;
	struct snapshot_range range;
	struct snapshot_call *call;
	struct fault why;
	size_t n = 0;
	int pin, r = read_sessions(m, c, &sessions, &n, error);

	if (r >= 0)
		r = sd_bus_message_read(m, "ttsb", &range.from_usec, &range.to_usec, &range.reason,
					&pin);
	if (r < 0)
		return r;
	if (n == 0)
		return sd_bus_error_setf(error, CONTROL_ERROR_REFUSED, "no session is named");
	if (!*range.reason)
		range.reason = "together";
	r = call_new(c, m, sessions[0], pin, error, &call);
	if (r < 0)
		return r;
	r = session_snapshot_together(sessions, n, &range, on_snapshot, call, &why);
	if (r >= 0)
		return 1;
	control_request_done(call->request, r, why.text);
	call_free(call);
	return 1;
}
