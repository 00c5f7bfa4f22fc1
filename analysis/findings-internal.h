/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is kept of a recording until the rules judge it. findings.c alone writes it;
 * findings-rules.c, which has the rules with their thresholds and nothing else, reads it.
 */
#pragma once

#include "analysis/findings.h"

#define MSEC	     (NSEC_PER_SEC / 1000)
#define CONVOY_LEAST 4U	 /* so many tasks make one */
#define PHASES	     20U /* of the period of a CPU quota, see count_beat() */
#define OOMS_MAX     64U

enum wait_kind {
	WAIT_WAKEUP,
	WAIT_PREEMPTED,
	WAIT_BLOCKED,
	_WAIT_MAX,
};

/* The longest one of a kind that the tasks of a name had */
struct wait {
	struct span span;
	struct blame blames[FINDING_BLAMES];
	size_t n_blames;
	const struct span_label *request;
	uint64_t request_nsec, waker_blocked;
	uint64_t known; /* nanoseconds of a wait for a CPU of which it is known who had it */
};

/* Tasks that were blocked at the same time, one after the other set free by tasks of one name */
struct convoy {
	uint64_t from, to, count, total;
	struct span worst;
	uint32_t tasks[FINDING_CONVOY]; /* by index */
	uint32_t n_tasks;
};

/* The tasks of a name */
struct group {
	char comm[16];
	uint32_t tasks;
	uint64_t run, waited;
	struct measure runqueue, blocked;
	struct wait *worst[_WAIT_MAX];
	uint64_t over[_WAIT_MAX], over_nsec[_WAIT_MAX]; /* those that are long enough */
	struct convoy *convoy, *worst_convoy;		/* whose tasks they set free */
	/* At which moments of a quota's period long waits ended where it was preempted, and the
	 * last */
	uint8_t phases[PHASES];
	uint64_t beat_at;
};

/* Of a task, by its index */
struct of_task {
	uint32_t group;			   /* + 1 */
	uint32_t mark;			   /* of the wait whose blame it was counted in */
	uint64_t blocked_from, blocked_to; /* the last time */
	uint64_t asleep;		   /* since its last system call ended */
};

/* Of a label, by its index */
struct of_label {
	const struct span_label *label; /* NULL: none has come */
	struct measure measure;
	struct span worst;
	uint64_t worst_nsec, over, over_nsec;
};

/* Interrupts, or softirqs, of a CPU */
struct storm {
	uint64_t from, to, nsec, count;
	const struct span_label *label; /* which took most of it */
};

struct storms {
	uint64_t begin; /* of the window that is being filled; */
	struct storm now;
	int64_t votes;		/* for its label: Boyer and Moore's majority */
	struct storm on, worst; /* on: adjacent windows, nsec 0: none */
	uint64_t nsec, count;	/* of all */
};

struct of_cpu {
	struct storms irqs, softirqs;
	struct span request; /* that ended last; to 0: none */
	struct {
		uint64_t count, events, nsec;
		struct span worst;
	} losses;
};

struct findings {
	struct findings_config config;
	uint64_t least[_RULE_MAX]; /* of config.min, or of the rules */
	struct spans *spans;
	struct run_history *history;

	struct group *groups; /* the first one: of names for which there is no room */
	uint32_t n_groups;
	uint32_t *by_name;		  /* open-addressed, 2 * GROUPS_MAX: index + 1 */
	struct measure runqueue, blocked; /* of all */
	uint32_t marks;

	struct of_task *tasks;
	size_t n_tasks;
	struct of_label *labels;
	size_t n_labels;
	struct of_cpu *of_cpus;
	struct findings_cpu *cpus;
	size_t n_cpus;
	struct span ooms[OOMS_MAX];
	size_t n_ooms;
};

/**
 * finding_rules_apply() - what each rule has to say, the worst first
 * @ret: malloc'ed
 * Return: 0 or -ENOMEM.
 */
int finding_rules_apply(const struct findings *findings, struct finding **ret, size_t *ret_n);

/**
 * findings_name() - a task by the name of its group
 */
void findings_name(const struct findings *findings, const struct span_task *task,
		   struct finding_task *ret);

/**
 * findings_kernel_thread() - by its name, as events tell no more
 */
bool findings_kernel_thread(const char *comm);

static inline uint64_t findings_length(const struct span *span)
{
	return span->to - span->from;
}
