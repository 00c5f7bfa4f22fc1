/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `flyrecctl view` shows: spans added up by task, by pairs of tasks, by interrupt, device,
 * system call; events by their kind. Memory grows with these, not with the recording. One thread.
 */
#pragma once

#include "analysis/histogram.h"
#include "analysis/spans.h"
#include "basic/parse.h"
#include "decode/who.h"

enum table_view {
	VIEW_TASKS,
	VIEW_UNITS,
	VIEW_RUNQUEUE,
	VIEW_BLOCKED,
	VIEW_PREEMPTORS,
	VIEW_WAKERS,
	VIEW_IRQ,
	VIEW_SOFTIRQ,
	VIEW_BLOCK,
	VIEW_SYSCALLS,
	VIEW_EVENTS,
	_VIEW_MAX,
};

/* Which spans count, beside the times of events; all that is 0 or NULL: all */
struct tables_filter {
	const struct cpu_list *cpus; /* on which they ended */
	const char *task;	     /* by name; fnmatch(3) */
	int32_t pid;
	bool places; /* only where task_place.wanted */
};

/**
 * tables_filter_wants() - does this span count?
 * @who: NULL: nobody knows
 */
bool tables_filter_wants(const struct tables_filter *filter, const struct who *who,
			 const struct span *span);

struct tables_config {
	enum table_view view;
	bool by_unit; /* VIEW_PREEMPTORS: of pairs of units, not of tasks */
	struct tables_filter filter;
	const struct who *who; /* learns from the same events; NULL: nobody knows */
};

/* Tasks that belong together; of those of which it is not known all is NULL */
struct table_unit {
	const struct task_place *place; /* of one of them */
	uint64_t tasks;
};

/* Where time went, nanoseconds */
struct table_times {
	uint64_t run, runqueue, runqueue_max, blocked, blocked_max, asleep;
};

/* Nanoseconds, and times as decoder_time() has them */
struct table_row {
	const struct span_task *task;  /* NULL: none, or the idle task */
	const struct span_task *other; /* the victim, or who was woken */
	enum span_waker waker;	       /* VIEW_WAKERS */
	const struct span_label *label;
	const char *text; /* VIEW_BLOCKED: a stack, of the longest; VIEW_EVENTS: "SYSTEM:NAME" */
	const struct task_who *who, *other_who; /* NULL: not known */
	/* VIEW_UNITS; by_unit, where NULL is the idle task, and the victim's */
	const struct table_unit *unit, *other_unit;
	uint64_t count, total, p50, p99, max, max_at;
	union {
		struct {
			uint64_t wakeup, wakeup_max, preempted, preempted_max;
		} runqueue;
		struct table_times tasks; /* VIEW_TASKS, VIEW_UNITS */
		uint64_t bytes;		  /* VIEW_BLOCK, VIEW_EVENTS */
	};
};

struct tables;

int tables_new(const struct tables_config *config, struct tables **ret);
struct tables *tables_free(struct tables *tables);
DEFINE_CLEANUP(struct tables *, tables_free)

/**
 * tables_spans() - what is to be fed with events
 */
struct spans *tables_spans(struct tables *tables);

/**
 * tables_count() - VIEW_EVENTS: so many events of a file were of this kind
 * @name: "SYSTEM:NAME"
 * Return: 0 or -ENOMEM.
 */
int tables_count(void *tables, const char *name, uint64_t count, uint64_t bytes);

/**
 * tables_rows() - what came out, the first to be shown first
 * @ret: malloc'ed, points into @tables
 */
int tables_rows(struct tables *tables, struct table_row **ret, size_t *ret_n);

/**
 * tables_folded() - VIEW_BLOCKED: call @put for each stack of each task, with nanoseconds
 */
int tables_folded(struct tables *tables,
		  int (*put)(void *userdata, const struct span_task *task, const char *stack,
			     uint64_t nsec),
		  void *userdata);

const struct spans_totals *tables_totals(const struct tables *tables);

/**
 * tables_missing() - events that were not recorded and without which the view is not whole
 * @ret: room for _KNOWN_MAX of them. Return: how many.
 */
size_t tables_missing(const struct tables *tables, const char **ret);

/**
 * table_view_find() - by its name; table_view_name() - the other way round
 */
bool table_view_find(const char *name, enum table_view *ret);
const char *table_view_name(enum table_view view);
