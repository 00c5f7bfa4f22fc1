/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fleet.conf: what the programs of flyrec-fleet are told, all in one file, which
 * flyrec-fleet.conf(5) describes. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FLEET_CONFIG_FILE "/etc/flyrec/fleet.conf"
#define FLEET_NAME_MAX	  64 /* of a host, or group */

struct fleet_broker_config {
	char *host; /* NULL: there is none */
	unsigned port;
	char *ca, *certificate, *key; /* PEM files */
	char *topic;		      /* what all topics begin with */
};

struct fleet_announce_config {
	char **sessions;      /* whose triggers; NULL: all */
	uint64_t before_usec; /* of a window without a beginning, before the trigger */
	uint64_t expire_usec; /* so long is a message of use */
};

struct fleet_follow_config {
	char **sessions;	  /* that are asked; NULL: all that allow it */
	uint64_t max_window_usec; /* longer ones are refused */
	uint64_t max_age_usec;	  /* as are those that ended earlier, */
	uint64_t max_ahead_usec;  /* or will end later */
	uint64_t margin_usec;	  /* added to both ends, as clocks differ */
};

/* Of the programs that ship files */
struct fleet_store_config {
	char *remote;	     /* of rclone; NULL: nothing is shipped */
	char *config;	     /* of rclone, a file */
	uint64_t rate;	     /* bytes a second */
	bool compress;	     /* what is sent */
	bool remove;	     /* here, what is there */
	unsigned sample;     /* percent of the moments of other hosts that are sent, too */
	uint64_t poll_usec;  /* between questions whether somebody asks for a file */
	uint64_t retry_usec; /* after the first failure */
};

struct fleet_config {
	char *group, *host;
	struct fleet_broker_config broker;
	struct fleet_announce_config announce;
	struct fleet_follow_config follow;
	struct fleet_store_config store;
};

/* A line of what is wrong with a file, without its end */
typedef void (*fleet_complain_t)(void *userdata, const char *text);

/**
 * fleet_config_load() - read a file
 * @complain: told of each fault
 * Return: 0; -EINVAL or the errno of reading it, after complaints; or -ENOMEM without one.
 */
int fleet_config_load(const char *path, fleet_complain_t complain, void *userdata,
		      struct fleet_config **ret);

void fleet_config_free(struct fleet_config *config);

/**
 * fleet_config_print() - in canonical form
 * @what: "SECTION.KEY", whose value is printed, a line each; NULL: all, as a file
 * Return: 0; -ENOENT: there is no such key; or -ENOMEM.
 */
int fleet_config_print(const struct fleet_config *config, const char *what, FILE *f);

/**
 * fleet_name_valid() - can this be a host, or group, in a topic? Letters, digits, ".", "_" and "-",
 * the first one a letter or digit, FLEET_NAME_MAX at most
 */
bool fleet_name_valid(const char *name);
