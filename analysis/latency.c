/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fnmatch.h>
#include <string.h>

#include "analysis/latency.h"
#include "analysis/words.h"

#define FIRED 1024U /* waits that go on; of more of them the first ones may be told twice */

/* It has fulfilled a condition while it went on; this is the same when it ends */
struct fired {
	size_t condition;
	uint64_t from;
	uintptr_t what;
	bool used;
};

struct condition {
	struct latency_facts facts;
	uint64_t counted_at; /* when the last snapshot was due */
	uint8_t *calls;	     /* by index of a label, enum call; NULL: of no system call */
};

enum call {
	CALL_UNKNOWN,
	CALL_OTHER,
	CALL_WANTED,
};

struct latency {
	struct latency_setup setup;
	struct spans *spans;
	struct condition *conditions;
	struct fired fired[FIRED];
	size_t next; /* in fired */
};

static enum span_kind span_kind_of(enum latency_kind kind)
{
	static const enum span_kind kinds[_LATENCY_MAX] = {
		[LATENCY_RUNQUEUE] = SPAN_RUNQUEUE, [LATENCY_BLOCKED] = SPAN_BLOCKED,
		[LATENCY_IRQ] = SPAN_IRQ,	    [LATENCY_SOFTIRQ] = SPAN_SOFTIRQ,
		[LATENCY_PAIR] = SPAN_PAIR,	    [LATENCY_BLOCK] = SPAN_BLOCK,
		[LATENCY_SYSCALL] = SPAN_SYSCALL,
	};

	return kinds[kind];
}

/* --- which spans a condition is about */

static int is_call(const struct latency *l, size_t i, const struct span_label *label)
{
	struct condition *condition = &l->conditions[i];
	uint8_t *call = &condition->calls[label->index];

	if (*call == CALL_UNKNOWN) {
		_cleanup_free_ char *name = analysis_label(l->setup.facts, label);

		if (!name)
			return -ENOMEM;
		*call = strcmp(name, l->setup.conditions[i].call) == 0 ? CALL_WANTED : CALL_OTHER;
	}
	return *call == CALL_WANTED;
}

static bool is_in_unit(const struct latency *l, const char *unit, const struct span *span)
{
	const struct task_who *who =
		l->setup.who ? who_find(l->setup.who, span->task->pid, span->to) : NULL;

	return who && who->place && who_fits_unit(unit, &who->place->names);
}

static int is_about(const struct latency *l, size_t i, const struct span *span)
{
	const struct latency_config *c = &l->setup.conditions[i];

	if (c->kind == LATENCY_PAIR)
		return span->pair == i;
	if (c->has_device && (!span->label || span->label->number != c->device))
		return false;
	if (c->task && (!span->task || fnmatch(c->task, span->task->comm, 0) != 0))
		return false;
	if (c->unit && (!span->task || !is_in_unit(l, c->unit, span)))
		return false;
	if (c->kind == LATENCY_SYSCALL)
		return span->label ? is_call(l, i, span->label) : false;
	return true;
}

/* --- which of them are hits */

/* A wait goes from CPU to CPU; interrupts and requests are of no task */
static uintptr_t identity(const struct span *span)
{
	switch (span->kind) {
	case SPAN_RUNQUEUE:
	case SPAN_BLOCKED:
	case SPAN_SYSCALL:
		return (uintptr_t)span->task;
	case SPAN_PAIR:
		return span->cpu;
	default:
		return (uintptr_t)span->label;
	}
}

/* Was this one told already? Then it need not be remembered once it has ended. */
static bool has_fired(struct latency *l, size_t condition, const struct span *span)
{
	const uintptr_t what = identity(span);

	for (size_t i = 0; i < FIRED; i++) {
		struct fired *fired = &l->fired[i];

		if (!fired->used || fired->what != what || fired->from != span->from ||
		    fired->condition != condition)
			continue;
		if (!span->open)
			*fired = (struct fired){};
		return true;
	}
	return false;
}

static int on_hit(struct latency *l, size_t i, const struct span *span)
{
	struct condition *condition = &l->conditions[i];

	if (has_fired(l, i, span))
		return 0;
	if (span->open) {
		l->fired[l->next] = (struct fired){i, span->from, identity(span), true};
		l->next = (l->next + 1) % FIRED;
	}
	if (condition->facts.hits++ == 0 ||
	    span->to - MIN(span->to, condition->counted_at) >= LATENCY_APART_NSEC) {
		condition->facts.snapshots++;
		condition->counted_at = span->to;
	}
	return l->setup.on_hit ? l->setup.on_hit(l->setup.userdata, i, span) : 0;
}

static int measure(struct latency *l, size_t i, const struct span *span)
{
	struct latency_facts *facts = &l->conditions[i].facts;

	if (span->to - span->from > facts->measure.max || facts->measure.count == 0)
		facts->worst = span->task;
	return measure_add(&facts->measure, span->from, span->to);
}

static int on_span(void *userdata, const struct span *span)
{
	struct latency *l = userdata;

	for (size_t i = 0; i < l->setup.n; i++) {
		const struct latency_config *c = &l->setup.conditions[i];
		const bool hit = c->nsec > 0 && span->to - span->from >= c->nsec;
		int r;

		if (span_kind_of(c->kind) != span->kind || (!hit && !l->setup.measure))
			continue;
		r = is_about(l, i, span);
		if (r > 0 && l->setup.measure && !span->open)
			r = measure(l, i, span) < 0 ? -ENOMEM : 1;
		if (r > 0 && hit)
			r = on_hit(l, i, span);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- */

int latency_new(const struct latency_setup *setup, struct latency **ret)
{
	_cleanup_(latency_freep) struct latency *l = calloc(1, sizeof(*l));
	struct spans_config config = {
		.kinds = SPAN_BIT(SPAN_RUNQUEUE), /* names come from switches */
		.on_span = on_span,
		.userdata = l,
	};

	if (!l)
		return -ENOMEM;
	l->setup = *setup;
	config.pairs = setup->conditions;
	l->conditions = calloc(MAX(setup->n, (size_t)1), sizeof(*l->conditions));
	config.shortest = setup->measure ? 0 : UINT64_MAX;
	for (size_t i = 0; l->conditions && i < setup->n; i++) {
		config.shortest = MIN(config.shortest, setup->conditions[i].nsec);
		config.kinds |= SPAN_BIT(span_kind_of(setup->conditions[i].kind));
		config.names |= setup->conditions[i].task != NULL;
		if (setup->conditions[i].kind == LATENCY_PAIR)
			config.n_pairs = setup->n;
		if (setup->conditions[i].kind != LATENCY_SYSCALL)
			continue;
		l->conditions[i].calls = calloc(SPANS_LABELS_MAX, 1);
		if (!l->conditions[i].calls)
			return -ENOMEM;
	}
	if (!l->conditions || spans_new(&config, &l->spans) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(l);
	return 0;
}

struct latency *latency_free(struct latency *latency)
{
	if (!latency)
		return NULL;
	for (size_t i = 0; latency->conditions && i < latency->setup.n; i++) {
		measure_done(&latency->conditions[i].facts.measure);
		free(latency->conditions[i].calls);
	}
	spans_free(latency->spans);
	free(latency->conditions);
	free(latency);
	return NULL;
}

struct spans *latency_spans(struct latency *latency)
{
	return latency->spans;
}

/* Of system calls only those of the conditions are looked at, as far as their numbers are known */
static bool pick_calls(const struct latency *l, struct subbuf_pick *pick)
{
	for (size_t i = 0; i < l->setup.n; i++) {
		const struct latency_config *c = &l->setup.conditions[i];
		int number;

		if (c->kind != LATENCY_SYSCALL)
			continue;
		number = analysis_call(l->setup.facts, c->call);
		if (number < 0 || number >= (int)SUBBUF_PICK_NUMBERS)
			return false;
		pick->numbers[number] = 1;
	}
	return true;
}

void latency_pick(const struct latency *latency, const struct spans_file *file,
		  struct subbuf_pick *ret)
{
	*ret = (struct subbuf_pick){};
	spans_file_pick(file, !latency->setup.measure && pick_calls(latency, ret), ret);
}

void latency_thin(struct latency *latency, const struct spans_file *file, struct thin *ret)
{
	uint64_t nsec = latency->setup.measure ? 0 : UINT64_MAX;

	for (size_t i = 0; i < latency->setup.n; i++) {
		const struct latency_config *c = &latency->setup.conditions[i];

		if (c->kind == LATENCY_RUNQUEUE || c->kind == LATENCY_BLOCKED)
			nsec = MIN(nsec, c->nsec);
	}
	spans_file_thin(latency->spans, file, nsec, ret);
}

int latency_tick(struct latency *latency, uint64_t now)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < latency->setup.n; i++)
		if (latency->setup.conditions[i].nsec > 0)
			least = MIN(least, latency->setup.conditions[i].nsec);
	return least > now ? 0 : spans_waiting(latency->spans, now - least, now);
}

const struct latency_facts *latency_facts(const struct latency *latency, size_t condition)
{
	return &latency->conditions[condition].facts;
}

/* Events that the known kinds take */
static const enum known_event needs[LATENCY_PAIR][LATENCY_NEEDS] = {
	[LATENCY_RUNQUEUE] = {KNOWN_SWITCH, KNOWN_WAKING},
	[LATENCY_BLOCKED] = {KNOWN_SWITCH, KNOWN_WAKING},
	[LATENCY_IRQ] = {KNOWN_IRQ_ENTRY, KNOWN_IRQ_EXIT},
	[LATENCY_SOFTIRQ] = {KNOWN_SOFTIRQ_ENTRY, KNOWN_SOFTIRQ_EXIT},
	[LATENCY_BLOCK] = {KNOWN_BLOCK_ISSUE, KNOWN_BLOCK_COMPLETE},
	[LATENCY_SYSCALL] = {KNOWN_RAW_ENTER, KNOWN_RAW_EXIT},
};

size_t latency_missing(const struct latency *latency, size_t condition, const char **ret)
{
	const struct latency_config *c = &latency->setup.conditions[condition];
	const struct spans_totals *totals = spans_totals(latency->spans);
	size_t n = 0;

	for (unsigned i = 0; i < LATENCY_NEEDS; i++) {
		if (c->kind == LATENCY_PAIR) {
			if (!spans_pair_seen(latency->spans, condition, i))
				ret[n++] = c->events[i];
		} else if (!spans_totals_saw(totals, needs[c->kind][i])) {
			ret[n++] = known_events_name(needs[c->kind][i]);
		}
	}
	return n;
}

uint64_t latency_suggest(const struct measure *measure)
{
	uint64_t usec = 3 * measure_quantile(measure, 999) / NSEC_PER_USEC + 1, step = 1;

	if (measure->count == 0)
		return 0;
	while (usec / step >= 100)
		step *= 10;
	return (usec + step - 1) / step * step * NSEC_PER_USEC;
}
