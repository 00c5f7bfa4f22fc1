/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What causes snapshots of a session by itself: OnSignal=, OnEvent=, OnPressure=, OnUnitFailed=.
 * Burst= and IntervalSec= count for each of them by itself, so that one that goes on and on takes
 * nothing from the others. Modes do not matter here: each trigger ends in session_trigger(). Owner:
 * the session. Main thread.
 *
 *   trigger.c         the list: made, counted, fired
 *   trigger-limit.c   how often
 *   trigger-event.c, event-watch.c, event-text.c   events, by an instance of their own
 *   pressure.c        PSI
 *   unit-watch.c      systemd
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "daemon/trigger/trigger-limit.h"

struct session;
struct triggers;

enum trigger_kind {
	TRIGGER_SIGNAL,
	TRIGGER_EVENT,
	TRIGGER_PRESSURE,
	TRIGGER_UNIT,
};

struct trigger {
	enum trigger_kind kind;
	char *text;		    /* as configured, "" for the signal */
	uint64_t fired;		    /* snapshots it asked for */
	uint64_t suppressed;	    /* it happened, and got no snapshot of its own */
	char *unavailable;	    /* why it cannot happen; NULL: it is armed */
	struct trigger_limit limit; /* Burst= and IntervalSec=, by the monotonic clock */
	char *refused;		    /* what was said of the last one without a snapshot; or NULL */
};

/* The word in file names, for people and for metrics */
const char *trigger_kind_name(enum trigger_kind kind);

/**
 * triggers_prepare() - as the session's configuration says; before anything is traced
 * Makes the instance of OnEvent=, or takes over what an earlier process left. The session's own
 * instance is there, and its state file written.
 * Return: 0, or negative errno with @why when the kernel refuses an event.
 */
int triggers_prepare(struct session *session, struct fault *why);

/**
 * triggers_arm() - from now on they cause snapshots
 * What this machine cannot watch is logged, shown as unavailable, and no error.
 */
int triggers_arm(struct session *session, struct fault *why);

/**
 * triggers_configure() - [Snapshot] of a recording session has changed; between steps
 * Return: as triggers_prepare(); then the session has no triggers, and should fail.
 */
int triggers_configure(struct session *session, struct fault *why);

/**
 * triggers_disarm() - before the session's own instance goes; counts stay
 * @keep: leave the instance of OnEvent= for the next process
 */
void triggers_disarm(struct session *session, bool keep);

/**
 * triggers_remove_stray() - the instance of OnEvent= that an earlier process left
 * @instance: name of the session's own instance then
 */
void triggers_remove_stray(const struct session *session, const char *instance);

/* Forget all, counts too */
void triggers_free(struct session *session);

/**
 * triggers_check() - has somebody meddled with the instance of OnEvent=? Repairs it, and logs that
 * One that is gone is made again by session_advance(), between steps: jobs write the state file,
 * too.
 */
void triggers_check(struct session *session);
void triggers_watch_again(struct session *session);

/* SIGUSR1; a unit has failed, @usec: realtime */
void triggers_on_signal(struct session *session);
void triggers_on_unit(struct session *session, const char *unit, uint64_t usec);

/**
 * triggers_give_back() - the snapshot of the trigger that says @what of itself has come to nothing:
 * it does not count
 */
void triggers_give_back(struct session *session, const char *what);

/* Will they cause snapshots, as far as they are available? */
bool triggers_armed(const struct session *session);

/* Does it need the daemon to watch units? */
bool triggers_want_units(const struct session *session);

/**
 * triggers_list() - all of them, for those who ask
 * @ret_n: how many
 * Counts are as of now. Valid until the next call of anything here.
 */
const struct trigger *triggers_list(struct session *session, size_t *ret_n);
