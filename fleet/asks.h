/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecd is asked for on behalf of other hosts: each id once, some at a time, and not for
 * what so many have asked for before that one more id would find no room in the file. While flyrecd
 * is away they wait, for as long as they are of use, also over a restart. Main thread, of an
 * sd-event loop.
 */
#pragma once

#include <systemd/sd-event.h>

#include "fleet/pending.h"
#include "fleet/window.h"

struct asks;

enum asks_result {
	ASKS_TAKEN,
	ASKS_REPEATED, /* the id is known */
	ASKS_COVERED,  /* others have asked for that window */
	ASKS_TOO_MANY, /* wait already */
};

/**
 * asks_new() - @config and @pending stay where they are
 * Return: 0 or -ENOMEM.
 */
int asks_new(sd_event *event, const struct fleet_follow_config *config, const char *runtime_dir,
	     struct pending *pending, struct asks **ret);

void asks_free(struct asks *asks);

/**
 * asks_add() - ask for it as soon as can be
 * Return: enum asks_result, or -ENOMEM.
 */
int asks_add(struct asks *asks, const struct message *m, const struct window *window);
