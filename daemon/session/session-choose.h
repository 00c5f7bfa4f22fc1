/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a session does next: its states, what is wanted of it, and in which order that comes. Pure
 * functions over plain values.
 */
#pragma once

#include <stdbool.h>

#include "config/config.h"

enum session_state {
	SESSION_STOPPED,
	SESSION_STARTING, /* files are being put right and opened */
	SESSION_RECORDING,
	SESSION_STOPPING,
	SESSION_FAILED,
};

const char *session_state_name(enum session_state state);

/* What is wanted, until it is begun */
enum session_want {
	WANT_STOP = 1U << 0,
	WANT_HAND_OVER = 1U << 1, /* with WANT_STOP: leave the instance to the next process */
	WANT_LEAVE = 1U << 2,	  /* the disk is gone, or another one is in its place */
	WANT_ROTATE = 1U << 3,	  /* a new segment */
	WANT_SYNC = 1U << 4,
	WANT_NOTE = 1U << 5,	 /* the state file, for the next process and the next boot */
	WANT_METHOD = 1U << 6,	 /* Method= or Memory= of a flight session may have changed */
	WANT_TRIGGERS = 1U << 7, /* new ones: [Snapshot] has changed */
	WANT_WATCH = 1U << 8,	 /* the instance of OnEvent= is gone: make it again */
	WANT_START = 1U << 9,	 /* it has failed, and is to be tried again */
};

struct session_view {
	enum session_state state;
	bool busy;	  /* a step is under way; one at a time */
	bool copying;	  /* beside the steps: the second half of a snapshot */
	bool compressing; /* likewise: of a segment */
	unsigned wants;	  /* enum session_want */
	bool flight;
	bool blocked;	 /* draining waits for the next segment */
	bool may_rotate; /* the last try is long enough ago */
	bool change;	 /* of events, which can be made now */
	bool snapshot;	 /* one whose turn it is */
};

/* What to do: the first are done at once, and the next is chosen then */
enum session_choice {
	CHOICE_NONE,
	CHOICE_START,
	CHOICE_METHOD,
	CHOICE_TRIGGERS,
	CHOICE_WATCH,
	CHOICE_CHANGE,
	/* These begin a step */
	CHOICE_NOTE,
	CHOICE_ROTATE,
	CHOICE_SNAPSHOT,
	CHOICE_SYNC,
	CHOICE_STOP,
};

/**
 * session_choose() - what comes next
 * A region without room comes first: draining waits for it. What is urgent for people comes next,
 * then what can wait; a stop follows all that was asked for before it, and a sync before a
 * hand-over, as the next process then finds the ring buffer nearly empty. A disk that is gone comes
 * before all of it, as nothing else can be done without.
 */
enum session_choice session_choose(const struct session_view *view);

/* Of another configuration; each takes as little as will do */
enum session_difference {
	DIFFERENT_NOTHING,
	DIFFERENT_REST,	   /* all but [Trace]: the instance stays, the next segment is another */
	DIFFERENT_EVENTS,  /* in the same instance; and the rest, maybe */
	DIFFERENT_SESSION, /* it ends and begins anew */
};

enum session_difference session_compare(const struct session_config *now,
					const struct session_config *next);
