/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `flyrecctl analyze` says: the worst of a recording, by rules. Takes spans. Of each name of
 * tasks, kind of interrupt, device and system call the worst one is kept, with who is to blame for
 * it, and how long such a thing usually takes; when all is seen, each rule judges these. Memory
 * grows with such names, not with the recording. One thread.
 */
#pragma once

#include "analysis/tables.h"

#define FINDING_BLAMES 4U
#define FINDING_OTHERS 5U
#define FINDING_CONVOY 16U /* tasks of a convoy that are counted; there may be more */

enum finding_rule {
	RULE_RUNQUEUE,
	RULE_PREEMPTED,
	RULE_REALTIME,
	RULE_KEPT_OFF,
	RULE_BLOCKED,
	RULE_CONVOY,
	RULE_IRQ,
	RULE_IRQ_STORM,
	RULE_SOFTIRQ,
	RULE_SOFTIRQ_STORM,
	RULE_BLOCK,
	RULE_SYSCALL,
	RULE_OOM,
	RULE_LOSS,
	_RULE_MAX,
};

enum blame_kind {
	BLAME_TASK, /* ran on the CPU meanwhile */
	BLAME_IDLE, /* nobody did */
	BLAME_IRQ,
	BLAME_SOFTIRQ,
	BLAME_WAKER, /* ended the wait, and let it wait until then */
};

struct finding_task {
	const struct span_task *task; /* one of that name; NULL: none */
	char comm[16];		      /* as it was then; NUL-terminated */
	const struct task_who *who;   /* NULL: not known */
	uint64_t nsec;		      /* of others of a finding: their longest wait */
};

struct blame {
	enum blame_kind kind;
	enum span_waker waker; /* BLAME_WAKER */
	struct finding_task who;
	uint32_t tasks; /* BLAME_TASK: so many of that name */
	int32_t prio;	/* BLAME_TASK: the most urgent of them, as in struct span */
	uint64_t nsec;
};

struct finding {
	enum finding_rule rule;
	uint64_t score; /* nanoseconds: by which they are sorted */
	struct finding_task victim;
	struct finding_task
		others[FINDING_OTHERS]; /* who fared like that, RULE_REALTIME and _CONVOY */
	uint32_t n_others;		/* how many of them there are in all */
	uint32_t cpu;
	uint64_t from, to; /* of the worst one, or of all where there is no such */
	bool open;	   /* it went on when the recording ended */
	uint64_t nsec;	   /* of it: how long; of a storm: how much time it took */
	uint64_t usual;	   /* how long it usually takes; 0: unknown */
	uint64_t count;	   /* such ones, with it; of a storm interrupts, of a loss places */
	uint64_t total;	   /* nanoseconds of them; of a loss: events, 0: unknown */
	const struct span_label *label;	  /* interrupt, device, system call */
	const struct span_label *stack;	  /* RULE_BLOCKED; NULL: unknown */
	const struct span_label *call;	  /* likewise */
	const struct span_label *request; /* that ended just before the task was woken, likewise; */
	uint64_t request_nsec;
	const char *on;		/* what it waited for, by the stack: static; NULL: unknown */
	uint64_t waker_blocked; /* for so long its waker was blocked itself until then */
	bool beats;		/* RULE_KEPT_OFF: such waits ended every 100 ms */
	uint64_t awake;		/* RULE_SYSCALL: without what it slept */
	struct blame blames[FINDING_BLAMES];
	size_t n_blames;
};

struct findings_config {
	struct tables_filter filter; /* whose findings; as of a table */
	uint64_t min;	       /* what is shorter is none, instead of by each rule; 0: by these */
	const struct who *who; /* learns from the same events; NULL: nobody knows */
};

/* All of one name */
struct findings_task {
	char comm[16];
	uint32_t tasks;
	uint64_t run;		     /* nanoseconds */
	uint64_t waited, waited_max; /* for a CPU */
	uint64_t blocked_max;
};

struct findings_cpu {
	uint64_t busy, idle, irq, softirq;
	uint64_t waited, waited_max; /* tasks for it */
};

struct findings;

int findings_new(const struct findings_config *config, struct findings **ret);
struct findings *findings_free(struct findings *findings);
DEFINE_CLEANUP(struct findings *, findings_free)

/**
 * findings_spans() - what is to be fed with events
 */
struct spans *findings_spans(struct findings *findings);

/**
 * findings_list() - after the last event: what there is to say, the worst first
 * @ret: malloc'ed, points into @findings
 */
int findings_list(struct findings *findings, struct finding **ret, size_t *ret_n);

/**
 * finding_unit() - of which unit it is; NULL: not known
 */
const char *finding_unit(const struct finding_task *task);

/**
 * findings_tasks() - who ran most, first
 * @ret: malloc'ed
 */
int findings_tasks(const struct findings *findings, struct findings_task **ret, size_t *ret_n);

/**
 * findings_cpus() - all of them; of @findings
 */
size_t findings_cpus(const struct findings *findings, const struct findings_cpu **ret);

/* What was not recorded, and would have told more */
struct findings_missing {
	const char *event; /* "SYSTEM:NAME" */
	const char *add;   /* a line of a session's configuration */
	const char *tells;
};

/**
 * findings_missing() - of @findings; Return: how many, _KNOWN_MAX at most.
 */
size_t findings_missing(const struct findings *findings, struct findings_missing *ret);

/* Of a rule: */
struct finding_rule_facts {
	const char *name;    /* as in JSON */
	const char *kind;    /* likewise; several rules are of one kind */
	const char *unknown; /* what it cannot know; NULL: nothing to say */
	uint64_t least;	     /* nanoseconds; what is shorter is no finding, */
	unsigned times;	     /* nor what takes less than so many times the usual, unless it takes */
			     /* FINDING_ANYWAY times @least */
	unsigned weight;     /* percent, of the score */
};

#define FINDING_ANYWAY 4U

const struct finding_rule_facts *finding_rule_facts(enum finding_rule rule);
