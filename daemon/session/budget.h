/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which events are not recorded so that tracing stays below MaxOverhead=. Pure functions over plain
 * values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/macro.h"

/*
 * When what was shed comes back. A steady load makes two changes a minute at most: an event comes
 * back, and goes again. After a storm it is back within half a minute: a count is due every
 * BUDGET_COUNT_USEC, which costs a hundredth of the storm, and more often once all of it would fit.
 */
#define BUDGET_COUNT_USEC (5 * USEC_PER_SEC)
#define BUDGET_CALM_USEC  (2 * USEC_PER_SEC)
/* All counts for so long that tracing would cost no more than BUDGET_CALM of the budget: the storm
 * is over */
#define BUDGET_STORM_USEC (12 * USEC_PER_SEC)
#define BUDGET_CALM	  0.5
/* Otherwise so long after the last change, if it fits into this part of the budget now */
#define BUDGET_WAIT_USEC (60 * USEC_PER_SEC)
#define BUDGET_ROOM	 0.7

struct budget_event {
	double share; /* of the machine's CPU time that it costs, or would cost; 1 is all of it */
	int order;    /* its place in Shed=, from 0; -1: it is not there */
	bool needed;  /* by a trigger: it stays, unless Shed= has it */
	bool shed;
};

struct budget {
	double limit;	       /* share of the machine's CPU time */
	uint64_t changed_usec; /* when something went or came back */
	uint64_t counted_usec; /* when what is shed was counted last */
	uint64_t calm_usec;    /* since when all counts were calm; 0: the last one was not */
};

/**
 * budget_shed() - tracing costs too much: what is to go
 * Those of Shed= in their order, then those that cost most and that no trigger needs, until the
 * rest fits. What costs nearly nothing stays.
 * @share: what tracing costs
 * @events: shed is set
 * Return: how many were shed; 0: there is nothing left that would help.
 */
size_t budget_shed(struct budget *budget, uint64_t now_usec, double share,
		   struct budget_event *events, size_t n);

/**
 * budget_due() - is what was shed to be counted, for budget_restore()?
 */
bool budget_due(const struct budget *budget, uint64_t now_usec);

/**
 * budget_restore() - what can come back: all that fits, what went last first
 * @share: what tracing costs without those that are shed
 * @events: shed is cleared
 * Return: how many came back.
 */
size_t budget_restore(struct budget *budget, uint64_t now_usec, double share,
		      struct budget_event *events, size_t n);
