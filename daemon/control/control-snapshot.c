/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls that make snapshots, of one session or of several in one file. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "daemon/control/control-internal.h"
#include "daemon/manager/together.h"

struct snapshot_call {
	struct control_request *request;
	bool coresight; /* asked for: its directory is part of the answer */
};

/* The path, the directory of the CoreSight snapshot, or "" and why there is none */
static void answer_coresight(const struct snapshot_call *call, const struct snapshot_result *made)
{
	_cleanup_free_ char *directory = NULL;
	const char *name = made->coresight.name, *path = made->path;

	if (*name)
		directory = strf("%.*s%s", (int)(strrchr(path, '/') + 1 - path), path, name);
	control_request_answer(call->request, *name && !directory ? -ENOMEM : 0, NULL, "sss", path,
			       directory ? directory : "", *name ? "" : made->coresight.why.text);
}

static void on_snapshot(void *userdata, int result, const struct snapshot_result *made)
{
	struct snapshot_call *call = userdata;

	if (result >= 0 && call->coresight)
		answer_coresight(call, made);
	else
		control_request_answer(call->request, result, made->why.text, "s", made->path);
	free(call);
}

/* What has not begun need not be made: there would be nobody to tell of it */
static void on_gone(void *userdata)
{
	struct snapshot_call *call = userdata;
	const struct manager *m = call->request->control->manager;
	struct session *s;

	for (size_t i = 0; (s = manager_session(m, i)); i++)
		session_cancel_snapshots(s, call);
}

/* Return: 0, or what the handler is to return. */
static int call_new(struct control *c, sd_bus_message *m, sd_bus_error *error,
		    struct snapshot_call **ret)
{
	_cleanup_free_ struct snapshot_call *call = calloc(1, sizeof(*call));
	int r;

	if (!call)
		return -ENOMEM;
	r = control_request_new(c, m, error, &call->request);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(call);
	return 0;
}

static struct snapshot_asker asker_of(struct control *c, sd_bus_message *m)
{
	const struct access_peer *who = control_caller(c, m);

	return (struct snapshot_asker){
		.uid = who ? who->uid : (uid_t)-1,
		.origin = who && access_allowed(who, &c->groups, ACCESS_CHANGE)
				  ? SNAPSHOT_BY_ADMIN
				  : SNAPSHOT_BY_MEMBER,
	};
}

/* "ttsb" of all these calls, and who asks */
static int read_wish(sd_bus_message *m, struct control *c, const char *reason,
		     struct snapshot_wish *ret, sd_bus_error *error)
{
	struct snapshot_wish wish = {.asker = asker_of(c, m)};
	int pin, r;

	r = sd_bus_message_read(m, "ttsb", &wish.from_usec, &wish.to_usec, &wish.reason, &pin);
	if (r < 0)
		return r;
	if (pin && wish.asker.origin != SNAPSHOT_BY_ADMIN)
		return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
					 "pinning is for %s, not for user %u",
					 access_who(ACCESS_CHANGE), wish.asker.uid);
	wish.pin = pin;
	if (!*wish.reason)
		wish.reason = reason;
	*ret = wish;
	return 0;
}

/* Whether it was asked for in the end, or why not. Return: as a handler. */
static int asked(struct snapshot_call *call, int result, const struct fault *why)
{
	if (result < 0) {
		control_request_done(call->request, result, why->text);
		free(call);
	}
	return 1;
}

static int take_snapshot(sd_bus_message *m, struct control *c, bool coresight, sd_bus_error *error)
{
	struct session *s = control_session_of(m, c, error);
	struct snapshot_wish wish;
	struct snapshot_call *call;
	struct fault why;
	int r;

	if (!s)
		return -ENOTCONN;
	r = read_wish(m, c, "control", &wish, error);
	if (r >= 0)
		r = call_new(c, m, error, &call);
	if (r < 0)
		return r;
	wish.coresight = call->coresight = coresight;
	wish.asker.call = call;
	/* Not once it is asked for: it may be answered by then */
	control_request_on_gone(call->request, on_gone, call);
	return asked(call, session_snapshot(s, &wish, on_snapshot, call, &why), &why);
}

/* Answered at once: the snapshot may wait for PostSec=, and be another trigger's */
int control_trigger(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	struct session *s = control_session_of(m, c, error);
	struct snapshot_asker asker = asker_of(c, m);
	const char *text;
	struct fault why;
	int r;

	if (!s)
		return -ENOTCONN;
	r = sd_bus_message_read(m, "s", &text);
	if (r < 0)
		return r;
	r = session_trigger(s, text, &asker, &why);
	if (r < 0)
		return sd_bus_error_setf(error,
					 r == -ENOTCONN ? CONTROL_ERROR("NotRecording")
					 : r == -EUSERS ? SD_BUS_ERROR_LIMITS_EXCEEDED
							: CONTROL_ERROR_REFUSED,
					 "%s", why.text);
	return sd_bus_reply_method_return(m, NULL);
}

int control_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return take_snapshot(m, userdata, false, error);
}

int control_snapshot_coresight(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return take_snapshot(m, userdata, true, error);
}

/* --- for other hosts */

static void on_limited(void *userdata, int result, const char *path, bool had, const char *why)
{
	control_request_answer(userdata, result, why, "sb", path, (int)had);
}

/* Who hangs up takes nothing back: the moment is worth keeping, and the file is found by its id */
int control_snapshot_limited(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	struct session *s = control_session_of(m, c, error);
	struct limited_wish wish = {.uid = asker_of(c, m).uid};
	struct control_request *request;
	struct fault why;
	int r;

	if (!s)
		return -ENOTCONN;
	r = sd_bus_message_read(m, "ttss", &wish.from_usec, &wish.to_usec, &wish.reason, &wish.id);
	if (r >= 0)
		r = control_request_new(c, m, error, &request);
	if (r < 0)
		return r;
	r = session_snapshot_limited(s, &wish, on_limited, request, &why);
	if (r < 0)
		control_request_done(request, r, why.text);
	return 1;
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
		struct session *s = manager_find(c->manager, name);
		struct session **more = reallocarray(sessions, n + 1, sizeof(*sessions));

		if (!more)
			return -ENOMEM;
		sessions = more;
		if (!s && config_find(manager_config(c->manager), name))
			return sd_bus_error_setf(error, CONTROL_ERROR("NotRecording"),
						 "session %.64s does not record, it is stopped",
						 name);
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
	struct snapshot_wish wish;
	struct snapshot_call *call;
	struct fault why;
	size_t n = 0;
	int r = read_sessions(m, c, &sessions, &n, error);

	if (r >= 0)
		r = read_wish(m, c, "together", &wish, error);
	if (r < 0)
		return r;
	if (n == 0)
		return sd_bus_error_setf(error, CONTROL_ERROR_REFUSED, "no session is named");
	r = call_new(c, m, error, &call);
	if (r < 0)
		return r;
	wish.asker.call = call;
	control_request_on_gone(call->request, on_gone, call);
	return asked(call,
		     together_snapshot(c->manager, sessions, n, &wish, on_snapshot, call, &why),
		     &why);
}
