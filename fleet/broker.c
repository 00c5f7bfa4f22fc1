/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State machine, by set_state():
 *
 *	WAITING -> CONNECTING   connect_now(): on the timer
 *	CONNECTING -> UP        on_connack()
 *	any -> WAITING          lose(): said once; the next try comes later than the one before
 *
 * What the library calls back runs within mosquitto_loop_*(), where the connection must not be
 * destroyed: it notes, and check() acts afterwards.
 */
#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "fleet/broker.h"

#define KEEP_ALIVE_SEC	20 /* so long until a silent broker, or connection, counts as lost */
#define FIRST_USEC	(USEC_PER_SEC / 4)
#define LAST_USEC	(10 * USEC_PER_SEC) /* between tries, up to half more */
#define CONNECTION_LOST "connection lost"
#define HANGS_UP	"it hangs up, maybe at the sight of Certificate="
#define CANNOT_CONNECT	"cannot connect"
#define TICK_USEC	USEC_PER_SEC

enum broker_state {
	BROKER_WAITING,
	BROKER_CONNECTING,
	BROKER_UP,
};

struct broker {
	const struct fleet_config *config;
	const struct broker_client *client;
	void *userdata;
	bool once;
	sd_event *event;
	sd_event_source *timer, *io;
	struct mosquitto *connection; /* NULL: BROKER_WAITING */
	enum broker_state state;
	uint64_t pause_usec;
	char reason[256]; /* of the end of this connection; "": none yet */
	char said[256];	  /* the last that was said; "": it is up, or was not tried yet */
};

static void set_state(struct broker *b, enum broker_state state)
{
	b->state = state;
}

static void set_reason(struct broker *b, const char *reason)
{
	if (!b->reason[0])
		(void)snprintf(b->reason, sizeof(b->reason), "%s", reason);
}

/* @r: of the library, whose text for what it has none for says nothing */
static void set_error(struct broker *b, int r)
{
	const char *text = r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r);

	if (strcmp(text, mosquitto_strerror(MOSQ_ERR_UNKNOWN)) == 0)
		text = b->state == BROKER_UP ? CONNECTION_LOST : CANNOT_CONNECT;
	set_reason(b, text);
}

/* --- the end of a connection */

/* The broker's clients come back at different times */
static uint64_t next_pause(struct broker *b)
{
	uint64_t pause = b->pause_usec;

	b->pause_usec = MIN(2 * pause, LAST_USEC);
	return pause + (uint64_t)random() % (pause / 2);
}

static void set_timer(struct broker *b, uint64_t usec)
{
	if (sd_event_source_set_time_relative(b->timer, usec) < 0 ||
	    sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT) < 0)
		(void)log_error("Failed to set a timer");
}

static void disconnect(struct broker *b)
{
	b->io = sd_event_source_disable_unref(b->io);
	if (b->connection) {
		(void)mosquitto_disconnect(b->connection);
		mosquitto_destroy(b->connection);
	}
	b->connection = NULL;
	set_state(b, BROKER_WAITING);
}

/* That it cannot be reached either is none about a broker that is away */
static bool is_news(const struct broker *b, const char *reason)
{
	return !b->said[0] || (strcmp(reason, b->said) != 0 && strcmp(reason, CANNOT_CONNECT) != 0);
}

static void lose(struct broker *b)
{
	char reason[sizeof(b->reason)];

	disconnect(b);
	set_reason(b, CONNECTION_LOST);
	memcpy(reason, b->reason, sizeof(reason));
	b->reason[0] = '\0';
	if (!b->once) {
		if (is_news(b, reason)) {
			(void)log_warning("Broker %s:%u is away, trying again: %s",
					  b->config->broker.host, b->config->broker.port, reason);
			memcpy(b->said, reason, sizeof(reason));
		}
		set_timer(b, next_pause(b));
	}
	if (b->client->on_down)
		b->client->on_down(b->userdata, reason);
}

/* --- what the library tells */

static void on_log(struct mosquitto *m, void *userdata, int level, const char *text)
{
	static const char openssl[] = "OpenSSL Error";
	struct broker *b = userdata;
	const char *last = strrchr(text, ':');

	if (level != MOSQ_LOG_ERR)
		return;
	/* "OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed" */
	if (strncmp(text, openssl, strlen(openssl)) == 0 && last && last[1])
		text = last + 1;
	set_reason(b, text);
}

static void on_connack(struct mosquitto *m, void *userdata, int code, int flags,
		       const mosquitto_property *properties)
{
	struct broker *b = userdata;
	int r;

	if (code != 0) {
		set_reason(b, b->client->persistent ? mosquitto_connack_string(code)
						    : mosquitto_reason_string(code));
		return;
	}
	set_state(b, BROKER_UP);
	b->pause_usec = FIRST_USEC;
	if (b->said[0])
		(void)log_info("Broker %s:%u is back", b->config->broker.host,
			       b->config->broker.port);
	b->said[0] = '\0';
	if (b->client->subscribe) {
		r = mosquitto_subscribe(m, NULL, b->client->subscribe, 1);
		if (r != MOSQ_ERR_SUCCESS)
			set_reason(b, mosquitto_strerror(r));
	}
	if (b->client->on_up)
		b->client->on_up(b->userdata);
}

/* @code: from the broker, above those of the library */
static void on_disconnect(struct mosquitto *m, void *userdata, int code,
			  const mosquitto_property *properties)
{
	struct broker *b = userdata;

	if (code >= MQTT_RC_UNSPECIFIED)
		set_reason(b, mosquitto_reason_string(code));
}

static void on_suback(struct mosquitto *m, void *userdata, int number, int n, const int *codes,
		      const mosquitto_property *properties)
{
	struct broker *b = userdata;

	if (n < 1 || codes[0] >= MQTT_RC_UNSPECIFIED)
		set_reason(b, "the broker refuses the subscription");
	else if (b->client->on_subscribed)
		b->client->on_subscribed(b->userdata);
}

static void on_message(struct mosquitto *m, void *userdata, const struct mosquitto_message *message,
		       const mosquitto_property *properties)
{
	struct broker *b = userdata;

	/* What was retained is of an unknown time */
	if (b->client->on_message && !message->retain)
		b->client->on_message(b->userdata, message->topic, message->payload,
				      (size_t)message->payloadlen);
}

static void on_puback(struct mosquitto *m, void *userdata, int number, int code,
		      const mosquitto_property *properties)
{
	struct broker *b = userdata;

	if (b->client->on_published)
		b->client->on_published(b->userdata, number,
					code >= MQTT_RC_UNSPECIFIED ? mosquitto_reason_string(code)
								    : NULL);
}

/* --- the loop */

/* After each call of the library. @r: what it returned. */
static void check(struct broker *b, int r)
{
	uint32_t events = EPOLLIN;

	if (r == MOSQ_ERR_CONN_LOST)
		set_reason(b, b->state == BROKER_UP ? CONNECTION_LOST : HANGS_UP);
	if (r != MOSQ_ERR_SUCCESS)
		set_error(b, r);
	if (b->reason[0] || mosquitto_socket(b->connection) < 0) {
		lose(b);
		return;
	}
	if (mosquitto_want_write(b->connection))
		events |= EPOLLOUT;
	(void)sd_event_source_set_io_events(b->io, events);
}

/* The connection is at its end. The library reads what the broker has said of that, else it tells
 * little, and of a connection that was never made nothing. */
static void end(struct broker *b, int fd)
{
	socklen_t size = sizeof(int);
	int error = 0;

	(void)mosquitto_loop_read(b->connection, 1);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error > 0)
		set_reason(b, strerror(error));
	set_reason(b, b->state == BROKER_UP ? CONNECTION_LOST : CANNOT_CONNECT);
	lose(b);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct broker *b = userdata;
	int r = MOSQ_ERR_SUCCESS;

	if (events & (EPOLLHUP | EPOLLERR)) {
		end(b, fd);
		return 0;
	}
	if (events & EPOLLOUT)
		r = mosquitto_loop_write(b->connection, 1);
	if (r == MOSQ_ERR_SUCCESS && events & EPOLLIN)
		r = mosquitto_loop_read(b->connection, 1);
	check(b, r);
	return 0;
}

static int set_up(struct broker *b)
{
	const struct fleet_broker_config *to = &b->config->broker;
	_cleanup_free_ char *id = strf("flyrec-%s-%s", b->client->name, b->config->host);
	int r;

	if (!id)
		return MOSQ_ERR_NOMEM;
	b->connection = mosquitto_new(id, !b->client->persistent, b);
	if (!b->connection)
		return MOSQ_ERR_NOMEM;
	mosquitto_log_callback_set(b->connection, on_log);
	mosquitto_connect_v5_callback_set(b->connection, on_connack);
	mosquitto_disconnect_v5_callback_set(b->connection, on_disconnect);
	mosquitto_subscribe_v5_callback_set(b->connection, on_suback);
	mosquitto_message_v5_callback_set(b->connection, on_message);
	mosquitto_publish_v5_callback_set(b->connection, on_puback);
	/* MQTT 5 says more, but the library can ask for a session that lasts only where it may
	 * block */
	r = mosquitto_int_option(b->connection, MOSQ_OPT_PROTOCOL_VERSION,
				 b->client->persistent ? MQTT_PROTOCOL_V311 : MQTT_PROTOCOL_V5);
	if (r == MOSQ_ERR_SUCCESS)
		r = mosquitto_int_option(b->connection, MOSQ_OPT_TCP_NODELAY, 1);
	if (r == MOSQ_ERR_SUCCESS)
		r = mosquitto_tls_set(b->connection, to->ca, NULL, to->certificate, to->key, NULL);
	if (r == MOSQ_ERR_INVAL)
		set_reason(b, "cannot read CA=, Certificate= or Key=");
	if (r == MOSQ_ERR_SUCCESS)
		r = mosquitto_connect_async(b->connection, to->host, (int)to->port, KEEP_ALIVE_SEC);
	return r;
}

static void connect_now(struct broker *b)
{
	int r;

	errno = 0;
	r = set_up(b);
	set_state(b, BROKER_CONNECTING);
	if (r == MOSQ_ERR_SUCCESS) {
		int e = sd_event_add_io(b->event, &b->io, mosquitto_socket(b->connection),
					EPOLLIN | EPOLLOUT, on_io, b);

		if (e < 0)
			set_reason(b, strerror(-e));
	}
	if (r == MOSQ_ERR_EAI)
		set_reason(b, "there is no such host");
	if (r != MOSQ_ERR_SUCCESS)
		set_error(b, r);
	if (b->reason[0])
		lose(b);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct broker *b = userdata;

	if (b->state == BROKER_WAITING)
		connect_now(b);
	else
		check(b, mosquitto_loop_misc(b->connection));
	if (b->state != BROKER_WAITING)
		set_timer(b, TICK_USEC);
	return 0;
}

int broker_new(sd_event *event, const struct fleet_config *config,
	       const struct broker_client *client, bool once, void *userdata, struct broker **ret)
{
	struct broker *b = calloc(1, sizeof(*b));
	int r;

	if (!b || mosquitto_lib_init() != MOSQ_ERR_SUCCESS) {
		free(b);
		return -ENOMEM;
	}
	*b = (struct broker){
		.config = config,
		.client = client,
		.userdata = userdata,
		.once = once,
		.event = sd_event_ref(event),
		.pause_usec = FIRST_USEC,
	};
	srandom((unsigned)now_nsec(CLOCK_REALTIME) ^ (unsigned)getpid());
	r = sd_event_add_time_relative(event, &b->timer, CLOCK_MONOTONIC, 0, 0, on_timer, b);
	if (r < 0) {
		broker_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

void broker_free(struct broker *b)
{
	if (!b)
		return;
	disconnect(b);
	(void)sd_event_source_disable_unref(b->timer);
	(void)sd_event_unref(b->event);
	free(b);
	(void)mosquitto_lib_cleanup();
}

bool broker_is_up(const struct broker *b)
{
	return b->state == BROKER_UP;
}

int broker_publish(struct broker *b, const char *topic, const char *payload, uint64_t expire_usec,
		   int *ret_number)
{
	mosquitto_property *properties = NULL;
	int r;

	if (b->state != BROKER_UP)
		return -ENOTCONN;
	r = mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
					 (uint32_t)MAX(expire_usec / USEC_PER_SEC, UINT64_C(1)));
	if (r == MOSQ_ERR_SUCCESS)
		r = mosquitto_publish_v5(b->connection, ret_number, topic, (int)strlen(payload),
					 payload, 1, false, properties);
	mosquitto_property_free_all(&properties);
	if (r == MOSQ_ERR_SUCCESS && mosquitto_want_write(b->connection))
		(void)sd_event_source_set_io_events(b->io, EPOLLIN | EPOLLOUT);
	switch (r) {
	case MOSQ_ERR_SUCCESS:
		return 0;
	case MOSQ_ERR_NOMEM:
		return -ENOMEM;
	default:
		set_reason(b, mosquitto_strerror(r));
		return -ENOTCONN; /* which the timer notices */
	}
}
