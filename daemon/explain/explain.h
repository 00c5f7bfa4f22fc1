/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A snapshot explains itself: once it is on the disk its events are analysed, by a process of its
 * own that has the file, no rights, idle priority for a while, and EXPLAIN_SEC; what comes out is
 * written into the room that the file has for it. So are lines of the system journal of its time,
 * by another process, which has the journal instead. Whatever goes wrong with that costs the
 * explanation alone. One file at a time, in the order in which they came. Owner: the manager; main
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/fault.h"
#include "formats/own-findings.h"

#define EXPLAIN_IDLE_SEC    1  /* then it runs like anybody, */
#define EXPLAIN_SEC	    30 /* then it is killed */
#define EXPLAIN_JOURNAL_SEC 10 /* likewise */
#define EXPLAIN_WAIT_SEC    10 /* so long, also for those before it, others wait for what it finds */

enum {
	EXPLAINED_LATER =
		1, /* it takes its time: what waits for it shall go on; once more is told */
};

struct explain_wish {
	bool findings; /* Analyze= */
	bool journal;  /* Journal= */
};

struct explained {
	const char *session, *path, *id; /* as of explainer_add() */
	const struct own_finding *worst; /* NULL: there is no finding, or */
	int result;			 /* less than 0: it was not analysed, or EXPLAINED_LATER */
	const struct fault *why;	 /* less than 0: why not */
	bool was_late;			 /* there has been EXPLAINED_LATER */
	bool analyzed;			 /* it was to be: struct explain_wish */
	const struct fault *journal_why; /* why it has no lines of the journal; NULL: it has, or */
					 /* was not to */
};

typedef void (*explained_t)(void *userdata, const struct explained *explained);

struct explainer;

int explainer_new(sd_event *event, struct explainer **ret);

/**
 * explainer_free() - those that are not done are told to be -ECANCELED
 */
struct explainer *explainer_free(struct explainer *explainer);
DEFINE_CLEANUP(struct explainer *, explainer_free)

/**
 * explainer_add() - one more
 * @wish: what of
 * @dir_fd: the state directory; is duplicated
 * @name: of the file from there, as @path is for others; these and @id, of its moment, are copied
 * @done: is called later
 * Return: 0, or negative errno: then it is not; -EBUSY: too many wait.
 */
int explainer_add(struct explainer *explainer, const struct explain_wish *wish, int dir_fd,
		  const char *name, const char *session, const char *path, const char *id,
		  explained_t done, void *userdata);
