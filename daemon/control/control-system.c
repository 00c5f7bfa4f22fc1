/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system bus, where there is one. Its policy file lets root and group flyrec in; for the rest
 * the bus daemon is asked who a caller is - asynchronously: the call waits on the local queue until
 * the answer is there. Names of connections are never used twice, so answers are kept. The policy
 * file keeps descriptors out; the bus takes messages of 32 MiB, and those are refused here. Main
 * thread.
 */
#include <errno.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "daemon/control/control-internal.h"

#define CALLERS_MAX	   64
#define QUESTIONS_MAX	   64 /* dbus-daemon lets one connection wait for 128 answers */
#define QUESTION_CALLS_MAX 4  /* of one sender, until the bus has said who it is */
/* Early in the boot there is no bus yet, and it may be restarted; some machines never have one */
#define RECONNECT_USEC	   (10 * USEC_PER_SEC)
#define RECONNECT_MAX_USEC (640 * USEC_PER_SEC)

struct caller {
	char name[64];
	struct access_peer who;
};

/* To the bus: who is that? */
struct question {
	struct question *next;
	struct system_bus *system;
	sd_bus_slot *slot;
	bool again;
	unsigned n_calls;
	sd_bus_message *calls[QUESTION_CALLS_MAX];
	char name[64]; /* their sender */
};

/* A known user's call whose turn has not come */
struct waiting {
	struct waiting *next;
	sd_bus_message *call;
	uid_t uid;
};

struct system_bus {
	struct control *control;
	int (*add_objects)(struct control *control, sd_bus *bus);
	struct question *questions;
	struct waiting *waiting;      /* in the order of the calls */
	sd_bus_message *released;     /* the first of them, on its way through the filter again */
	sd_event_source *post_source; /* while there are any */
	struct peer *peer;	      /* NULL: not connected */
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

bool control_caller_is_admin(struct control *c, sd_bus_message *m)
{
	const struct access_peer *who = control_caller(c, m);

	return who && access_allowed(who, &c->groups, ACCESS_CHANGE);
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

static void question_free(struct question *q)
{
	LIST_REMOVE(q->system->questions, q);
	for (unsigned i = 0; i < q->n_calls; i++)
		sd_bus_message_unref(q->calls[i]);
	sd_bus_slot_unref(q->slot);
	free(q);
}

/* Not even that while many wait already: refusals without end would pile up, too */
static int refuse(sd_bus_message *call, const char *name, const char *text)
{
	uint64_t n = 0;
	int r;

	if (sd_bus_get_n_queued_write(sd_bus_message_get_bus(call), &n) >= 0 &&
	    n > CONTROL_QUEUE_MAX)
		return 1;
	r = sd_bus_reply_method_errorf(call, name, "%s", text);

	return r < 0 ? r : 1;
}

static int send_question(struct question *q);

/* The bus has said who it is: now look at the calls again */
static int on_credentials(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct question *q = userdata;
	struct system_bus *s = q->system;
	struct caller caller = {};
	bool known =
		!sd_bus_message_is_method_error(m, NULL) && read_credentials(m, &caller.who) >= 0;

	/* Too many questions at once, for one; who has gone needs no answer */
	if (!known && !q->again &&
	    !sd_bus_message_is_method_error(m, SD_BUS_ERROR_NAME_HAS_NO_OWNER)) {
		q->again = true;
		q->slot = sd_bus_slot_unref(q->slot);
		if (send_question(q) >= 0)
			return 0;
	}
	if (known) {
		(void)strcpy(caller.name, q->name);
		s->callers[s->next++ % CALLERS_MAX] = caller;
	}
	for (unsigned i = 0; i < q->n_calls; i++)
		if (known)
			(void)sd_bus_enqueue_for_read(sd_bus_message_get_bus(m), q->calls[i]);
		else
			(void)sd_bus_reply_method_errorf(q->calls[i], SD_BUS_ERROR_ACCESS_DENIED,
							 "the bus does not say who you are");
	question_free(q);
	return 0;
}

static int send_question(struct question *q)
{
	return sd_bus_call_method_async(q->system->peer->bus, &q->slot, "org.freedesktop.DBus",
					"/org/freedesktop/DBus", "org.freedesktop.DBus",
					"GetConnectionCredentials", on_credentials, q, "s",
					q->name);
}

/* The call waits for the answer; this one is refused where too many wait already */
static int ask(struct system_bus *s, sd_bus_message *call, const char *name)
{
	struct question *q;
	unsigned n = 0;
	int r;

	for (q = s->questions; q && strcmp(q->name, name) != 0; q = q->next)
		n++;
	if ((q && q->n_calls >= QUESTION_CALLS_MAX) || (!q && n >= QUESTIONS_MAX) ||
	    strlen(name) >= sizeof(q->name)) {
		return refuse(call, SD_BUS_ERROR_LIMITS_EXCEEDED,
			      "the bus has not said yet who you are");
	}
	if (!q) {
		q = calloc(1, sizeof(*q));
		if (!q)
			return -ENOMEM;
		(void)strcpy(q->name, name);
		q->system = s;
		q->next = s->questions;
		s->questions = q;
		r = send_question(q);
		if (r < 0) {
			question_free(q);
			return r;
		}
	}
	q->calls[q->n_calls++] = sd_bus_message_ref(call);
	return 1;
}

/* --- calls that wait until the bus has taken earlier answers */

/*
 * The bus reads a little from us at a time, while calls go on coming: answers much longer than the
 * calls would pile up here. So calls wait while some answers do.
 */
static bool bus_is_behind(const struct system_bus *s)
{
	uint64_t n = 0;

	return sd_bus_get_n_queued_write(s->peer->bus, &n) >= 0 && n > CONTROL_BUS_ANSWERS_MAX;
}

static void waiting_free(struct system_bus *s)
{
	struct waiting *w = s->waiting;

	s->waiting = w->next;
	sd_bus_message_unref(w->call);
	free(w);
	if (!s->waiting)
		s->post_source = sd_event_source_disable_unref(s->post_source);
}

/* After each event, as the bus' reading is one */
static int on_post(sd_event_source *source, void *userdata)
{
	struct system_bus *s = userdata;

	if (s->released || bus_is_behind(s))
		return 0;
	s->released = s->waiting->call; /* stays until it has come by, at the latest in waiting */
	if (sd_bus_enqueue_for_read(s->peer->bus, s->released) < 0) {
		s->released = NULL;
		waiting_free(s);
	}
	return 0;
}

/* Return: 1, as a filter that has dealt with the call; or negative errno */
static int wait_for_turn(struct system_bus *s, sd_bus_message *call, uid_t uid)
{
	struct waiting **last = &s->waiting, *w;
	unsigned own = 0;
	int r = 0;

	for (; *last; last = &(*last)->next)
		own += (*last)->uid == uid;
	if (own >= CONTROL_CALLS_MAX)
		return refuse(call, SD_BUS_ERROR_LIMITS_EXCEEDED, "too many calls wait");
	if (!s->post_source)
		r = sd_event_add_post(s->control->env->event, &s->post_source, on_post, s);
	w = r < 0 ? NULL : calloc(1, sizeof(*w));
	if (!w)
		return r < 0 ? r : -ENOMEM;
	w->call = sd_bus_message_ref(call);
	w->uid = uid;
	*last = w;
	return 1;
}

/* Return: bytes of its strings and numbers, or negative errno for what no call of ours has */
static int64_t measure(sd_bus_message *m)
{
	const char *contents, *path = sd_bus_message_get_path(m);
	int64_t size = path ? (int64_t)strlen(path) : 0;
	char type;
	int r;

	while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
		bool array = type == 'a' && strcmp(contents, "s") == 0;
		const char *text;

		if (!array && !strchr("sbtu", type))
			return -EBADMSG;
		if (array)
			r = sd_bus_message_enter_container(m, 'a', "s");
		else if (type != 's')
			r = sd_bus_message_skip(m, NULL);
		while (r > 0 && (array || type == 's') &&
		       (r = sd_bus_message_read_basic(m, 's', &text)) > 0) {
			size += (int64_t)strlen(text) + 8;
			if (!array)
				break;
		}
		if (r >= 0 && array)
			r = sd_bus_message_exit_container(m);
		if (r < 0)
			return r;
	}
	r = r < 0 ? r : sd_bus_message_rewind(m, 1);
	return r < 0 ? r : size;
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
		(void)sd_event_add_time_relative(s->control->env->event, &s->retry_source,
						 CLOCK_MONOTONIC, usec, USEC_PER_SEC, on_retry, s);
}

static void on_disconnected(struct system_bus *s)
{
	peer_end(s->peer);
	s->peer = NULL;
	memset(s->callers, 0, sizeof(s->callers));
	while (s->questions)
		question_free(s->questions);
	s->released = NULL;
	while (s->waiting)
		waiting_free(s);
	retry_later(s);
}

void system_bus_leave(struct system_bus *s)
{
	log_warning("the system bus does not take what is sent to it: leaving it for a while");
	on_disconnected(s);
}

static int system_filter(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct system_bus *s = userdata;
	const struct caller *caller;
	const char *name;
	int64_t size;

	if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
		on_disconnected(s);
		return 0;
	}
	name = sd_bus_message_get_sender(m);
	if (!sd_bus_message_is_method_call(m, NULL, NULL) || !name)
		return 0;
	peer_check_queue(s->peer);
	if (!s->peer)
		return 1;
	size = measure(m);
	if (size < 0 || size > (int64_t)RELAY_MESSAGE_MAX)
		return refuse(m, SD_BUS_ERROR_INVALID_ARGS,
			      "no call is as long as this, or has these arguments");
	caller = find_caller(s, name);
	if (!caller)
		return ask(s, m, name);
	if (m == s->released) {
		s->released = NULL;
		waiting_free(s); /* the bus still holds the call */
	} else if (s->waiting || bus_is_behind(s)) {
		return wait_for_turn(s, m, caller->who.uid);
	}
	return control_check_access(s->control, &caller->who, m);
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
		r = s->add_objects(s->control, p->bus);
	if (r >= 0)
		r = sd_bus_request_name_async(p->bus, NULL, CONTROL_BUS_NAME, 0, on_name, s);
	if (r >= 0)
		r = sd_bus_attach_event(p->bus, s->control->env->event, PRIORITY_CONTROL);
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

int system_bus_new(struct control *control, int (*add_objects)(struct control *c, sd_bus *bus),
		   struct system_bus **ret)
{
	struct system_bus *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->control = control;
	s->add_objects = add_objects;
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
	while (s->questions)
		question_free(s->questions);
	while (s->waiting)
		waiting_free(s);
	sd_event_source_disable_unref(s->retry_source);
	free(s); /* the peer is the control's */
}
