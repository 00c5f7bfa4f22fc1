/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "fleet/recorder.h"

#define BUS_PATH	"/org/flyrec/Recorder1"
#define SESSION_PATH	BUS_PATH "/session"
#define SESSION		"org.flyrec.Recorder1.Session"
#define NOTHING		"org.flyrec.Recorder1.Error.NothingRecorded"
#define ANSWER_USEC	(600 * UINT64_C(1000000)) /* flyrecd waits for the end of the window */
#define _cleanup_reply_ _cleanup_(sd_bus_message_unrefp)

struct call {
	struct call *next;
	struct recorder *recorder;
	sd_bus_slot *slot;
	recorder_listed_t listed; /* or */
	recorder_taken_t taken;
	void *userdata;
};

struct recorder {
	sd_event *event;
	char *runtime_dir;
	sd_bus *bus; /* NULL: none */
	struct call *calls;
};

static void call_free(struct call *c)
{
	LIST_REMOVE(c->recorder->calls, c);
	(void)sd_bus_slot_unref(c->slot);
	free(c);
}

DEFINE_CLEANUP(struct call *, call_free)

int recorder_new(sd_event *event, const char *runtime_dir, struct recorder **ret)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->runtime_dir = strdup(runtime_dir);
	if (!r->runtime_dir) {
		free(r);
		return -ENOMEM;
	}
	r->event = sd_event_ref(event);
	*ret = r;
	return 0;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	while (r->calls)
		call_free(r->calls);
	(void)sd_bus_close_unref(r->bus);
	(void)sd_event_unref(r->event);
	free(r->runtime_dir);
	free(r);
}

/* --- connecting */

/* Does not wait: where the queue of connections is full the caller comes again */
static int open_socket(const struct recorder *r)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -EBADF;
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", r->runtime_dir);

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int connect_bus(struct recorder *r)
{
	_cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
	_cleanup_close_ int fd = -EBADF;
	int e;

	if (r->bus && sd_bus_is_open(r->bus) > 0)
		return 0;
	r->bus = sd_bus_close_unref(r->bus);
	fd = open_socket(r);
	if (fd < 0)
		return fd;
	e = sd_bus_new(&bus);
	if (e >= 0)
		e = sd_bus_set_fd(bus, fd, fd);
	if (e < 0)
		return e;
	(void)TAKE_FD(fd);
	e = sd_bus_start(bus);
	if (e >= 0)
		e = sd_bus_attach_event(bus, r->event, SD_EVENT_PRIORITY_NORMAL);
	if (e >= 0)
		r->bus = TAKE_PTR(bus);
	return e;
}

/* --- answers */

static enum recorder_result result_of(sd_bus_message *reply)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);

	if (!error)
		return RECORDER_DONE;
	if (sd_bus_error_has_name(error, NOTHING))
		return RECORDER_NOTHING;
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_LIMITS_EXCEEDED))
		return RECORDER_LIMITED;
	/* That is what the library says for the daemon, when that has gone */
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
	    sd_bus_error_has_name(error, SD_BUS_ERROR_DISCONNECTED))
		return RECORDER_AWAY;
	return RECORDER_REFUSED;
}

/* Is "peer" the kind of one of its triggers? */
static int read_triggers(sd_bus_message *m, bool *ret)
{
	const char *kind;
	int r = sd_bus_message_enter_container(m, 'v', "a(sssstts)");

	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "(sssstts)");
	while (r >= 0 && (r = sd_bus_message_read(m, "(sssstts)", &kind, NULL, NULL, NULL, NULL,
						  NULL, NULL)) > 0)
		*ret = *ret || strcmp(kind, "peer") == 0;
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* a{sv} of a session */
static int read_properties(sd_bus_message *m, char ***sessions)
{
	const char *name, *session = "", *state = "";
	bool peer = false;
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0 && strcmp(name, "Name") == 0)
			r = sd_bus_message_read(m, "v", "s", &session);
		else if (r >= 0 && strcmp(name, "State") == 0)
			r = sd_bus_message_read(m, "v", "s", &state);
		else if (r >= 0 && strcmp(name, "Triggers") == 0)
			r = read_triggers(m, &peer);
		else if (r >= 0)
			r = sd_bus_message_skip(m, "v");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	if (r >= 0 && peer && *session &&
	    (strcmp(state, "recording") == 0 || strcmp(state, "paused") == 0))
		r = strv_append(sessions, session);
	return r;
}

/* a{sa{sv}} of an object */
static int read_interfaces(sd_bus_message *m, char ***sessions)
{
	const char *interface;
	int r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
		r = sd_bus_message_read(m, "s", &interface);
		if (r >= 0)
			r = strcmp(interface, SESSION) == 0 ? read_properties(m, sessions)
							    : sd_bus_message_skip(m, "a{sv}");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_objects(sd_bus_message *m, char ***sessions)
{
	int r = sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}")) > 0) {
		r = sd_bus_message_skip(m, "o");
		if (r >= 0)
			r = read_interfaces(m, sessions);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r;
}

static char *why_of(sd_bus_message *reply)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);

	return escape_text(error && error->message ? error->message : "unknown answer", false);
}

static int on_listed(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
	_cleanup_(call_freep) struct call *c = userdata;
	enum recorder_result result = result_of(reply);
	_cleanup_free_ char *why = why_of(reply);
	_cleanup_(strv_freep) char **sessions = NULL;

	if (result == RECORDER_DONE && read_objects(reply, &sessions) < 0)
		result = RECORDER_REFUSED;
	c->listed(c->userdata, result, TAKE_PTR(sessions), why ? why : "");
	return 0;
}

static int on_taken(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
	_cleanup_(call_freep) struct call *c = userdata;
	enum recorder_result result = result_of(reply);
	_cleanup_free_ char *why = why_of(reply);
	const char *path = "";
	int had = 0;

	if (result == RECORDER_DONE && sd_bus_message_read(reply, "sb", &path, &had) < 0)
		result = RECORDER_REFUSED;
	c->taken(c->userdata, result, path, had, why ? why : "");
	return 0;
}

/* --- calls */

static int call_new(struct recorder *r, void *userdata, struct call **ret)
{
	struct call *c;
	int e = connect_bus(r);

	if (e < 0)
		return e;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->recorder = r;
	c->userdata = userdata;
	c->next = r->calls;
	r->calls = c;
	*ret = c;
	return 0;
}

int recorder_list(struct recorder *r, recorder_listed_t done, void *userdata)
{
	_cleanup_(call_freep) struct call *c = NULL;
	_cleanup_reply_ sd_bus_message *m = NULL;
	int e = call_new(r, userdata, &c);

	if (e >= 0)
		e = sd_bus_message_new_method_call(r->bus, &m, NULL, BUS_PATH,
						   "org.freedesktop.DBus.ObjectManager",
						   "GetManagedObjects");
	if (e >= 0) {
		c->listed = done;
		e = sd_bus_call_async(r->bus, &c->slot, m, on_listed, c, ANSWER_USEC);
	}
	if (e >= 0)
		c = NULL;
	return e < 0 ? e : 0;
}

int recorder_take(struct recorder *r, const char *session, const struct recorder_window *window,
		  recorder_taken_t done, void *userdata)
{
	_cleanup_(call_freep) struct call *c = NULL;
	_cleanup_reply_ sd_bus_message *m = NULL;
	_cleanup_free_ char *path = NULL;
	int e = call_new(r, userdata, &c);

	if (e >= 0)
		e = sd_bus_path_encode(SESSION_PATH, session, &path);
	if (e >= 0)
		e = sd_bus_message_new_method_call(r->bus, &m, NULL, path, SESSION,
						   "SnapshotLimited");
	if (e >= 0)
		e = sd_bus_message_append(m, "ttss", window->since_usec, window->until_usec,
					  window->reason, window->id);
	if (e >= 0) {
		c->taken = done;
		e = sd_bus_call_async(r->bus, &c->slot, m, on_taken, c, ANSWER_USEC);
	}
	if (e >= 0)
		c = NULL;
	return e < 0 ? e : 0;
}
