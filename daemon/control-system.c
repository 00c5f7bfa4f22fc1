/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system bus, where there is one. Its policy file lets root and group flyrec in; for the rest
 * the bus daemon is asked who a caller is - asynchronously: the call waits on the local queue until
 * the answer is there. Names of connections are never used twice, so answers are kept. Main thread.
 */
#include <errno.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "daemon/control-internal.h"

#define CALLERS_MAX 64
/* Early in the boot there is no bus yet, and it may be restarted; some machines never have one */
#define RECONNECT_USEC	   (10 * USEC_PER_SEC)
#define RECONNECT_MAX_USEC (640 * USEC_PER_SEC)

struct caller {
	char name[64];
	struct access_peer who;
};

struct system_bus {
	struct control *control;
	struct peer *peer; /* NULL: not connected */
	sd_event_source *retry_source;
	uint64_t retry_usec; /* doubles while it is in vain */
	struct caller callers[CALLERS_MAX];
	size_t next;
};

static int join(struct system_bus *s);

static const struct caller *find_caller(const struct system_bus *s, const char *name)
{
	for (size_t i = 0; i < CALLERS_MAX; i++)
		if (strcmp(s->callers[i].name, name) == 0)
			return &s->callers[i];
	return NULL;
}

const struct access_peer *control_caller(struct control *c, sd_bus_message *m)
{
	const struct peer *p = control_find_peer(c, sd_bus_message_get_bus(m));
	const char *name = sd_bus_message_get_sender(m);
	const struct caller *caller;

	if (p && !p->system)
		return &p->who;
	caller = p && name ? find_caller(c->system, name) : NULL;
	return caller ? &caller->who : NULL;
}

uid_t control_caller_uid(struct control *c, sd_bus_message *m)
{
	const struct access_peer *who = control_caller(c, m);

	return who ? who->uid : (uid_t)-1;
}

static int read_groups(sd_bus_message *m, struct access_peer *who)
{
	const uint32_t *groups;
	size_t size;
	int r;

	r = sd_bus_message_enter_container(m, 'v', "au");
	if (r >= 0)
		r = sd_bus_message_read_array(m, 'u', (const void **)&groups, &size);
	if (r < 0)
		return r;
	for (size_t i = 0; i < size / sizeof(*groups) && who->n_groups < ACCESS_GROUPS_MAX; i++)
		who->groups[who->n_groups++] = groups[i];
	return sd_bus_message_exit_container(m);
}

/* a{sv} of GetConnectionCredentials; without UnixUserID nobody in particular */
static int read_credentials(sd_bus_message *m, struct access_peer *who)
{
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	who->uid = (uid_t)-1;
	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		const char *key;
		uint32_t n = 0;

		r = sd_bus_message_read(m, "s", &key);
		if (r >= 0 && strcmp(key, "UnixUserID") == 0) {
			r = sd_bus_message_read(m, "v", "u", &n);
			who->uid = n;
		} else if (r >= 0 && strcmp(key, "ProcessID") == 0) {
			r = sd_bus_message_read(m, "v", "u", &n);
			who->pid = (pid_t)n;
		} else if (r >= 0 && strcmp(key, "UnixGroupIDs") == 0) {
			r = read_groups(m, who);
		} else if (r >= 0) {
			r = sd_bus_message_skip(m, "v");
		}
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r;
}

struct question {
	struct system_bus *system;
	sd_bus_message *call;
};

static void question_free(void *userdata)
{
	struct question *q = userdata;

	sd_bus_message_unref(q->call);
	free(q);
}

/* The bus has said who it is: now look at the call again */
static int on_credentials(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct question *q = userdata;
	struct system_bus *s = q->system;
	struct caller caller = {};
	const char *name = sd_bus_message_get_sender(q->call);

	if (sd_bus_message_is_method_error(m, NULL) || read_credentials(m, &caller.who) < 0 ||
	    !name || strlen(name) >= sizeof(caller.name))
		return sd_bus_reply_method_errorf(q->call, SD_BUS_ERROR_ACCESS_DENIED,
						  "the bus does not say who you are");
	(void)strcpy(caller.name, name);
	s->callers[s->next++ % CALLERS_MAX] = caller;
	return sd_bus_enqueue_for_read(sd_bus_message_get_bus(m), q->call);
}

static int ask(struct system_bus *s, sd_bus_message *call, const char *name)
{
	struct question *q = calloc(1, sizeof(*q));
	sd_bus_slot *slot = NULL;
	int r;

	if (!q)
		return -ENOMEM;
	q->system = s;
	q->call = sd_bus_message_ref(call);
	r = sd_bus_call_method_async(s->peer->bus, &slot, "org.freedesktop.DBus",
				     "/org/freedesktop/DBus", "org.freedesktop.DBus",
				     "GetConnectionCredentials", on_credentials, q, "s", name);
	if (r >= 0)
		r = sd_bus_slot_set_destroy_callback(slot, question_free);
	if (r < 0)
		question_free(q);
	if (r >= 0)
		r = sd_bus_slot_set_floating(slot, 1);
	sd_bus_slot_unref(slot);
	return r < 0 ? r : 1;
}

static void retry_later(struct system_bus *s);

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct system_bus *s = userdata;

	s->retry_source = sd_event_source_disable_unref(s->retry_source);
	if (join(s) < 0)
		retry_later(s);
	return 0;
}

/* Without systemd nothing starts a bus behind our back: nobody wakes up for that */
static void retry_later(struct system_bus *s)
{
	uint64_t usec = MAX(s->retry_usec, RECONNECT_USEC);

	s->retry_usec = MIN(2 * usec, RECONNECT_MAX_USEC);
	if (sd_booted() > 0)
		(void)sd_event_add_time_relative(s->control->daemon->event, &s->retry_source,
						 CLOCK_MONOTONIC, usec, USEC_PER_SEC, on_retry, s);
}

static void on_disconnected(struct system_bus *s)
{
	peer_end(s->peer);
	s->peer = NULL;
	memset(s->callers, 0, sizeof(s->callers));
	retry_later(s);
}

static int system_filter(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct system_bus *s = userdata;
	const struct caller *caller;
	const char *name;

	if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
		on_disconnected(s);
		return 0;
	}
	name = sd_bus_message_get_sender(m);
	if (!sd_bus_message_is_method_call(m, NULL, NULL) || !name)
		return 0;
	caller = find_caller(s, name);
	return caller ? control_check_access(s->control, &caller->who, m) : ask(s, m, name);
}

/* Not ours by the bus' policy, or somebody else's: no reason to stop */
static int on_name(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);
	struct system_bus *s = userdata;

	/* A connection alone means little: systemd takes it before the bus runs, or when it cannot
	 */
	if (!sd_bus_message_is_method_error(m, SD_BUS_ERROR_NO_REPLY))
		s->retry_usec = 0;
	if (e)
		log_info("the system bus refuses the name " CONTROL_BUS_NAME ": %s", e->message);
	else
		log_debug("on the system bus as " CONTROL_BUS_NAME);
	return 0;
}

static int set_up(struct system_bus *s)
{
	struct peer *p = s->peer;
	int r = sd_bus_open_system(&p->bus);

	if (r < 0)
		return r;
	p->subscribed = true;
	r = sd_bus_add_filter(p->bus, NULL, system_filter, s);
	if (r >= 0)
		r = control_add_objects(s->control, p->bus);
	if (r >= 0)
		r = sd_bus_request_name_async(p->bus, NULL, CONTROL_BUS_NAME, 0, on_name, s);
	if (r >= 0)
		r = sd_bus_attach_event(p->bus, s->control->daemon->event, PRIORITY_CONTROL);
	return r;
}

static int join(struct system_bus *s)
{
	int r;

	s->peer = peer_new(s->control);
	if (!s->peer)
		return -ENOMEM;
	s->peer->system = true;
	r = set_up(s);
	if (r < 0) {
		peer_end(s->peer);
		s->peer = NULL;
	}
	return r;
}

int system_bus_new(struct control *control, struct system_bus **ret)
{
	struct system_bus *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->control = control;
	r = join(s);
	if (r < 0)
		retry_later(s);
	*ret = s;
	return r;
}

void system_bus_free(struct system_bus *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->retry_source);
	free(s); /* the peer is the control's */
}
