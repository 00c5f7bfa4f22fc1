/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnUnitFailed=: told by systemd when a unit has come to the state "failed", over the system bus,
 * as that takes no rights; systemd's own socket is for root. One for all sessions. Connects again
 * when the connection ends (restart of the bus) or when there is a bus; what failed meanwhile is
 * asked for. Owner: the daemon. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/macro.h"

struct unit_watch;

/* @usec: realtime, when it failed */
typedef void (*unit_failed_t)(void *userdata, const char *unit, uint64_t usec);

/**
 * unit_watch_new() - begin; whether it works is unit_watch_trouble()
 */
int unit_watch_new(sd_event *event, int64_t priority, unit_failed_t on_failed, void *userdata,
		   struct unit_watch **ret);

/* NULL is fine */
void unit_watch_free(struct unit_watch *watch);

/**
 * unit_watch_trouble() - why units are not watched now; NULL: they are
 */
const char *unit_watch_trouble(const struct unit_watch *watch);

DEFINE_CLEANUP(struct unit_watch *, unit_watch_free)
