/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection to the broker: MQTT over TLS with a certificate on both sides, made again for as
 * long as it takes. That the broker is away is said once, and once that it is back. Each connection
 * reads the certificates anew. Main thread, of an sd-event loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "fleet/config.h"

struct broker;

/* Each may be NULL */
struct broker_client {
	const char *name; /* "announce": the broker knows one client of each name and host */
	/* The broker keeps messages for it while it is away, and sends them then */
	bool persistent;
	const char *subscribe; /* a topic; NULL: none */
	void (*on_up)(void *userdata);
	/* @reason: of its end; or, for broker_once() of the first try that fails */
	void (*on_down)(void *userdata, const char *reason);
	void (*on_subscribed)(void *userdata);
	void (*on_message)(void *userdata, const char *topic, const void *payload, size_t size);
	/* @refused: NULL: the broker has it; or why not */
	void (*on_published)(void *userdata, int number, const char *refused);
};

/**
 * broker_new() - begin to connect
 * @client: stays where it is, as does @config
 * @once: do not try again, and say nothing
 * Return: 0 or negative errno; a broker that is not there is none.
 */
int broker_new(sd_event *event, const struct fleet_config *config,
	       const struct broker_client *client, bool once, void *userdata, struct broker **ret);

/* Takes leave of the broker */
void broker_free(struct broker *broker);

bool broker_is_up(const struct broker *broker);

/**
 * broker_publish() - send a message, which on_published() is told of
 * @expire_usec: how long it is of use
 * @ret_number: of the message, until the connection ends
 * Return: 0; -ENOTCONN: what was not answered goes with the connection; or another negative errno.
 */
int broker_publish(struct broker *broker, const char *topic, const char *payload,
		   uint64_t expire_usec, int *ret_number);
