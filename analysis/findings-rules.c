/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/findings-internal.h"

#define OFTEN	      8U /* so many of a name tell what is usual for it */
#define PRIO_REALTIME 99 /* the kernel's MAX_RT_PRIO - 1: of others it is more */
#define PRIO_NORMAL   120
#define BEATS_LEAST   4U
#define OOM_SCORE     (10 * NSEC_PER_SEC)

struct list {
	struct finding *findings;
	size_t n;
};

/* clang-format off */
static int find_waits(const struct findings *f, enum finding_rule rule, struct list *list);
static int find_blocked(const struct findings *f, enum finding_rule rule, struct list *list);
static int find_convoy(const struct findings *f, enum finding_rule rule, struct list *list);
static int find_label(const struct findings *f, enum finding_rule rule, struct list *list);
static int find_storm(const struct findings *f, enum finding_rule rule, struct list *list);
static int find_oom(const struct findings *f, enum finding_rule rule, struct list *list);
static int find_loss(const struct findings *f, enum finding_rule rule, struct list *list);

#define NO_HYPERVISOR "how much of it a hypervisor took, nor SCHED_IDLE tasks from others"

/*
 * What is at least @least long, and @times the usual for its name, interrupt, device or call in this
 * recording, or FINDING_ANYWAY times @least whatever is usual. The score is what exceeds the usual, in
 * nanoseconds, by @weight: 100 for a task that stood still, more for what a whole CPU stood still
 * for, less for what may have hurt nobody.
 */
static const struct rule {
	struct finding_rule_facts facts;
	int (*find)(const struct findings *f, enum finding_rule rule, struct list *list);
} rules[_RULE_MAX] = {
	/* A task was woken, and waited for a CPU that others had */
	[RULE_RUNQUEUE] = {{"runqueue", "runqueue", NO_HYPERVISOR,
			    .least = 2 * MSEC, .times = 10, .weight = 100}, find_waits},
	/* A task was switched out in the middle of its work, and waited to go on */
	[RULE_PREEMPTED] = {{"preempted", "runqueue", NO_HYPERVISOR,
			     .least = 10 * MSEC, .times = 10, .weight = 50}, find_waits},
	/* Either, and a real-time task had the CPU for more than half of the time */
	[RULE_REALTIME] = {{"realtime", "runqueue", "whether it was meant to run that long",
			    .least = 2 * MSEC, .times = 4, .weight = 100}, find_waits},
	/* Either, and nobody had it, or the waits of these tasks ended every 100 ms */
	[RULE_KEPT_OFF] = {{"kept-off", "runqueue", "a CPU quota from an affinity or a hypervisor",
			    .least = 10 * MSEC, .times = 4, .weight = 100}, find_waits},
	/* A task was in state D */
	[RULE_BLOCKED] = {{"blocked", "blocked", "what else the task waited for, without kernel stacks",
			   .least = 50 * MSEC, .times = 4, .weight = 50}, find_blocked},
	/* Several tasks were in it together, each until one of the same name woke it: a lock, a journal */
	[RULE_CONVOY] = {{"convoy", "blocked", "which lock it was, without kernel stacks",
			  .least = 20 * MSEC, .times = 4, .weight = 50}, find_convoy},
	/* The handler of an interrupt took long */
	[RULE_IRQ] = {{"irq", "irq", "how much of it a hypervisor took",
		       .least = 1 * MSEC, .times = 10, .weight = 200}, find_label},
	/* Within 100 ms a quarter of a CPU's time, or 5000 interrupts: so much more than in the rest
	 * of the recording, or more than half of the time */
	[RULE_IRQ_STORM] = {{"irq-storm", "irq", "of interrupts without a handler, such as those of timers",
			     .least = 25 * MSEC, .times = 4, .weight = 100}, find_storm},
	/* The same two for softirqs */
	[RULE_SOFTIRQ] = {{"softirq", "softirq", "how much of it a hypervisor took",
			   .least = 2 * MSEC, .times = 10, .weight = 200}, find_label},
	[RULE_SOFTIRQ_STORM] = {{"softirq-storm", "softirq", "what the packets or timers were",
				 .least = 25 * MSEC, .times = 4, .weight = 100}, find_storm},
	/* A request of a block device; who waited for it is blocked, and scores for itself */
	[RULE_BLOCK] = {{"block", "block", "whether it was the device or its queue",
			 .least = 20 * MSEC, .times = 8, .weight = 25}, find_label},
	/* A system call, without the time that its task slept in it, as poll() does */
	[RULE_SYSCALL] = {{"syscall", "syscall",
			   "without sched events, which calls were meant to wait",
			   .least = 100 * MSEC, .times = 10, .weight = 25}, find_label},
	/* A task was killed for lack of memory: always, and before all else */
	[RULE_OOM] = {{"oom", "oom", "who used the memory", .weight = 100}, find_oom},
	/* Events of a CPU were lost in the middle of the recording: always */
	[RULE_LOSS] = {{"loss", "loss", "what happened on this CPU then",
			.least = 1, .weight = 10}, find_loss},
};

/* clang-format on */

const struct finding_rule_facts *finding_rule_facts(enum finding_rule rule)
{
	return &rules[rule].facts;
}

static struct finding *add(struct list *list, enum finding_rule rule)
{
	if (array_grow(&list->findings, list->n, sizeof(*list->findings)) < 0)
		return NULL;
	list->findings[list->n] = (struct finding){.rule = rule};
	return &list->findings[list->n++];
}

static bool stands_out(const struct findings *f, enum finding_rule rule, uint64_t nsec,
		       uint64_t usual)
{
	return nsec >= f->least[rule] && (nsec >= rules[rule].facts.times * usual ||
					  nsec >= FINDING_ANYWAY * rules[rule].facts.least);
}

static uint64_t score_of(enum finding_rule rule, uint64_t nsec, uint64_t usual)
{
	return (nsec - MIN(nsec, usual)) / 100 * rules[rule].facts.weight;
}

/* Of the name, if there are enough of it to tell; else of the whole recording, if it has enough */
static uint64_t usual_of(const struct measure *own, const struct measure *all)
{
	const struct measure *measure = own->count >= OFTEN ? own : all;

	return measure->count >= OFTEN ? measure_quantile(measure, 500) : 0;
}

/* As the scheduler has it: each step of nice takes a fifth of a task's weight */
static uint64_t by_nice(uint64_t score, int32_t prio)
{
	for (int32_t nice = prio - PRIO_NORMAL; nice > 0 && nice < 20; nice--)
		score = score / 5 * 4;
	return score;
}

static bool is_realtime(const struct blame *blame)
{
	return blame->kind == BLAME_TASK && blame->prio < PRIO_REALTIME;
}

/* Whether most of the long waits ended in the same tenth of the period: the quota is there again at
 * its beginning, and on a busy CPU it takes some milliseconds until the task runs */
static bool has_beat(const struct group *group)
{
	uint32_t all = 0, most = 0;

	for (uint32_t i = 0; i < PHASES; i++) {
		all += group->phases[i];
		most = MAX(most, (uint32_t)group->phases[i] + group->phases[(i + 1) % PHASES]);
	}
	return most >= BEATS_LEAST && 5 * most >= 3 * all;
}

/* Which rule a wait for a CPU comes under, by who had it for more than half of the time */
static enum finding_rule rule_of(const struct group *group, const struct wait *wait)
{
	const struct blame *most = &wait->blames[0];

	if (wait->n_blames > 0 && most->nsec > findings_length(&wait->span) / 2) {
		if (is_realtime(most))
			return RULE_REALTIME;
		if (most->kind == BLAME_IDLE)
			return RULE_KEPT_OFF;
	}
	if (wait->span.preempted && has_beat(group))
		return RULE_KEPT_OFF;
	return wait->span.preempted ? RULE_PREEMPTED : RULE_RUNQUEUE;
}

static uint64_t score_wait(const struct group *group, const struct wait *wait,
			   enum finding_rule rule, uint64_t usual)
{
	const struct blame *most = &wait->blames[0];
	uint64_t nsec = findings_length(&wait->span), score = score_of(rule, nsec, usual);

	if (findings_kernel_thread(group->comm))
		score /= 2;
	/* flyrec's own, whose jobs let all others go first */
	if (strncmp(group->comm, "flyrec", strlen("flyrec")) == 0)
		score /= 4;
	if (rule == RULE_BLOCKED)
		return score;
	/* its own kind is in its way */
	if (wait->n_blames > 0 && most->nsec > nsec / 2 && most->kind == BLAME_TASK &&
	    strcmp(most->who.comm, group->comm) == 0)
		score /= 4;
	return by_nice(score, wait->span.prio);
}

static int add_wait(const struct findings *f, const struct group *group, enum wait_kind kind,
		    enum finding_rule rule, struct list *list)
{
	const struct wait *wait = group->worst[kind];
	const uint64_t nsec = findings_length(&wait->span);
	const uint64_t usual = rule == RULE_BLOCKED ? usual_of(&group->blocked, &f->blocked)
						    : usual_of(&group->runqueue, &f->runqueue);
	struct finding *finding;

	if (!stands_out(f, rule, nsec, usual))
		return 0;
	finding = add(list, rule);
	if (!finding)
		return -ENOMEM;
	finding->score = score_wait(group, wait, rule, usual);
	finding->victim.task = wait->span.task;
	memcpy(finding->victim.comm, group->comm, sizeof(group->comm));
	finding->cpu = wait->span.cpu;
	finding->from = wait->span.from;
	finding->to = wait->span.to;
	finding->open = wait->span.open;
	finding->nsec = nsec;
	finding->usual = usual;
	finding->count = group->over[kind];
	finding->total = group->over_nsec[kind];
	finding->beats = has_beat(group);
	finding->stack = wait->span.label;
	finding->call = wait->span.call;
	finding->request = wait->request;
	finding->request_nsec = wait->request_nsec;
	finding->waker_blocked = wait->waker_blocked;
	finding->n_blames = wait->n_blames;
	memcpy(finding->blames, wait->blames, sizeof(wait->blames));
	return 0;
}

static void add_other(struct finding *finding, const struct finding *other)
{
	if (finding->n_others < FINDING_OTHERS) {
		finding->others[finding->n_others] = other->victim;
		finding->others[finding->n_others].nsec = other->nsec;
	}
	finding->n_others++;
}

static int by_score(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static bool same_cause(const struct finding *x, const struct finding *y)
{
	const struct blame *a = &x->blames[0], *b = &y->blames[0];

	return x->n_blames > 0 && y->n_blames > 0 && a->kind == b->kind && a->nsec > x->nsec / 2 &&
	       b->nsec > y->nsec / 2 && strcmp(a->who.comm, b->who.comm) == 0;
}

/* A name may have two, one of each kind of wait: is it in this finding, or in one of @merged? */
static bool is_counted(const struct finding *finding, const struct finding *other,
		       const struct finding *merged, size_t n)
{
	if (strcmp(finding->victim.comm, other->victim.comm) == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (strcmp(merged[i].victim.comm, other->victim.comm) == 0 &&
		    same_cause(finding, &merged[i]))
			return true;
	return false;
}

/* Waits for a CPU that come under this rule: one finding of all who waited for the same */
static int find_waits(const struct findings *f, enum finding_rule rule, struct list *list)
{
	const size_t first = list->n;
	size_t n = first;
	int r = 0;

	for (uint32_t i = 0; i < f->n_groups && r >= 0; i++)
		for (unsigned kind = WAIT_WAKEUP; kind <= WAIT_PREEMPTED && r >= 0; kind++)
			if (f->groups[i].worst[kind] &&
			    rule_of(&f->groups[i], f->groups[i].worst[kind]) == rule)
				r = add_wait(f, &f->groups[i], (enum wait_kind)kind, rule, list);
	if (list->n > first)
		qsort(list->findings + first, list->n - first, sizeof(*list->findings), by_score);
	/* those that are in others' go behind the ones that stay, until all have been looked at */
	for (size_t i = first; i < list->n; i++) {
		struct finding *all = list->findings;
		size_t same = first;

		while (same < n && !same_cause(&all[same], &all[i]))
			same++;
		if (same == n) {
			SWAP(all[n], all[i]);
			n++;
		} else if (!is_counted(&all[same], &all[i], &all[n], i - n)) {
			add_other(&all[same], &all[i]);
		}
	}
	list->n = n;
	return r;
}

/* What the stack tells of a wait, the most telling first */
static const char *waited_for(const char *stack)
{
	static const struct {
		const char *function, *what;
	} table[] = {
		{"jbd2_log_wait_commit", "a commit of the journal"},
		{"balance_dirty_pages", "the disk to take dirty pages"},
		{"throttle_direct_reclaim", "memory to be reclaimed"},
		{"shrink_", "memory to be reclaimed"},
		{"do_swap_page", "a page from swap space"},
		{"filemap_fault", "a page fault"},
		{"handle_mm_fault", "a page fault"},
		{"mutex_lock", "a mutex"},
		{"rwsem_down", "a semaphore"},
		{"down_", "a semaphore"},
		{"kernel_clone", "its child of vfork"},
		{"synchronize_rcu", "RCU"},
		{"io_schedule", "a block request"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strstr(stack, table[i].function))
			return table[i].what;
	return NULL;
}

static int find_blocked(const struct findings *f, enum finding_rule rule, struct list *list)
{
	int r = 0;

	for (uint32_t i = 0; i < f->n_groups && r >= 0; i++) {
		const size_t before = list->n;
		struct finding *finding;

		if (!f->groups[i].worst[WAIT_BLOCKED])
			continue;
		r = add_wait(f, &f->groups[i], WAIT_BLOCKED, rule, list);
		if (list->n == before)
			continue;
		finding = &list->findings[before];
		if (finding->stack && finding->stack->text)
			finding->on = waited_for(finding->stack->text);
	}
	return r;
}

static int add_convoy(const struct findings *f, const struct convoy *convoy, enum finding_rule rule,
		      uint64_t usual, struct list *list)
{
	const uint64_t nsec = findings_length(&convoy->worst);
	struct finding *finding = add(list, rule);

	if (!finding)
		return -ENOMEM;
	/* of several waits that overlap, but not without bounds where they go on and on */
	finding->score = score_of(rule, MIN(convoy->total, 4 * nsec), 0);
	findings_name(f, convoy->worst.task, &finding->victim);
	for (uint32_t i = 0; i < convoy->n_tasks; i++) {
		struct finding_task other;

		findings_name(f, spans_task(f->spans, convoy->tasks[i]), &other);
		if (finding->n_others < FINDING_OTHERS && other.task != convoy->worst.task)
			finding->others[finding->n_others++] = other;
	}
	finding->n_others = convoy->n_tasks - 1;
	finding->cpu = convoy->worst.cpu;
	finding->from = convoy->from;
	finding->to = convoy->to;
	finding->nsec = nsec;
	finding->count = convoy->count;
	finding->usual = usual;
	finding->total = convoy->total;
	finding->stack = convoy->worst.label;
	finding->call = convoy->worst.call;
	if (finding->stack && finding->stack->text)
		finding->on = waited_for(finding->stack->text);
	finding->blames[0] = (struct blame){.kind = BLAME_WAKER,
					    .waker = SPAN_WAKER_TASK,
					    .prio = PRIO_UNKNOWN,
					    .nsec = convoy->total};
	finding->n_blames = 1;
	findings_name(f, convoy->worst.waker_task, &finding->blames[0].who);
	return 0;
}

static int find_convoy(const struct findings *f, enum finding_rule rule, struct list *list)
{
	const uint64_t usual = usual_of(&f->blocked, &f->blocked);
	int r = 0;

	for (uint32_t i = 0; i < f->n_groups && r >= 0; i++) {
		const struct convoy *convoy = f->groups[i].worst_convoy;

		if (convoy && convoy->n_tasks >= CONVOY_LEAST &&
		    stands_out(f, rule, findings_length(&convoy->worst), usual))
			r = add_convoy(f, convoy, rule, usual, list);
	}
	return r;
}

static enum span_kind span_kind_of(enum finding_rule rule)
{
	switch (rule) {
	case RULE_IRQ:
		return SPAN_IRQ;
	case RULE_SOFTIRQ:
		return SPAN_SOFTIRQ;
	case RULE_BLOCK:
		return SPAN_BLOCK;
	default:
		return SPAN_SYSCALL;
	}
}

/* The longest handler, request or call of each label */
static int find_label(const struct findings *f, enum finding_rule rule, struct list *list)
{
	for (size_t i = 0; i < f->n_labels; i++) {
		const struct of_label *of = &f->labels[i];
		const uint64_t usual = usual_of(&of->measure, &of->measure);
		struct finding *finding;

		if (!of->label || of->label->kind != span_kind_of(rule) || of->worst_nsec == 0 ||
		    !stands_out(f, rule, of->worst_nsec, usual))
			continue;
		finding = add(list, rule);
		if (!finding)
			return -ENOMEM;
		finding->score = score_of(rule, of->worst_nsec, usual);
		finding->label = of->label;
		finding->cpu = of->worst.cpu;
		finding->from = of->worst.from;
		finding->to = of->worst.to;
		finding->nsec = findings_length(&of->worst);
		finding->awake = of->worst_nsec;
		finding->usual = usual;
		finding->count = of->over;
		finding->total = of->over_nsec;
		findings_name(f, of->worst.task, &finding->victim);
	}
	return 0;
}

static int find_storm(const struct findings *f, enum finding_rule rule, struct list *list)
{
	const struct spans_totals *totals = spans_totals(f->spans);
	const uint64_t all = totals->to - totals->from;

	for (size_t i = 0; i < f->n_cpus; i++) {
		struct storms *s =
			rule == RULE_IRQ_STORM ? &f->of_cpus[i].irqs : &f->of_cpus[i].softirqs;
		const struct storm *worst = &s->worst;
		uint64_t length, rest, usual, usual_count;
		struct finding *finding;

		length = worst->to - worst->from;
		/* what as long a time of the rest of the recording has */
		rest = MAX(all - MIN(all, length), UINT64_C(1));
		usual = (uint64_t)((double)(s->nsec - worst->nsec) * (double)length / (double)rest);
		usual_count = (uint64_t)((double)(s->count - worst->count) * (double)length /
					 (double)rest);
		if (worst->nsec == 0 || worst->nsec < f->least[rule] ||
		    (f->config.filter.cpus && !cpu_list_has(f->config.filter.cpus, (unsigned)i)) ||
		    f->config.filter.pid || f->config.filter.task || f->config.filter.places)
			continue;
		if (worst->nsec < length / 2 && worst->nsec < rules[rule].facts.times * usual &&
		    worst->count < rules[rule].facts.times * usual_count)
			continue;
		finding = add(list, rule);
		if (!finding)
			return -ENOMEM;
		finding->score = score_of(rule, worst->nsec, usual);
		finding->label = worst->label;
		finding->cpu = (uint32_t)i;
		finding->from = worst->from;
		finding->to = worst->to;
		finding->nsec = worst->nsec;
		finding->usual = usual;
		finding->count = worst->count;
	}
	return 0;
}

static int find_oom(const struct findings *f, enum finding_rule rule, struct list *list)
{
	for (size_t i = 0; i < f->n_ooms; i++) {
		struct finding *finding = add(list, rule);

		if (!finding)
			return -ENOMEM;
		finding->score = OOM_SCORE;
		finding->cpu = f->ooms[i].cpu;
		finding->from = finding->to = f->ooms[i].from;
		finding->count = 1;
		findings_name(f, f->ooms[i].task, &finding->victim);
		finding->blames[0] =
			(struct blame){.kind = BLAME_TASK, .tasks = 1, .prio = PRIO_UNKNOWN};
		finding->n_blames = f->ooms[i].waker_task ? 1 : 0;
		findings_name(f, f->ooms[i].waker_task, &finding->blames[0].who);
	}
	return 0;
}

static int find_loss(const struct findings *f, enum finding_rule rule, struct list *list)
{
	for (size_t i = 0; i < f->n_cpus; i++) {
		const struct of_cpu *cpu = &f->of_cpus[i];
		struct finding *finding;

		if (cpu->losses.nsec < rules[rule].facts.least ||
		    (f->config.filter.cpus && !cpu_list_has(f->config.filter.cpus, (unsigned)i)))
			continue;
		finding = add(list, rule);
		if (!finding)
			return -ENOMEM;
		finding->score = score_of(rule, cpu->losses.nsec, 0);
		finding->cpu = (uint32_t)i;
		finding->from = cpu->losses.worst.from;
		finding->to = cpu->losses.worst.to;
		finding->nsec = cpu->losses.nsec;
		finding->count = cpu->losses.count;
		finding->total = cpu->losses.events;
	}
	return 0;
}

int finding_rules_apply(const struct findings *findings, struct finding **ret, size_t *ret_n)
{
	struct list list = {};
	int r = 0;

	for (unsigned rule = 0; rule < _RULE_MAX && r >= 0; rule++)
		r = rules[rule].find(findings, (enum finding_rule)rule, &list);
	if (r < 0) {
		free(list.findings);
		return r;
	}
	if (list.n > 0)
		qsort(list.findings, list.n, sizeof(*list.findings), by_score);
	*ret = list.findings;
	*ret_n = list.n;
	return 0;
}
