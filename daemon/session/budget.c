/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/session/budget.h"

#define NEXT_TO_NOTHING 0.01 /* of the budget */

/* Does @a go before @b? */
static bool goes_first(const struct budget_event *a, const struct budget_event *b)
{
	if (a->order >= 0 && b->order >= 0 && a->order != b->order)
		return a->order < b->order;
	if ((a->order >= 0) != (b->order >= 0))
		return a->order >= 0;
	return a->share > b->share;
}

size_t budget_shed(struct budget *budget, uint64_t now_usec, double share,
		   struct budget_event *events, size_t n)
{
	const double least = budget->limit * NEXT_TO_NOTHING;
	size_t gone = 0;

	while (share > budget->limit) {
		struct budget_event *next = NULL;

		for (size_t i = 0; i < n; i++) {
			struct budget_event *e = &events[i];

			if (e->shed || e->share < least || (e->needed && e->order < 0))
				continue;
			if (!next || goes_first(e, next))
				next = e;
		}
		if (!next)
			break;
		next->shed = true;
		share -= next->share;
		gone++;
	}
	if (gone > 0) {
		budget->changed_usec = budget->counted_usec = now_usec;
		budget->calm_usec = 0;
	}
	return gone;
}

bool budget_due(const struct budget *budget, uint64_t now_usec)
{
	return now_usec >= budget->counted_usec +
				   (budget->calm_usec > 0 ? BUDGET_CALM_USEC : BUDGET_COUNT_USEC);
}

/* Return: has it been calm for so long that the storm must be over? */
static bool is_over(struct budget *budget, uint64_t now_usec, double share,
		    const struct budget_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		share += events[i].shed ? events[i].share : 0;
	if (share > budget->limit * BUDGET_CALM)
		budget->calm_usec = 0;
	else if (budget->calm_usec == 0)
		budget->calm_usec = now_usec;
	return budget->calm_usec > 0 && now_usec >= budget->calm_usec + BUDGET_STORM_USEC;
}

size_t budget_restore(struct budget *budget, uint64_t now_usec, double share,
		      struct budget_event *events, size_t n)
{
	bool may = is_over(budget, now_usec, share, events, n) ||
		   now_usec >= budget->changed_usec + BUDGET_WAIT_USEC;
	size_t back = 0;

	budget->counted_usec = now_usec;
	while (may) {
		struct budget_event *next = NULL;

		for (size_t i = 0; i < n; i++) {
			struct budget_event *e = &events[i];

			if (!e->shed || share + e->share > budget->limit * BUDGET_ROOM)
				continue;
			if (!next || goes_first(next, e))
				next = e;
		}
		if (!next)
			break;
		next->shed = false;
		share += next->share;
		back++;
	}
	if (back > 0)
		budget->changed_usec = now_usec;
	return back;
}
