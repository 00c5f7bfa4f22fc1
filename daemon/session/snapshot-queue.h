/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose turn it is among the snapshots that a session is asked for, and who may ask for another
 * one. Pure functions over a list, whose entries are the caller's.
 */
#pragma once

#include "engine/snapshot-order.h"

#define SNAPSHOT_QUEUE_UID_MAX 4  /* requests of one user that have not begun, root aside */
#define SNAPSHOT_QUEUE_MAX     16 /* of all users */

struct snapshot_turn {
	struct snapshot_turn *next;
	struct snapshot_asker asker;
	bool begun;
	bool too_early; /* PostSec= runs */
};

/**
 * snapshot_queue_admit() - may there be one more?
 * Triggers always; administrators are not held up by what members ask for.
 * Return: 0, or -EUSERS with @why.
 */
int snapshot_queue_admit(const struct snapshot_turn *queue, const struct snapshot_asker *asker,
			 const char *session, struct fault *why);

/* At its end, in the order of arrival */
void snapshot_queue_add(struct snapshot_turn **queue, struct snapshot_turn *turn);

void snapshot_queue_remove(struct snapshot_turn **queue, struct snapshot_turn *turn);

/**
 * snapshot_queue_next() - make the one whose turn it is the first of all
 * @all: also those for which it is too early
 * Not while one has begun. Return: NULL: there is none.
 */
struct snapshot_turn *snapshot_queue_next(struct snapshot_turn **queue, bool all);
