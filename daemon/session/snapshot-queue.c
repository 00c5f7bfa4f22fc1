/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "daemon/session/snapshot-queue.h"

int snapshot_queue_admit(const struct snapshot_turn *queue, const struct snapshot_asker *asker,
			 const char *session, struct fault *why)
{
	unsigned own = 0, all = 0;

	if (asker->origin == SNAPSHOT_BY_TRIGGER)
		return 0;
	for (const struct snapshot_turn *t = queue; t; t = t->next) {
		if (t->begun || t->asker.origin == SNAPSHOT_BY_TRIGGER ||
		    t->asker.origin > asker->origin)
			continue;
		all++;
		own += t->asker.uid == asker->uid;
	}
	if ((asker->uid == 0 || own < SNAPSHOT_QUEUE_UID_MAX) && all < SNAPSHOT_QUEUE_MAX)
		return 0;
	return fault_set(why, -EUSERS,
			 "session %.64s: %u snapshots wait already, %u of them yours; at most %d "
			 "may, %d of one user other than root",
			 session, all, own, SNAPSHOT_QUEUE_MAX, SNAPSHOT_QUEUE_UID_MAX);
}

void snapshot_queue_add(struct snapshot_turn **queue, struct snapshot_turn *turn)
{
	while (*queue)
		queue = &(*queue)->next;
	*queue = turn;
	turn->next = NULL;
}

void snapshot_queue_remove(struct snapshot_turn **queue, struct snapshot_turn *turn)
{
	LIST_REMOVE(*queue, turn);
}

struct snapshot_turn *snapshot_queue_next(struct snapshot_turn **queue, bool all)
{
	struct snapshot_turn *next = NULL;

	for (struct snapshot_turn *t = *queue; t; t = t->next)
		if ((all || !t->too_early) && (!next || t->asker.origin < next->asker.origin))
			next = t;
	if (!next)
		return NULL;
	snapshot_queue_remove(queue, next);
	next->next = *queue;
	*queue = next;
	return next;
}
