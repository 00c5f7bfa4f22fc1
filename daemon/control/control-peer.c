/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Peers: a connection each, and org.freedesktop.DBus as a bus daemon would answer. Main thread.
 */
#include <string.h>

#include "basic/log.h"
#include "daemon/control/control-internal.h"
#include "daemon/plumbing/guard.h"

struct peer *control_find_peer(struct control *c, sd_bus *bus)
{
	for (struct peer *p = c->peers; p; p = p->next)
		if (p->bus == bus)
			return p;
	return NULL;
}

struct peer *peer_new(struct control *c)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->control = c;
	p->fd = -EBADF;
	p->next = c->peers;
	c->peers = p;
	c->n_peers++;
	return p;
}

void peer_free(struct peer *p)
{
	struct control *c = p->control;

	LIST_REMOVE(c->peers, p);
	c->n_peers--;
	control_forget_requests(p);
	control_start_works(c);
	sd_event_source_disable_unref(p->end_source);
	sd_event_source_disable_unref(p->patience_source);
	relay_free(p->relay);
	if (p->bus) {
		sd_bus_detach_event(p->bus);
		sd_bus_close_unref(p->bus);
	}
	/* Only now does nobody else have it open */
	guard_close(c->env->guard, p->fd, p->refuses, p->who.uid);
	free(p);
}

static int on_end(sd_event_source *source, void *userdata)
{
	peer_free(userdata);
	return 0;
}

void peer_end(struct peer *p)
{
	if (!p->end_source &&
	    sd_event_add_defer(p->control->env->event, &p->end_source, on_end, p) >= 0)
		(void)sd_event_source_set_priority(p->end_source, PRIORITY_ROOT - 1);
}

void peer_check_queue(struct peer *p)
{
	uint64_t n = 0;

	if (p->end_source || sd_bus_get_n_queued_write(p->bus, &n) < 0 ||
	    n <= (p->system ? CONTROL_BUS_QUEUE_MAX : CONTROL_QUEUE_MAX))
		return;
	if (p->system) {
		system_bus_leave(p->control->system);
		return;
	}
	log_debug("control: process %d does not read, hanging up", p->who.pid);
	peer_end(p);
}

/*
 * --- What comes over a peer-to-peer connection is looked at here first: may this peer do that, and
 * what would a bus daemon answer to the calls that clients like busctl make of it.
 */

#define OUR_UNIQUE_NAME ":1.0"

static bool is_our_name(const char *name)
{
	return strcmp(name, CONTROL_BUS_NAME) == 0 || strcmp(name, OUR_UNIQUE_NAME) == 0;
}

static int say_hello(struct peer *p, sd_bus_message *m)
{
	return sd_bus_reply_method_return(m, "s", ":1.1");
}

/* There is nothing to match: a peer gets the signals, or it doesn't */
static int add_match(struct peer *p, sd_bus_message *m)
{
	p->subscribed = true;
	return sd_bus_reply_method_return(m, NULL);
}

static int remove_match(struct peer *p, sd_bus_message *m)
{
	return sd_bus_reply_method_return(m, NULL);
}

static int get_name_owner(struct peer *p, sd_bus_message *m)
{
	const char *name;
	int r = sd_bus_message_read(m, "s", &name);

	if (r < 0)
		return sd_bus_reply_method_errnof(m, r, "GetNameOwner takes a name");
	if (is_our_name(name))
		return sd_bus_reply_method_return(m, "s", OUR_UNIQUE_NAME);
	if (strcmp(name, "org.freedesktop.DBus") == 0)
		return sd_bus_reply_method_return(m, "s", name);
	return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
					  "nobody but " CONTROL_BUS_NAME " is here");
}

static int name_has_owner(struct peer *p, sd_bus_message *m)
{
	const char *name;
	int r = sd_bus_message_read(m, "s", &name);

	if (r < 0)
		return sd_bus_reply_method_errnof(m, r, "NameHasOwner takes a name");
	return sd_bus_reply_method_return(
		m, "b", is_our_name(name) || strcmp(name, "org.freedesktop.DBus") == 0);
}

static int list_names(struct peer *p, sd_bus_message *m)
{
	return sd_bus_reply_method_return(m, "as", 3, "org.freedesktop.DBus", CONTROL_BUS_NAME,
					  OUR_UNIQUE_NAME);
}

static int get_id(struct peer *p, sd_bus_message *m)
{
	char id[SD_ID128_STRING_MAX];

	return sd_bus_reply_method_return(m, "s", sd_id128_to_string(p->control->id, id));
}

static int answer_as_bus(struct peer *p, sd_bus_message *m)
{
	static const struct {
		const char *member;
		int (*answer)(struct peer *p, sd_bus_message *m);
	} calls[] = {
		{"Hello", say_hello},
		{"AddMatch", add_match},
		{"RemoveMatch", remove_match},
		{"GetNameOwner", get_name_owner},
		{"NameHasOwner", name_has_owner},
		{"ListNames", list_names},
		{"GetId", get_id},
	};
	const char *member = sd_bus_message_get_member(m);

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (strcmp(calls[i].member, member) == 0)
			return calls[i].answer(p, m);
	return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_UNKNOWN_METHOD,
					  "%s is not there on a peer-to-peer connection", member);
}

bool control_is_stranger(const struct control *c, const struct access_peer *who)
{
	return !access_allowed(who, &c->groups, ACCESS_QUERY);
}

int control_check_access(struct control *c, const struct access_peer *who, sd_bus_message *m)
{
	const char *interface = sd_bus_message_get_interface(m);
	const char *member = sd_bus_message_get_member(m);
	enum access_right right = access_needed(interface, member);
	int r;

	if (access_allowed(who, &c->groups, right))
		return 0;
	r = sd_bus_reply_method_errorf(m, SD_BUS_ERROR_ACCESS_DENIED,
				       "%s needs %s; you are user %u", member ? member : "this",
				       access_who(right), who->uid);
	return r < 0 ? r : 1;
}

int control_bus_filter(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct peer *p = userdata;
	int r;

	if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
		peer_end(p);
		return 0;
	}
	/* Signals and answers to questions that we never asked */
	if (!sd_bus_message_is_method_call(m, NULL, NULL))
		return 1;
	peer_check_queue(p);
	if (p->end_source || p->hang_up)
		return 1;
	r = control_check_access(p->control, &p->who, m);
	if (r != 0) {
		/* There is nothing else to say to a stranger, and others want his place */
		p->hang_up = control_is_stranger(p->control, &p->who);
		return r;
	}
	if (!sd_bus_message_is_method_call(m, "org.freedesktop.DBus", NULL))
		return 0;
	r = answer_as_bus(p, m);
	return r < 0 ? r : 1;
}
