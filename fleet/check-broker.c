/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the broker lets this host do: messages to itself, which others ignore, and one in the name
 * of a host that there is not, which has to be refused.
 */
#include <string.h>

#include "basic/strv.h"
#include "fleet/broker.h"
#include "fleet/check-tls.h"
#include "fleet/message.h"

#define PATIENCE_USEC (5 * USEC_PER_SEC)
#define OTHER	      "not-a-host"

struct talk {
	struct check *check;
	sd_event *event;
	struct broker *broker;
	char *own, *other; /* topics */
	int own_number, other_number;
	bool up, sent, heard, done; /* done: there is nothing else to wait for, as said */
	bool other_known, other_allowed;
};

static void end_if_done(struct talk *t)
{
	if (t->done || (t->heard && t->sent && t->other_known))
		(void)sd_event_exit(t->event, 0);
}

static void on_down(void *userdata, const char *reason)
{
	struct talk *t = userdata;

	if (!t->done)
		check_fail(t->check, "broker", "%s: %s",
			   t->up ? "ends the connection" : "does not let this host in", reason);
	t->done = true;
	end_if_done(t);
}

static int publish(struct talk *t, const char *topic, const char *host, int *ret_number)
{
	struct message m = {.check = true};
	_cleanup_free_ char *payload = NULL;
	int r;

	(void)snprintf(m.host, sizeof(m.host), "%s", host);
	r = message_write(&m, &payload);
	return r < 0 ? r : broker_publish(t->broker, topic, payload, PATIENCE_USEC, ret_number);
}

static void on_up(void *userdata)
{
	struct talk *t = userdata;

	t->up = true;
}

static void on_subscribed(void *userdata)
{
	struct talk *t = userdata;

	(void)publish(t, t->own, t->check->fleet->config->host, &t->own_number);
	(void)publish(t, t->other, OTHER, &t->other_number);
}

static void on_published(void *userdata, int number, const char *refused)
{
	struct talk *t = userdata;

	if (number == t->own_number && refused) {
		check_fail(t->check, "rights", "the broker does not let this host write to %s: %s",
			   t->own, refused);
		t->done = true;
	} else if (number == t->own_number) {
		t->sent = true;
	} else if (number == t->other_number) {
		t->other_known = true;
		t->other_allowed = !refused;
	}
	end_if_done(t);
}

static void on_message(void *userdata, const char *topic, const void *payload, size_t size)
{
	struct talk *t = userdata;
	struct message m;
	struct fault why;

	t->heard = t->heard || (strcmp(topic, t->own) == 0 &&
				message_read(payload, size, &m, &why) == MESSAGE_OK && m.check);
	end_if_done(t);
}

static void say(struct talk *t)
{
	struct check *check = t->check;

	if (t->done)
		return;
	if (!t->up)
		check_fail(check, "broker", "does not answer");
	else if (!t->sent)
		check_fail(check, "rights", "the broker does not confirm messages to %s", t->own);
	else if (!t->heard)
		check_fail(check, "rights",
			   "the broker does not let this host read %s, what others write neither",
			   t->own);
	else
		check_ok(check, "rights", "may write to %s, and read it", t->own);
	if (t->other_allowed)
		check_fail(check, "rights",
			   "the broker lets this host speak for others, as in %s: see acl_file in "
			   "mosquitto.conf(5)",
			   t->other);
	else if (t->other_known)
		check_ok(check, "rights", "may not speak for other hosts");
}

static int talk(struct talk *t)
{
	const struct fleet_config *config = t->check->fleet->config;
	const struct broker_client client = {
		.name = "check",
		.subscribe = t->own,
		.on_up = on_up,
		.on_down = on_down,
		.on_subscribed = on_subscribed,
		.on_message = on_message,
		.on_published = on_published,
	};
	int r = sd_event_add_time_relative(t->event, NULL, CLOCK_MONOTONIC, PATIENCE_USEC, 0, NULL,
					   NULL);

	if (r >= 0)
		r = broker_new(t->event, config, &client, true, t, &t->broker);
	if (r >= 0)
		r = sd_event_loop(t->event);
	if (r >= 0)
		say(t);
	t->done = true;
	broker_free(t->broker);
	return r;
}

void check_broker(struct check *check)
{
	const struct fleet_config *config = check->fleet->config;
	struct talk t = {.check = check, .own_number = -1, .other_number = -1};
	int r;

	if (!config->broker.host) {
		check_fail(check, "broker", "Host= is missing in [Broker] of %s",
			   check->fleet->config_path);
		return;
	}
	if (!check_tls(check))
		return;
	t.own = message_topic(config, config->host);
	t.other = message_topic(config, OTHER);
	r = t.own && t.other ? sd_event_new(&t.event) : -ENOMEM;
	if (r >= 0)
		r = talk(&t);
	if (r < 0)
		check_fail(check, "broker", "%s", strerror(-r));
	(void)sd_event_unref(t.event);
	free(t.own);
	free(t.other);
}
