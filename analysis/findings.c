/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "analysis/findings-internal.h"
#include "analysis/run-history.h"
#include "basic/array-room.h"

#define GROUPS_MAX   (UINT32_C(1) << 14)   /* others are one */
#define NAMES_MAX    32U		   /* to be blamed for one wait; others are left out */
#define SHORTLY	     (200 * NSEC_PER_USEC) /* from the end of a request until its task is woken */
#define CONVOY_WAIT  (2 * MSEC)		   /* shorter ones do not count */
#define WINDOW	     (100 * MSEC)	   /* by which storms are measured */
#define WINDOW_SHARE 4U			   /* a quarter of it, or */
#define WINDOW_COUNT 5000U		   /* so many interrupts make one */
#define PERIOD	     (100 * MSEC)	   /* of a CPU quota, by default */

/* --- whose it is */

/* That of a name, which is a new one or, without room, the first */
static int find_group(struct findings *f, const char comm[16], uint32_t *ret)
{
	uint64_t a, b;
	uint32_t i;

	memcpy(&a, comm, sizeof(a));
	memcpy(&b, comm + sizeof(a), sizeof(b));
	a = (a ^ b * UINT64_C(0xc2b2ae3d27d4eb4f)) * UINT64_C(0x9e3779b97f4a7c15);
	for (i = (uint32_t)(a >> 40) % (2 * GROUPS_MAX); f->by_name[i];
	     i = (i + 1) % (2 * GROUPS_MAX))
		if (memcmp(f->groups[f->by_name[i] - 1].comm, comm, 16) == 0) {
			*ret = f->by_name[i] - 1;
			return 0;
		}
	if (f->n_groups == GROUPS_MAX) {
		*ret = 0;
		return 0;
	}
	if (array_grow(&f->groups, f->n_groups, sizeof(*f->groups)) < 0)
		return -ENOMEM;
	f->groups[f->n_groups] = (struct group){};
	memcpy(f->groups[f->n_groups].comm, comm, 16);
	*ret = f->n_groups++;
	f->by_name[i] = *ret + 1;
	return 0;
}

/* A task changes its name by exec() and the like */
static int task_of(struct findings *f, const struct span_task *task, struct of_task **ret)
{
	char comm[16] = "";
	struct of_task *of;
	uint32_t group;
	int r;

	if (task->index >= f->n_tasks &&
	    array_room(&f->tasks, &f->n_tasks, task->index, sizeof(*of)) < 0)
		return -ENOMEM;
	of = *ret = &f->tasks[task->index];
	/* mostly also what is behind the NUL is the same */
	if (of->group && (memcmp(f->groups[of->group - 1].comm, task->comm, sizeof(comm)) == 0 ||
			  strcmp(f->groups[of->group - 1].comm, task->comm) == 0))
		return 0;
	(void)snprintf(comm, sizeof(comm), "%s", task->comm);
	r = find_group(f, comm, &group);
	if (r < 0)
		return r;
	of->group = group + 1;
	f->groups[group].tasks++;
	return 0;
}

static struct group *group_of(const struct findings *f, const struct of_task *of)
{
	return &f->groups[of->group - 1];
}

static struct of_cpu *cpu_of(struct findings *f, uint32_t cpu)
{
	size_t n = f->n_cpus, same = f->n_cpus;

	if (cpu < n)
		return &f->of_cpus[cpu];
	if (array_room(&f->of_cpus, &n, cpu, sizeof(*f->of_cpus)) < 0 ||
	    array_room(&f->cpus, &same, cpu, sizeof(*f->cpus)) < 0)
		return NULL;
	f->n_cpus = n;
	return &f->of_cpus[cpu];
}

static bool wanted(const struct findings *f, const struct span *span)
{
	return tables_filter_wants(&f->config.filter, f->config.who, span);
}

/* --- who is to blame */

void findings_name(const struct findings *findings, const struct span_task *task,
		   struct finding_task *ret)

{
	*ret = (struct finding_task){.task = task};
	if (task && task->index < findings->n_tasks && findings->tasks[task->index].group)
		memcpy(ret->comm, group_of(findings, &findings->tasks[task->index])->comm,
		       sizeof(ret->comm));
	else if (task)
		memcpy(ret->comm, task->comm, sizeof(ret->comm));
}

struct tally {
	struct blame blames[NAMES_MAX + 3];
	uint32_t groups[NAMES_MAX]; /* + 1 */
	size_t n;
	uint64_t idle, irq, softirq;
	uint64_t known; /* of the wait: what somebody, or nobody, had */
};

static int tally_task(struct findings *f, struct tally *tally, const struct run_slice *slice,
		      uint64_t nsec)
{
	struct blame *blame;
	struct of_task *of;
	size_t i = 0;
	int r = task_of(f, slice->task, &of);

	if (r < 0)
		return r;
	while (i < tally->n && tally->groups[i] != of->group)
		i++;
	if (i == NAMES_MAX)
		return 0;
	blame = &tally->blames[i];
	if (i == tally->n) {
		tally->n++;
		tally->groups[i] = of->group;
		*blame = (struct blame){.kind = BLAME_TASK, .prio = slice->prio};
		findings_name(f, slice->task, &blame->who);
	}
	blame->nsec += nsec;
	blame->prio = MIN(blame->prio, slice->prio);
	blame->tasks += of->mark != f->marks;
	of->mark = f->marks;
	return 0;
}

static int by_nsec(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;

	return x->nsec < y->nsec ? 1 : -(x->nsec > y->nsec);
}

static void take_blames(struct tally *tally, struct wait *wait)
{
	const struct blame more[] = {
		{.kind = BLAME_IDLE, .nsec = tally->idle, .prio = PRIO_UNKNOWN},
		{.kind = BLAME_IRQ, .nsec = tally->irq, .prio = PRIO_UNKNOWN},
		{.kind = BLAME_SOFTIRQ, .nsec = tally->softirq, .prio = PRIO_UNKNOWN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (more[i].nsec > 0)
			tally->blames[tally->n++] = more[i];
	if (tally->n > 0)
		qsort(tally->blames, tally->n, sizeof(*tally->blames), by_nsec);
	wait->n_blames = MIN(tally->n, (size_t)FINDING_BLAMES);
	memcpy(wait->blames, tally->blames, wait->n_blames * sizeof(*wait->blames));
}

/* Who ran on the CPU while the task waited for it */
static int blame_runs(struct findings *f, struct wait *wait)
{
	const struct span *span = &wait->span;
	struct tally tally = {};
	struct run_slice slice;
	size_t at = 0;
	int r = 0;

	f->marks++;
	while (r >= 0 && run_history_next(f->history, span->cpu, span->from, &at, &slice)) {
		uint64_t from = MAX(slice.from, span->from), to = MIN(slice.to, span->to);
		uint64_t nsec = to - MIN(from, to), irq = MIN(slice.irq, nsec);
		uint64_t softirq = MIN(slice.softirq, nsec - irq);

		tally.known += nsec;
		tally.irq += irq;
		tally.softirq += softirq;
		nsec -= irq + softirq;
		if (nsec == 0)
			continue;
		if (slice.task)
			r = tally_task(f, &tally, &slice, nsec);
		else
			tally.idle += nsec;
	}
	take_blames(&tally, wait);
	wait->known = tally.known;
	return r;
}

/* Who ended it, and what that one waited for itself */
static void blame_waker(struct findings *f, struct wait *wait)
{
	const struct span *span = &wait->span, *request;
	const struct span_task *waker = span->waker_task;

	if (span->cpu < f->n_cpus && !span->open) {
		request = &f->of_cpus[span->cpu].request;
		if (request->to > 0 && request->to >= span->from && request->to <= span->to &&
		    span->to - request->to <= SHORTLY &&
		    (!waker || findings_kernel_thread(waker->comm))) {
			wait->request = request->label;
			wait->request_nsec = findings_length(request);
		}
	}
	if (span->waker == SPAN_WAKER_UNKNOWN || span->open)
		return;
	wait->blames[0] = (struct blame){.kind = BLAME_WAKER,
					 .waker = span->waker,
					 .prio = PRIO_UNKNOWN,
					 .nsec = findings_length(span)};
	wait->n_blames = 1;
	findings_name(f, waker, &wait->blames[0].who);
	if (waker && waker->index < f->n_tasks) {
		const struct of_task *of = &f->tasks[waker->index];
		uint64_t from = MAX(of->blocked_from, span->from);

		if (of->blocked_to > from && of->blocked_to <= span->to)
			wait->waker_blocked = of->blocked_to - from;
	}
}

/* --- what comes */

static int take_wait(struct findings *f, struct group *group, enum wait_kind kind,
		     enum finding_rule rule, const struct span *span)
{
	const ptrdiff_t index = group - f->groups;
	struct wait *wait = group->worst[kind];
	struct wait before;
	uint64_t nsec = findings_length(span);
	int r;

	if (nsec < f->least[rule] || !wanted(f, span))
		return 0;
	group->over[kind]++;
	group->over_nsec[kind] += nsec;
	if (wait && findings_length(&wait->span) >= nsec)
		return 0;
	if (!wait) {
		wait = group->worst[kind] = calloc(1, sizeof(*wait));
		if (!wait)
			return -ENOMEM;
	}
	before = *wait;
	*wait = (struct wait){.span = *span};
	if (kind == WAIT_BLOCKED) {
		blame_waker(f, wait);
		return 0;
	}
	r = blame_runs(f, wait);
	group = &f->groups[index]; /* a task that ran may have a new name by now */
	/* Nothing has ended it: where nobody is known to have had the CPU either, the kernel may
	 * just not have recorded that it was switched in */
	if (span->open && wait->known < nsec / 10 * 9) {
		*wait = before;
		group->over[kind]--;
		group->over_nsec[kind] -= nsec;
	}
	return r;
}

/* Who is out of quota waits until the next period */
static void count_beat(const struct findings *f, struct group *group, const struct span *span)
{
	uint8_t *phase = &group->phases[span->to % PERIOD / (PERIOD / PHASES)];

	/* several tasks that went on at the same time tell of one moment */
	if (!span->preempted || findings_length(span) < f->least[RULE_KEPT_OFF] ||
	    span->to - MIN(span->to, group->beat_at) < 2 * PERIOD / PHASES)
		return;
	if (*phase < UINT8_MAX)
		(*phase)++;
	group->beat_at = span->to;
}

static int on_runqueue(struct findings *f, const struct span *span)
{
	const uint64_t nsec = findings_length(span);
	struct findings_cpu *cpu;
	struct group *group;
	struct of_task *of;
	int r = task_of(f, span->task, &of);

	if (r < 0 || !cpu_of(f, span->cpu))
		return -ENOMEM;
	cpu = &f->cpus[span->cpu];
	cpu->waited += nsec;
	cpu->waited_max = MAX(cpu->waited_max, nsec);
	group = group_of(f, of);
	group->waited += nsec;
	count_beat(f, group, span);
	r = measure_add(&group->runqueue, span->from, span->to);
	if (r >= 0)
		r = measure_add(&f->runqueue, span->from, span->to);
	if (r < 0)
		return r;
	/* the shortest of all rules for such waits: the kind is known when there is blame */
	return take_wait(f, group, span->preempted ? WAIT_PREEMPTED : WAIT_WAKEUP, RULE_REALTIME,
			 span);
}

static void add_to_convoy(struct convoy *convoy, const struct span *span)
{
	uint32_t i = 0;

	if (convoy->count == 0 || findings_length(span) > findings_length(&convoy->worst))
		convoy->worst = *span;
	convoy->from = convoy->count ? MIN(convoy->from, span->from) : span->from;
	convoy->to = span->to;
	convoy->count++;
	convoy->total += findings_length(span);
	while (i < convoy->n_tasks && convoy->tasks[i] != span->task->index)
		i++;
	if (i == convoy->n_tasks && i < FINDING_CONVOY)
		convoy->tasks[convoy->n_tasks++] = span->task->index;
}

static bool is_worse(const struct convoy *convoy, const struct convoy *than)
{
	if ((convoy->n_tasks >= CONVOY_LEAST) != (than->n_tasks >= CONVOY_LEAST))
		return convoy->n_tasks >= CONVOY_LEAST;
	return convoy->total > than->total;
}

/* Waits that overlap, all ended by tasks of one name */
static int take_convoy(struct findings *f, const struct span *span)
{
	struct convoy *convoy;
	struct group *group;
	struct of_task *of;
	int r = task_of(f, span->waker_task, &of);

	if (r < 0)
		return r;
	group = group_of(f, of);
	if (!group->convoy) {
		group->convoy = calloc(2, sizeof(*convoy));
		if (!group->convoy)
			return -ENOMEM;
		group->worst_convoy = group->convoy + 1;
	}
	convoy = group->convoy;
	if (convoy->count > 0 && span->from >= convoy->to)
		*convoy = (struct convoy){};
	add_to_convoy(convoy, span);
	if (is_worse(convoy, group->worst_convoy))
		*group->worst_convoy = *convoy;
	return 0;
}

static int on_blocked(struct findings *f, const struct span *span)
{
	struct group *group;
	struct of_task *of;
	int r = task_of(f, span->task, &of);

	if (r < 0)
		return r;
	group = group_of(f, of);
	r = measure_add(&group->blocked, span->from, span->to);
	if (r >= 0)
		r = measure_add(&f->blocked, span->from, span->to);
	if (r >= 0)
		r = take_wait(f, group, WAIT_BLOCKED, RULE_BLOCKED, span);
	if (r < 0)
		return r;
	of->blocked_from = span->from;
	of->blocked_to = span->to;
	return span->waker_task && !span->open && findings_length(span) >= CONVOY_WAIT &&
			       wanted(f, span)
		       ? take_convoy(f, span)
		       : 0;
}

static int on_run(struct findings *f, const struct span *span)
{
	const uint64_t nsec = findings_length(span);
	struct of_task *of;
	int r;

	if (!cpu_of(f, span->cpu))
		return -ENOMEM;
	r = run_history_add(f->history, span);
	if (r < 0)
		return r;
	if (!span->task) {
		f->cpus[span->cpu].idle += nsec;
		return 0;
	}
	f->cpus[span->cpu].busy += nsec;
	r = task_of(f, span->task, &of);
	if (r >= 0)
		group_of(f, of)->run += nsec;
	return r;
}

/* What took @nsec of its length */
static int take_label(struct findings *f, enum finding_rule rule, const struct span *span,
		      uint64_t nsec)
{
	struct of_label *of;

	if (!span->label)
		return 0;
	if (array_room(&f->labels, &f->n_labels, span->label->index, sizeof(*of)) < 0)
		return -ENOMEM;
	of = &f->labels[span->label->index];
	of->label = span->label;
	if (nsec >= f->least[rule] && wanted(f, span)) {
		of->over++;
		of->over_nsec += nsec;
		if (nsec > of->worst_nsec) {
			of->worst = *span;
			of->worst_nsec = nsec;
		}
	}
	return measure_add(&of->measure, span->to - nsec, span->to);
}

static bool is_storm(const struct storm *storm)
{
	return storm->nsec >= WINDOW / WINDOW_SHARE || storm->count >= WINDOW_COUNT;
}

/* The window is over: is it one of a storm, or the end of one? */
static void end_window(struct storms *s)
{
	if (!is_storm(&s->now)) {
		s->on.nsec = 0;
		return;
	}
	if (s->on.nsec > 0 && s->on.to == s->begin) {
		s->on.to += WINDOW;
		s->on.nsec += s->now.nsec;
		s->on.count += s->now.count;
	} else {
		s->on = s->now;
		s->on.from = s->begin;
		s->on.to = s->begin + WINDOW;
	}
	if (s->on.nsec > s->worst.nsec)
		s->worst = s->on;
}

static void take_handler(struct storms *s, const struct span *span)
{
	const uint64_t nsec = findings_length(span);

	if (span->to - s->begin >= WINDOW) {
		end_window(s);
		s->begin = span->to - span->to % WINDOW;
		s->now = (struct storm){};
		s->votes = 0;
	}
	s->now.nsec += nsec;
	s->now.count++;
	s->nsec += nsec;
	s->count++;
	if (s->now.label == span->label) {
		s->votes += (int64_t)nsec;
	} else if (s->votes > (int64_t)nsec) {
		s->votes -= (int64_t)nsec;
	} else {
		s->votes = (int64_t)nsec - s->votes;
		s->now.label = span->label;
	}
}

static int on_handler(struct findings *f, const struct span *span)
{
	const bool softirq = span->kind == SPAN_SOFTIRQ;
	struct of_cpu *cpu = cpu_of(f, span->cpu);

	if (!cpu)
		return -ENOMEM;
	take_handler(softirq ? &cpu->softirqs : &cpu->irqs, span);
	return take_label(f, softirq ? RULE_SOFTIRQ : RULE_IRQ, span, findings_length(span));
}

static int on_request(struct findings *f, const struct span *span)
{
	struct of_cpu *cpu = cpu_of(f, span->cpu);

	if (!cpu)
		return -ENOMEM;
	cpu->request = *span;
	return take_label(f, RULE_BLOCK, span, findings_length(span));
}

/* What a call takes beyond what is slept in it */
static int on_call(struct findings *f, const struct span *span)
{
	uint64_t nsec = findings_length(span), asleep;
	struct of_task *of;
	int r = task_of(f, span->task, &of);

	if (r < 0)
		return r;
	asleep = MIN(of->asleep, nsec);
	of->asleep = 0;
	return take_label(f, RULE_SYSCALL, span, nsec - asleep);
}

static int on_asleep(struct findings *f, const struct span *span)
{
	struct of_task *of;
	int r = task_of(f, span->task, &of);

	if (r >= 0 && span->call)
		of->asleep += findings_length(span);
	return r;
}

static int on_loss(struct findings *f, const struct span *span)
{
	struct of_cpu *cpu = cpu_of(f, span->cpu);
	uint64_t nsec = findings_length(span);

	if (!cpu)
		return -ENOMEM;
	/* what a ring buffer had overwritten before the recording begins */
	if (nsec == 0)
		return 0;
	cpu->losses.count++;
	cpu->losses.events += span->bytes;
	cpu->losses.nsec += nsec;
	if (nsec > findings_length(&cpu->losses.worst))
		cpu->losses.worst = *span;
	return 0;
}

static int on_span(void *userdata, const struct span *span)
{
	struct findings *f = userdata;

	switch (span->kind) {
	case SPAN_RUN:
		return on_run(f, span);
	case SPAN_RUNQUEUE:
		return on_runqueue(f, span);
	case SPAN_BLOCKED:
		return on_blocked(f, span);
	case SPAN_ASLEEP:
		return on_asleep(f, span);
	case SPAN_IRQ:
	case SPAN_SOFTIRQ:
		return on_handler(f, span);
	case SPAN_BLOCK:
		return on_request(f, span);
	case SPAN_SYSCALL:
		return on_call(f, span);
	case SPAN_OOM:
		if (f->n_ooms < OOMS_MAX && wanted(f, span))
			f->ooms[f->n_ooms++] = *span;
		return 0;
	case SPAN_LOSS:
		return on_loss(f, span);
	case SPAN_PAIR: /* nobody asks for them here */
	case _SPAN_MAX:
		break;
	}
	return 0;
}

int findings_new(const struct findings_config *config, struct findings **ret)
{
	_cleanup_(findings_freep) struct findings *f = calloc(1, sizeof(*f));
	const struct spans_config spans = {
		.kinds = SPAN_BIT(_SPAN_MAX) - 1,
		.stacks = true,
		.on_span = on_span,
		.userdata = f,
	};
	uint32_t first;

	if (!f)
		return -ENOMEM;
	f->config = *config;
	for (unsigned rule = 0; rule < _RULE_MAX; rule++)
		f->least[rule] = config->min ? config->min : finding_rule_facts(rule)->least;
	f->by_name = calloc(2 * GROUPS_MAX, sizeof(*f->by_name));
	if (!f->by_name || find_group(f, (const char[16]){""}, &first) < 0 ||
	    run_history_new(&f->history) < 0 || spans_new(&spans, &f->spans) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(f);
	return 0;
}

struct findings *findings_free(struct findings *findings)
{
	struct findings *f = findings;

	if (!f)
		return NULL;
	for (uint32_t i = 0; i < f->n_groups; i++) {
		measure_done(&f->groups[i].runqueue);
		measure_done(&f->groups[i].blocked);
		for (unsigned kind = 0; kind < _WAIT_MAX; kind++)
			free(f->groups[i].worst[kind]);
		free(f->groups[i].convoy);
	}
	for (size_t i = 0; i < f->n_labels; i++)
		measure_done(&f->labels[i].measure);
	measure_done(&f->runqueue);
	measure_done(&f->blocked);
	free(f->groups);
	free(f->by_name);
	free(f->tasks);
	free(f->labels);
	free(f->of_cpus);
	free(f->cpus);
	run_history_free(f->history);
	spans_free(f->spans);
	free(f);
	return NULL;
}

struct spans *findings_spans(struct findings *findings)
{
	return findings->spans;
}

bool findings_kernel_thread(const char *comm)
{
	static const char *const names[] = {"kswapd",	  "kcompactd", "khugepaged",
					    "kthreadd",	  "rcu_",      "ksmd",
					    "oom_reaper", "kauditd",   "kdamond"};

	if (strchr(comm, '/'))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(comm, names[i], strlen(names[i])) == 0)
			return true;
	return strncmp(comm, "loop", 4) == 0 && comm[4] >= '0' && comm[4] <= '9';
}

/* --- what came out */

/* Its name may have become known later */
static void identify(const struct findings *f, struct finding_task *who, uint64_t at)
{
	if (who->task && who->comm[0] == '\0')
		memcpy(who->comm, who->task->comm, sizeof(who->comm));
	if (who->task && f->config.who)
		who->who = who_find(f->config.who, who->task->pid, at);
}

static void end_windows(struct findings *f)
{
	for (size_t i = 0; i < f->n_cpus; i++) {
		end_window(&f->of_cpus[i].irqs);
		end_window(&f->of_cpus[i].softirqs);
	}
}

const char *finding_unit(const struct finding_task *task)
{
	return task->who && task->who->place ? task->who->place->names.unit : NULL;
}

int findings_list(struct findings *findings, struct finding **ret, size_t *ret_n)
{
	struct findings *f = findings;
	struct finding *list;
	size_t n;
	int r = spans_end(f->spans);

	if (r < 0)
		return r;
	end_windows(f);
	r = finding_rules_apply(f, &list, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		identify(f, &list[i].victim, list[i].to);
		for (size_t j = 0; j < list[i].n_blames; j++)
			identify(f, &list[i].blames[j].who, list[i].to);
		for (size_t j = 0; j < MIN(list[i].n_others, FINDING_OTHERS); j++)
			identify(f, &list[i].others[j], list[i].to);
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static int by_run(const void *a, const void *b)
{
	const struct findings_task *x = a, *y = b;

	if (x->run != y->run)
		return x->run < y->run ? 1 : -1;
	return strcmp(x->comm, y->comm);
}

int findings_tasks(const struct findings *findings, struct findings_task **ret, size_t *ret_n)
{
	const struct findings *f = findings;
	struct findings_task *tasks = calloc(f->n_groups, sizeof(*tasks));
	size_t n = 0;

	if (!tasks)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n_groups; i++) {
		const struct group *group = &f->groups[i];

		if (group->run == 0)
			continue;
		memcpy(tasks[n].comm, group->comm, sizeof(group->comm));
		tasks[n].tasks = group->tasks;
		tasks[n].run = group->run;
		tasks[n].waited = group->waited;
		tasks[n].waited_max = group->runqueue.max;
		tasks[n++].blocked_max = group->blocked.max;
	}
	if (n > 0)
		qsort(tasks, n, sizeof(*tasks), by_run);
	*ret = tasks;
	*ret_n = n;
	return 0;
}

size_t findings_cpus(const struct findings *findings, const struct findings_cpu **ret)
{
	size_t n = findings->n_cpus;

	for (size_t i = 0; i < n; i++) {
		findings->cpus[i].irq = findings->of_cpus[i].irqs.nsec;
		findings->cpus[i].softirq = findings->of_cpus[i].softirqs.nsec;
	}
	/* room is made for more than there are */
	while (n > 0 && findings->cpus[n - 1].busy + findings->cpus[n - 1].idle == 0)
		n--;
	*ret = findings->cpus;
	return n;
}

size_t findings_missing(const struct findings *findings, struct findings_missing *ret)
{
	static const struct {
		enum known_event event, instead;
		struct findings_missing missing;
	} table[] = {
		{KNOWN_SWITCH, KNOWN_NOT, {NULL, "Event=sched", "who ran, waited and was blocked"}},
		{KNOWN_WAKING,
		 KNOWN_WAKEUP,
		 {NULL, "Event=sched:sched_waking", "how long a task that was woken waited"}},
		/* entries without their exits have no length */
		{KNOWN_IRQ_ENTRY, KNOWN_NOT, {NULL, "Event=irq", "what interrupts took"}},
		{KNOWN_SOFTIRQ_ENTRY, KNOWN_NOT, {NULL, "Event=irq", "what softirqs took"}},
		{KNOWN_BLOCK_ISSUE,
		 KNOWN_NOT,
		 {NULL, "Event=block", "which requests blocked tasks waited for"}},
		{KNOWN_STACK,
		 KNOWN_NOT,
		 {NULL, "EventTrigger=sched:sched_switch stacktrace if prev_state == 2",
		  "where in the kernel a task was blocked"}},
		{KNOWN_RAW_ENTER,
		 KNOWN_CALL_ENTER,
		 {NULL, "Event=raw_syscalls", "which system calls were slow (many events)"}},
	};
	const bool *seen = spans_totals(findings->spans)->seen;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (seen[table[i].event] ||
		    (table[i].instead != KNOWN_NOT && seen[table[i].instead]))
			continue;
		ret[n] = table[i].missing;
		ret[n++].event = known_events_name(table[i].event);
	}
	return n;
}
