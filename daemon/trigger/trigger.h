/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What causes snapshots of a session by itself: OnSignal=, OnEvent=, OnPressure=, OnLatency=,
 * OnUnitFailed=, OnJournal=, and programs that call Trigger(). Burst= and IntervalSec= count for
 * each of them by itself, so that one that goes on and on takes nothing from the others. Modes do
 * not matter here: each trigger ends in the host's fire(). Owner: the session. Main thread.
 *
 *   trigger.c         the list: made, counted, fired
 *   trigger-limit.c   how often
 *   event-watch.c, event-text.c   events, by an instance of their own
 *   kernel-latency.c  waits, by histograms in another instance
 *   pressure-watch.c  pressure (PSI)
 *   unit-watch.c      systemd
 *   journal-watch.c   the system journal
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/fault.h"
#include "config/config.h"
#include "daemon/latency/latency-watch.h"
#include "daemon/trigger/trigger-limit.h"
#include "engine/snapshot-order.h"

/* How those of other hosts are called in the log, see triggers_give_back() */
#define TRIGGER_PEER_NAME "Peer"

struct triggers;

enum trigger_kind {
	TRIGGER_SIGNAL,
	TRIGGER_EVENT,
	TRIGGER_PRESSURE,
	TRIGGER_UNIT,
	TRIGGER_LATENCY,
	TRIGGER_CONTROL, /* a program has asked for it, by the control interface */
	TRIGGER_JOURNAL,
	TRIGGER_PEER, /* other hosts ask for a moment, whoever tells us of it; fired by the session
		       */
};

struct trigger {
	enum trigger_kind kind;
	char *text;	     /* as configured, "" for the signal and the call */
	char *condition;     /* the same without "post=TIME" */
	uint64_t post_usec;  /* that, or POST_DEFAULT */
	uint64_t fired;	     /* snapshots it asked for */
	uint64_t suppressed; /* it happened, and got no snapshot of its own */
	const char *way;     /* of a latency: who looks for it, "kernel" or "user"; else "" */
	char *unavailable;   /* why it cannot happen; NULL: it is armed */
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
	uint64_t post_usec; /* until the snapshot is taken, or POST_DEFAULT */
	unsigned rank;	    /* see retention_rank() */
	const struct snapshot_asker *asker; /* of a call: who; or NULL */
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
	/* That instances watch these events, and waits, must be known to the next process; NULL:
	 * there are none any more. Return: 0 or negative errno with @why. */
	int (*remember)(void *userdata, char *const *events, struct fault *why);
	/* Open what OnLatency= looks at: latency_watch_calls.open() */
	int (*open_latency)(void *userdata, struct latency_feed *ret, struct fault *why);
	/* Others are of interest than before of failed units and of entries of the journal:
	 * triggers_want_units(), triggers_want_journal() */
	void (*watch_wanted)(void *userdata);
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

/* Other events are traced from now on, or none for a while */
void triggers_tracing_changed(struct triggers *triggers);

/* SIGUSR1; a unit has failed, @usec: realtime */
void triggers_on_signal(struct triggers *triggers);
void triggers_on_unit(struct triggers *triggers, const char *unit, uint64_t usec);

/* An entry of the journal matches: see journal_matched_t */
void triggers_on_journal(struct triggers *triggers, const char *text, const char *lines,
			 uint64_t usec);

/**
 * triggers_on_call() - a program wants this moment to be kept
 * @lines: for the text in the file, the first one what it says of it
 * @asker: who
 * Return: 0: there will be a snapshot, maybe another trigger's; -ENOTCONN; -EUSERS: Burst= is used
 * up; or another negative errno. @why is set.
 */
int triggers_on_call(struct triggers *triggers, const char *lines,
		     const struct snapshot_asker *asker, struct fault *why);

/**
 * triggers_on_peer() - may another host have a snapshot? Counts it if so; the session takes it
 * @lines: for the log, the first one "id: ID"
 * Return: 0; -EUSERS: Burst= is used up; or -ENOTCONN. @why is set.
 */
int triggers_on_peer(struct triggers *triggers, const char *lines, struct fault *why);

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
 * triggers_want_journal() - add what stands in their OnJournal= to a list, each once
 * Return: 0 or -ENOMEM.
 */
int triggers_want_journal(const struct triggers *triggers, char ***list);

/**
 * triggers_list() - all of them, for those who ask
 * @unit_trouble: why failed units are not known of, or NULL
 * @journal_trouble: likewise entries of the journal
 * @ret_n: how many
 * Counts are as of now. Valid until the next call of anything here.
 */
const struct trigger *triggers_list(struct triggers *triggers, const char *unit_trouble,
				    const char *journal_trouble, size_t *ret_n);

DEFINE_CLEANUP(struct triggers *, triggers_free)
