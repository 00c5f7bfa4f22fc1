/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fleet-storm CONFIG NUMBER - as many hosts with a trigger at the same time, each with a connection
 * of its own. CONFIG: a fleet.conf whose certificate may speak for all. Prints how many messages
 * the broker has confirmed, and how long connections and messages took.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "basic/now.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "fleet/broker.h"
#include "fleet/message.h"

#define PATIENCE_USEC (120 * USEC_PER_SEC)

struct storm;

struct host {
	struct storm *storm;
	struct fleet_config config;
	struct broker_client client;
	struct broker *broker;
	char name[FLEET_NAME_MAX + 1];
};

struct storm {
	sd_event *event;
	struct host *hosts;
	unsigned n, up, confirmed, failed;
	uint64_t begin_usec, up_usec, end_usec;
};

static void end_if_done(struct storm *s)
{
	if (s->confirmed + s->failed < s->n)
		return;
	s->end_usec = now_usec(CLOCK_MONOTONIC);
	(void)sd_event_exit(s->event, 0);
}

static void publish(struct host *h, uint64_t now)
{
	struct message m = {
		.reason = "event",
		.session = "rec",
		.trigger_usec = now,
		.since_usec = now - 3 * USEC_PER_SEC,
		.until_usec = now,
	};
	_cleanup_free_ char *payload = NULL, *topic = message_topic(&h->config, h->name);
	int number;

	(void)snprintf(m.host, sizeof(m.host), "%s", h->name);
	own_id_make(h->name, now, m.id);
	if (!topic || message_write(&m, &payload) < 0 ||
	    broker_publish(h->broker, topic, payload, 60 * USEC_PER_SEC, &number) < 0)
		h->storm->failed++;
}

static void on_up(void *userdata)
{
	struct host *h = userdata;
	struct storm *s = h->storm;
	uint64_t now;

	if (++s->up < s->n)
		return;
	s->up_usec = now_usec(CLOCK_MONOTONIC);
	now = now_usec(CLOCK_REALTIME);
	for (unsigned i = 0; i < s->n; i++)
		publish(&s->hosts[i], now);
}

static void on_down(void *userdata, const char *reason)
{
	struct host *h = userdata;

	(void)fprintf(stderr, "%s: %s\n", h->name, reason);
	h->storm->failed++;
	end_if_done(h->storm);
}

static void on_published(void *userdata, int number, const char *refused)
{
	struct host *h = userdata;

	if (refused)
		(void)fprintf(stderr, "%s: %s\n", h->name, refused);
	h->storm->confirmed += !refused;
	h->storm->failed += !!refused;
	end_if_done(h->storm);
}

static int connect_host(struct storm *s, unsigned i, const struct fleet_config *config)
{
	struct host *h = &s->hosts[i];

	h->storm = s;
	h->config = *config;
	(void)snprintf(h->name, sizeof(h->name), "c%u", i);
	h->config.host = h->name;
	h->client = (struct broker_client){
		.name = "storm",
		.on_up = on_up,
		.on_down = on_down,
		.on_published = on_published,
	};
	return broker_new(s->event, &h->config, &h->client, true, h, &h->broker);
}

static void on_complaint(void *userdata, const char *text)
{
	(void)fprintf(stderr, "%s\n", text);
}

int main(int argc, char *argv[])
{
	struct rlimit files;
	struct fleet_config *config = NULL;
	struct storm s = {};
	int r = -EINVAL;

	if (argc != 3 || parse_unsigned(argv[2], &s.n) < 0 || s.n == 0) {
		(void)fprintf(stderr, "usage: fleet-storm CONFIG NUMBER\n");
		return 2;
	}
	/* One, and a pair of the library's */
	files = (struct rlimit){3 * s.n + 64, 3 * s.n + 64};
	(void)setrlimit(RLIMIT_NOFILE, &files);
	(void)signal(SIGPIPE, SIG_IGN);
	s.hosts = calloc(s.n, sizeof(*s.hosts));
	s.begin_usec = now_usec(CLOCK_MONOTONIC);
	if (s.hosts)
		r = fleet_config_load(argv[1], on_complaint, NULL, &config);
	if (r >= 0)
		r = sd_event_new(&s.event);
	if (r >= 0)
		r = sd_event_add_time_relative(s.event, NULL, CLOCK_MONOTONIC, PATIENCE_USEC, 0,
					       NULL, (void *)(intptr_t)-ETIMEDOUT);
	for (unsigned i = 0; i < s.n && r >= 0; i++)
		r = connect_host(&s, i, config);
	if (r >= 0)
		r = sd_event_loop(s.event);
	printf("%u connected in %" PRIu64 " ms, %u messages confirmed in %" PRIu64 " ms\n", s.up,
	       (s.up_usec - s.begin_usec) / 1000, s.confirmed, (s.end_usec - s.up_usec) / 1000);
	for (unsigned i = 0; i < s.n && s.hosts; i++)
		broker_free(s.hosts[i].broker);
	fleet_config_free(config);
	(void)sd_event_unref(s.event);
	free(s.hosts);
	return r < 0 || s.confirmed < s.n;
}
