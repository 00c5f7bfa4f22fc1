/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "analysis/why.h"

/* Times are shown in microseconds, some cut off and some rounded */
#define AT_SLACK (3 * NSEC_PER_USEC / 2)

struct why {
	struct why_config config;
	struct spans *spans;
	struct run_history *history;
	struct why_wait **waits; /* sorted, config.top at most */
	size_t n;
	bool known;

	/* of the tasks that are looked at, by their index: what they did last */
	struct last {
		struct span span;
		struct why_wait *wait; /* that ended with the run which is going on; or NULL */
	} * last;
	size_t n_last;
};

static bool is_wanted(const struct why *why, const struct span_task *task, uint64_t at)
{
	if (!task)
		return false;
	if (why->config.places) {
		const struct task_who *who = who_find(why->config.who, task->pid, at);

		if (!who || !who->place || !who->place->wanted)
			return false;
	}
	if (why->config.pid)
		return task->pid == why->config.pid;
	return fnmatch(why->config.task, task->comm, 0) == 0;
}

static int last_of(struct why *why, const struct span_task *task, struct last **ret)
{
	if (task->index >= why->n_last) {
		size_t room = MAX(2 * why->n_last, task->index + (size_t)64);
		struct last *more = reallocarray(why->last, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		memset(more + why->n_last, 0, (room - why->n_last) * sizeof(*more));
		why->last = more;
		why->n_last = room;
	}
	*ret = &why->last[task->index];
	return 0;
}

static uint64_t length_of(const struct span *span)
{
	return span->to - span->from;
}

/* --- who ran while the task waited */

char why_letter(const struct why_wait *wait, const struct span_task *task)
{
	for (size_t i = 0; task && i < wait->shares.n; i++)
		if (wait->shares.list[i].task == task)
			return (char)('A' + i);
	return task ? '+' : '-';
}

/* In place of the shortest one, if there is no room */
static void add_slice(struct why_wait *wait, const struct run_slice *slice)
{
	size_t shortest = 0;

	if (wait->n < WHY_SLICES) {
		wait->slices[wait->n++] = *slice;
		return;
	}
	for (size_t i = 1; i < wait->n; i++)
		if (wait->slices[i].to - wait->slices[i].from <=
		    wait->slices[shortest].to - wait->slices[shortest].from)
			shortest = i;
	if (slice->to - slice->from <= wait->slices[shortest].to - wait->slices[shortest].from) {
		wait->shorter += slice->to - slice->from;
		return;
	}
	wait->shorter += wait->slices[shortest].to - wait->slices[shortest].from;
	memmove(&wait->slices[shortest], &wait->slices[shortest + 1],
		(wait->n - shortest - 1) * sizeof(wait->slices[0]));
	wait->slices[wait->n - 1] = *slice;
}

/* The parts of a wait */
struct part {
	const struct span_task *task;
	uint64_t nsec;
};

/* Where part @k of it begins */
static uint64_t part_begin(const struct span *span, unsigned k)
{
	return span->from + (uint64_t)((unsigned __int128)length_of(span) * k / WHY_LINE);
}

static void add_to_parts(const struct span *span, struct part parts[WHY_LINE],
			 const struct run_slice *slice)
{
	unsigned k = (unsigned)((unsigned __int128)(slice->from - span->from) * WHY_LINE /
				length_of(span));

	for (; k < WHY_LINE; k++) {
		uint64_t begin = MAX(slice->from, part_begin(span, k));
		uint64_t end = MIN(slice->to, part_begin(span, k + 1));

		if (begin >= slice->to)
			break;
		if (end > begin && end - begin > parts[k].nsec)
			parts[k] = (struct part){.task = slice->task, .nsec = end - begin};
	}
}

static void fill_slices(const struct why *why, struct why_wait *wait)
{
	const struct span *span = &wait->span;
	struct part parts[WHY_LINE] = {};
	struct run_slice slice;
	size_t at = 0;

	run_history_shares(why->history, span, &wait->shares);
	while (run_history_within(why->history, span, &at, &slice)) {
		add_slice(wait, &slice);
		add_to_parts(span, parts, &slice);
	}
	for (unsigned k = 0; k < WHY_LINE; k++)
		wait->line[k] = '.';
	for (unsigned k = 0; k < WHY_LINE; k++)
		if (parts[k].nsec > 0)
			wait->line[k] = why_letter(wait, parts[k].task);
}

/* --- waits */

static void forget(struct why *why, const struct why_wait *wait)
{
	for (size_t i = 0; i < why->n_last; i++)
		if (why->last[i].wait == wait)
			why->last[i].wait = NULL;
}

/* Its place among the longest ones, if it is one */
static int take_wait(struct why *why, const struct span *span, struct last *last)
{
	struct why_wait *wait;
	size_t i = why->n;

	while (i > 0 && length_of(&why->waits[i - 1]->span) < length_of(span))
		i--;
	if (i == why->config.top)
		return 0;
	if (why->n == why->config.top) {
		wait = why->waits[--why->n];
		forget(why, wait);
	} else {
		wait = malloc(sizeof(*wait));
		if (!wait)
			return -ENOMEM;
	}
	memmove(&why->waits[i + 1], &why->waits[i], (why->n - i) * sizeof(struct why_wait *));
	why->waits[i] = wait;
	why->n++;
	*wait = (struct why_wait){.span = *span};
	if (last->span.to == span->from)
		wait->before = last->span;
	if (span->kind == SPAN_RUNQUEUE)
		fill_slices(why, wait);
	last->wait = wait;
	return 0;
}

static int on_span(void *userdata, const struct span *span)
{
	struct why *why = userdata;
	const uint64_t *at = why->config.at;
	struct last *last;
	int r = 0;

	if (span->kind == SPAN_RUN)
		r = run_history_add(why->history, span);
	if (r < 0 || !is_wanted(why, span->task, span->to))
		return r;
	why->known = true;
	r = last_of(why, span->task, &last);
	if (r < 0)
		return r;
	if (span->kind == SPAN_RUN && last->wait && last->wait->span.to == span->from)
		last->wait->after = length_of(span);
	last->wait = NULL;
	if ((span->kind == SPAN_RUNQUEUE || span->kind == SPAN_BLOCKED) &&
	    (!at || (span->from <= *at + AT_SLACK && *at <= span->to)))
		r = take_wait(why, span, last);
	last->span = *span;
	return r;
}

int why_new(const struct why_config *config, struct why **ret)
{
	_cleanup_(why_freep) struct why *why = calloc(1, sizeof(*why));
	struct spans_config spans = {
		.kinds = SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_RUNQUEUE) | SPAN_BIT(SPAN_BLOCKED) |
			 SPAN_BIT(SPAN_ASLEEP),
		.stacks = true,
		.on_span = on_span,
		.userdata = why,
	};

	if (!why)
		return -ENOMEM;
	why->config = *config;
	why->waits = calloc(config->top + (size_t)1, sizeof(struct why_wait *));
	if (!why->waits || run_history_new(&why->history) < 0 || spans_new(&spans, &why->spans) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(why);
	return 0;
}

struct why *why_free(struct why *why)
{
	if (!why)
		return NULL;
	for (size_t i = 0; i < why->n; i++)
		free(why->waits[i]);
	free(why->waits);
	free(why->last);
	run_history_free(why->history);
	spans_free(why->spans);
	free(why);
	return NULL;
}

struct spans *why_spans(struct why *why)
{
	return why->spans;
}

size_t why_waits(struct why *why, struct why_wait *const **ret)
{
	*ret = why->waits;
	return why->n;
}

bool why_knows(const struct why *why)
{
	return why->known;
}
