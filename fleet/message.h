/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one host tells the others: that it has a trigger, and which window is worth keeping. JSON,
 *of which other programs can make sense, too:
 *
 *	TOPIC/snapshot/GROUP/HOST
 *	{"v":1,"id":"h1-20261124T062400.882495Z","host":"h1","trigger":USEC,"since":USEC,"until":USEC,
 *	 "reason":"event","session":"sched","text":"..."}
 *
 * Times are microseconds since 1970. Whoever reads it believes nothing: all of it may have been
 *made up. Pure functions, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/fault.h"
#include "config/config-trace.h"
#include "fleet/config.h"
#include "formats/own-cause.h"

#define MESSAGE_MAX	   1024 /* bytes of one */
#define MESSAGE_TEXT_MAX   256
#define MESSAGE_REASON_MAX 28
#define MESSAGE_TOPIC_MAX  256

struct message {
	bool check; /* no trigger, but `flyrec-fleet check`: only @host counts */
	char id[OWN_ID_MAX + 1];
	char host[FLEET_NAME_MAX + 1];
	char reason[MESSAGE_REASON_MAX + 1], session[SESSION_NAME_MAX + 1];
	char text[MESSAGE_TEXT_MAX + 1];	       /* without control characters; or "" */
	uint64_t trigger_usec, since_usec, until_usec; /* realtime, in this order */
};

/* Why one is no message; each kind is said once */
enum message_fault {
	MESSAGE_OK,
	MESSAGE_TOO_LONG,
	MESSAGE_NOT_JSON,
	MESSAGE_WRONG_FIELD, /* missing, of another type, or out of bounds */
	MESSAGE_OTHER_VERSION,
	MESSAGE_N_FAULTS,
};

/**
 * message_read() - what came from somewhere
 * @why: of anything but MESSAGE_OK, for a person
 */
enum message_fault message_read(const void *payload, size_t size, struct message *ret,
				struct fault *why);

/**
 * message_write() - the payload; too long a text is shortened
 * @ret: malloc'ed
 * Return: 0 or -ENOMEM.
 */
int message_write(const struct message *message, char **ret);

/**
 * message_topic() - where messages of @host go, "+": those of all hosts
 * Return: malloc'ed; NULL: no memory.
 */
char *message_topic(const struct fleet_config *config, const char *host);

/**
 * message_host() - whose topic it is, as the broker has checked
 * Return: the end of @topic; NULL: it is none of those.
 */
const char *message_host(const struct fleet_config *config, const char *topic);
