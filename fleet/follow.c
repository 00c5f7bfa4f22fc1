/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec-follow: keeps the same moment as other hosts of the group. Whatever comes from the broker
 * may have been made up: it is read as such, judged by this host's bounds and clock, and what is
 * refused is said once of each kind. Main thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "fleet/asks.h"
#include "fleet/broker.h"
#include "fleet/program.h"

/* What is refused: message faults, window faults, and */
enum {
	REFUSED_MESSAGE = 0,
	REFUSED_WINDOW = REFUSED_MESSAGE + MESSAGE_N_FAULTS,
	REFUSED_TOPIC = REFUSED_WINDOW + WINDOW_N_FAULTS,
	REFUSED_HOST,
	REFUSED_TOO_MANY,
	REFUSED_N,
};

#define SAID_USEC (3600 * USEC_PER_SEC) /* so long a kind is not said again */

struct refused {
	uint64_t said_usec; /* monotonic; 0: never */
	unsigned n;	    /* since then */
};

struct follow {
	struct fleet fleet;
	sd_event *event;
	struct broker *broker;
	struct asks *asks;
	struct pending pending;
	char *topic;
	bool follows; /* the broker has said so */
	struct refused refused[REFUSED_N];
	unsigned n_covered; /* not said yet */
	sd_event_source *covered_timer;
};

static void refuse(struct follow *f, unsigned kind, const char *topic, const char *why)
{
	_cleanup_free_ char *shown = escape_text(topic, false);
	struct refused *refused = &f->refused[kind];
	uint64_t now = now_usec(CLOCK_MONOTONIC);

	if (refused->said_usec > 0 && now - refused->said_usec < SAID_USEC) {
		refused->n++;
		return;
	}
	if (refused->n > 0)
		(void)log_warning("Refused a message to %s, and %u of the kind before: %s",
				  shown ? shown : "?", refused->n, why);
	else
		(void)log_warning("Refused a message to %s: %s", shown ? shown : "?", why);
	*refused = (struct refused){.said_usec = now};
}

/* --- a storm */

static int on_covered(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct follow *f = userdata;

	(void)log_info("%u more messages are of moments that were asked for", f->n_covered);
	f->n_covered = 0;
	return 0;
}

static void count_covered(struct follow *f)
{
	if (f->n_covered++ == 0 &&
	    (sd_event_source_set_time_relative(f->covered_timer, USEC_PER_SEC) < 0 ||
	     sd_event_source_set_enabled(f->covered_timer, SD_EVENT_ONESHOT) < 0))
		(void)log_error("Failed to set a timer");
}

/* --- messages */

static void ask(struct follow *f, const char *topic, const struct message *m,
		const struct window *window)
{
	switch (asks_add(f->asks, m, window)) {
	case ASKS_COVERED:
		count_covered(f);
		break;
	case ASKS_TOO_MANY:
		refuse(f, REFUSED_TOO_MANY, topic, "too many at a time");
		break;
	case ASKS_TAKEN:
	case ASKS_REPEATED:
		break;
	default:
		(void)log_error_errno(-ENOMEM, "%s: %m", m->id);
	}
}

static void on_message(void *userdata, const char *topic, const void *payload, size_t size)
{
	struct follow *f = userdata;
	const struct fleet_config *config = f->fleet.config;
	const char *host = message_host(config, topic);
	enum message_fault fault;
	enum window_fault bad;
	struct window window;
	struct message m;
	struct fault why;

	if (!host) {
		refuse(f, REFUSED_TOPIC, topic, "no host's topic");
		return;
	}
	if (strcmp(host, config->host) == 0)
		return;
	fault = message_read(payload, size, &m, &why);
	if (fault != MESSAGE_OK) {
		refuse(f, REFUSED_MESSAGE + fault, topic, why.text);
		return;
	}
	/* The broker lets each host write to its own topic only */
	if (strcmp(host, m.host) != 0) {
		refuse(f, REFUSED_HOST, topic, "it says that it is of another host");
		return;
	}
	if (m.check)
		return;
	bad = window_judge(&config->follow, &m, now_usec(CLOCK_REALTIME), &window, &why);
	if (bad != WINDOW_OK)
		refuse(f, REFUSED_WINDOW + bad, topic, why.text);
	else
		ask(f, topic, &m, &window);
}

/* What another process could not ask for yet */
static bool on_found(void *userdata, const struct message *m, uint64_t age_usec)
{
	struct follow *f = userdata;
	struct window window;
	struct fault why;

	if (strcmp(m->host, f->fleet.config->host) == 0 ||
	    window_judge(&f->fleet.config->follow, m, now_usec(CLOCK_REALTIME), &window, &why) !=
		    WINDOW_OK)
		return false;
	/* It makes another one if it has to wait again */
	pending_remove(&f->pending, m->id);
	return asks_add(f->asks, m, &window) == ASKS_TAKEN;
}

static void on_subscribed(void *userdata)
{
	struct follow *f = userdata;

	if (!f->follows)
		(void)log_info("Following %s", f->topic);
	f->follows = true;
}

static int run(struct follow *f)
{
	struct broker_client client = {
		.name = "follow",
		.persistent = true,
		.on_subscribed = on_subscribed,
		.on_message = on_message,
	};
	int r = fleet_run_begin(&f->fleet, &f->event);

	if (r < 0)
		return r;
	f->topic = message_topic(f->fleet.config, "+");
	if (!f->topic)
		return -ENOMEM;
	client.subscribe = f->topic;
	r = sd_event_add_time_relative(f->event, &f->covered_timer, CLOCK_MONOTONIC, 0, 0,
				       on_covered, f);
	if (r >= 0)
		r = sd_event_source_set_enabled(f->covered_timer, SD_EVENT_OFF);
	pending_open(&f->pending);
	if (r >= 0)
		r = asks_new(f->event, &f->fleet.config->follow, f->fleet.runtime_dir, &f->pending,
			     &f->asks);
	if (r >= 0)
		r = broker_new(f->event, f->fleet.config, &client, false, f, &f->broker);
	if (r < 0)
		return log_error_errno(r, "Cannot begin: %m");
	pending_read(&f->pending, on_found, f);
	r = fleet_run(f->event);
	broker_free(TAKE_PTR(f->broker));
	return r;
}

int main(int argc, char *argv[])
{
	struct follow f = {.fleet = {.name = "flyrec-follow"}, .pending = {.fd = -EBADF}};
	int r = fleet_program(&f.fleet, argc, argv,
			      "Have this host's flyrecd keep the same moment as other hosts of the "
			      "group.");

	if (r == 1)
		r = run(&f);
	asks_free(f.asks);
	pending_close(&f.pending);
	(void)sd_event_source_disable_unref(f.covered_timer);
	(void)sd_event_unref(f.event);
	free(f.topic);
	fleet_done(&f.fleet);
	return r == -EINVAL ? 2 : r < 0;
}
