/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What causes snapshots of a session by itself: OnSignal=, OnEvent=, OnPressure=, OnUnitFailed=.
 * Burst= and IntervalSec= count for each of them by itself, so that one that goes on and on takes
 * nothing from the others. Modes do not matter here: each trigger ends in the host's fire(). Owner:
 * the session. Main thread.
 *
 *   trigger.c         the list: made, counted, fired; pressure (PSI)
 *   trigger-limit.c   how often
 *   event-watch.c, event-text.c   events, by an instance of their own
 *   unit-watch.c      systemd
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/fault.h"
#include "config/config.h"
#include "daemon/trigger/trigger-limit.h"

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

/* Why a snapshot is taken without anyone asking for it */
struct snapshot_cause {
	const char *reason; /* a word, part of the file's name */
	const char *what;   /* the trigger, as the configuration says it */
	const char *text;   /* what is to be said of it, with a comma before it, or "" */
	const char *detail; /* lines "KEY: VALUE" for the text in the file, or NULL */
	uint64_t time_usec; /* realtime, when it happened; 0: now */
	unsigned rank;	    /* see retention_rank() */
};

/* Whose triggers they are */
struct trigger_host {
	/* If another trigger's snapshot is so new that this one can be part of it. Return: 1 it is,
	 * 0 there is none, -ENOTCONN: no snapshots are taken now, or another negative errno. */
	int (*join)(void *userdata, const struct snapshot_cause *cause);
	/* Take one. Return: 0 or negative errno. */
	int (*fire)(void *userdata, const struct snapshot_cause *cause);
	/* Triggers have as many snapshots to be made as there may be */
	bool (*busy)(void *userdata);
	/* That an instance watches these events must be known to the next process; NULL: there is
	 * none any more. Return: 0 or negative errno with @why. */
	int (*remember)(void *userdata, char *const *events, struct fault *why);
	/* Failed units are of interest, or no longer: triggers_want_units() */
	void (*units_wanted)(void *userdata);
};

/**
 * triggers_new() - none yet
 * @name: the session's, for the log; it, @host and @userdata are the caller's, for as long as they
 * are there
 * Return: NULL: no memory.
 */
struct triggers *triggers_new(sd_event *event, const char *name, const struct trigger_host *host,
			      void *userdata);

/* The instance that goes on watching stays for the next process. NULL is fine. */
void triggers_free(struct triggers *triggers);

/**
 * triggers_prepare() - as @config says; before anything is traced
 * Makes the instance of OnEvent=, or takes over what an earlier process left.
 * @instance: the session's, which is there
 * @watched: what remember() was told last, by this process or an earlier one
 * Return: 0, or negative errno with @why when the kernel refuses an event.
 */
int triggers_prepare(struct triggers *triggers, const struct snapshot_config *config,
		     const char *instance, char *const *watched, struct fault *why);

/**
 * triggers_arm() - from now on they cause snapshots
 * What this machine cannot watch is logged, shown as unavailable, and no error.
 */
int triggers_arm(struct triggers *triggers, struct fault *why);

/**
 * triggers_disarm() - before the session's own instance goes; counts stay
 * @keep: leave the instance of OnEvent= for the next process
 */
void triggers_disarm(struct triggers *triggers, bool keep);

/**
 * triggers_remove_stray() - the instance of OnEvent= that an earlier process left
 * @name: the session's, for the log. @instance: name of the session's own instance then
 */
void triggers_remove_stray(const char *name, const char *instance);

/**
 * triggers_check() - has somebody meddled with the instance of OnEvent=? Repairs it, and logs that
 * Return: true: it is gone, and to be made again by triggers_watch_again() when remember() can be
 * called.
 */
bool triggers_check(struct triggers *triggers);
void triggers_watch_again(struct triggers *triggers, const char *instance, char *const *watched);

/* SIGUSR1; a unit has failed, @usec: realtime */
void triggers_on_signal(struct triggers *triggers);
void triggers_on_unit(struct triggers *triggers, const char *unit, uint64_t usec);

/**
 * triggers_give_back() - the snapshot of the trigger that says @what of itself has come to nothing:
 * it does not count
 */
void triggers_give_back(struct triggers *triggers, const char *what);

/* Will they cause snapshots, as far as they are available? */
bool triggers_armed(const struct triggers *triggers);

/* Is one of them OnUnitFailed=? */
bool triggers_want_units(const struct triggers *triggers);

/**
 * triggers_list() - all of them, for those who ask
 * @unit_trouble: why failed units are not known of, or NULL
 * @ret_n: how many
 * Counts are as of now. Valid until the next call of anything here.
 */
const struct trigger *triggers_list(struct triggers *triggers, const char *unit_trouble,
				    size_t *ret_n);

DEFINE_CLEANUP(struct triggers *, triggers_free)
