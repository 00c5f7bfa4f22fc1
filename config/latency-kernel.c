/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basic/strv.h"
#include "config/config-trace.h"
#include "config/latency-kernel.h"

/*
 * A trigger of a kind; in its text %E is the synthetic event, %N the number of the condition, %B
 * the first event of a pair, %K its keys, %S
 * the size of the histogram, %I the number of a system call, %D the number of a
 * device.
 *
 * A variable is gone when an expression has used it, so that the end of one wait is not taken for
 * the end of the next as well. A beginning that has no end is used up by a trigger that does
 * nothing else ("forget"): else the next end of another kind would be its end.
 */
struct line {
	unsigned kind; /* enum latency_kind */
	const char *event;
	const char *text;
	const char *filter; /* behind text; NULL: none */
	bool of_device;	    /* only with dev= */
};

#define SIZE	 ":size=%S"
#define OTHERS	 16384U		       /* keys of requests, and those that people give, are many */
#define RUNNABLE "!(prev_state & 255)" /* R and R+: see analysis/spans.c */

static const struct line lines[] = {
	{LATENCY_RUNQUEUE, "sched:sched_waking",
	 "hist:keys=pid:w_at%N=common_timestamp,w_by%N=common_pid,w_flags%N=common_flags" SIZE},
	{LATENCY_RUNQUEUE, "sched:sched_wakeup_new",
	 "hist:keys=pid:n_at%N=common_timestamp,n_by%N=common_pid,n_flags%N=common_flags" SIZE},
	/* woken before it went to sleep: what it does not wait for, it has not waited for since */
	{LATENCY_RUNQUEUE, "sched:sched_switch",
	 "hist:keys=prev_pid:forget%N=common_timestamp-$w_at%N" SIZE, RUNNABLE},
	/* by itself: preempted */
	{LATENCY_RUNQUEUE, "sched:sched_switch",
	 "hist:keys=prev_pid:p_at%N=common_timestamp,p_by%N=prev_pid,p_flags%N=common_flags" SIZE,
	 RUNNABLE " && prev_pid != 0"},
	{LATENCY_RUNQUEUE, "sched:sched_switch",
	 "hist:keys=next_pid:w_took%N=common_timestamp-$w_at%N,w_pid%N=next_pid,w_comm%N=next_comm,"
	 "w_waker%N=$w_by%N,w_flag%N=$w_flags%N" SIZE
	 ":onmatch(sched.sched_waking).trace(%E,$w_took%N,$w_pid%N,$w_comm%N,$w_waker%N,$w_flag%N)"},
	{LATENCY_RUNQUEUE, "sched:sched_switch",
	 "hist:keys=next_pid:n_took%N=common_timestamp-$n_at%N,n_pid%N=next_pid,n_comm%N=next_comm,"
	 "n_waker%N=$n_by%N,n_flag%N=$n_flags%N" SIZE
	 ":onmatch(sched.sched_wakeup_new).trace(%E,$n_took%N,$n_pid%N,$n_comm%N,$n_waker%N,$n_flag%"
	 "N)"},
	{LATENCY_RUNQUEUE, "sched:sched_switch",
	 "hist:keys=next_pid:p_took%N=common_timestamp-$p_at%N,p_pid%N=next_pid,p_comm%N=next_comm,"
	 "p_waker%N=$p_by%N,p_flag%N=$p_flags%N" SIZE
	 ":onmatch(sched.sched_switch).trace(%E,$p_took%N,$p_pid%N,$p_comm%N,$p_waker%N,$p_flag%N)"},

	{LATENCY_BLOCKED, "sched:sched_switch", "hist:keys=prev_pid:b_at%N=common_timestamp" SIZE,
	 "prev_state & 2"},
	{LATENCY_BLOCKED, "sched:sched_waking",
	 "hist:keys=pid:b_took%N=common_timestamp-$b_at%N,b_pid%N=pid,b_comm%N=comm,"
	 "b_waker%N=common_pid,b_flag%N=common_flags" SIZE
	 ":onmatch(sched.sched_switch).trace(%E,$b_took%N,$b_pid%N,$b_comm%N,$b_waker%N,$b_flag%N)"},
	/* woken by another CPU before it was switched out here: it runs, so it is not blocked */
	{LATENCY_BLOCKED, "sched:sched_switch",
	 "hist:keys=next_pid:b_forget%N=common_timestamp-$b_at%N" SIZE},

	{LATENCY_SYSCALL, "raw_syscalls:sys_enter",
	 "hist:keys=common_pid:s_at%N=common_timestamp" SIZE, "id == %I"},
	{LATENCY_SYSCALL, "raw_syscalls:sys_exit",
	 "hist:keys=common_pid:s_took%N=common_timestamp-$s_at%N,s_pid%N=common_pid" SIZE
	 ":onmatch(raw_syscalls.sys_enter).trace(%E,$s_took%N,$s_pid%N)",
	 "id == %I"},

	{LATENCY_IRQ, "irq:irq_handler_entry",
	 "hist:keys=common_cpu,irq:i_at%N=common_timestamp" SIZE},
	{LATENCY_IRQ, "irq:irq_handler_exit",
	 "hist:keys=common_cpu,irq:i_took%N=common_timestamp-$i_at%N,i_irq%N=irq" SIZE
	 ":onmatch(irq.irq_handler_entry).trace(%E,$i_took%N,$i_irq%N)"},

	{LATENCY_SOFTIRQ, "irq:softirq_entry",
	 "hist:keys=common_cpu,vec:v_at%N=common_timestamp" SIZE},
	{LATENCY_SOFTIRQ, "irq:softirq_exit",
	 "hist:keys=common_cpu,vec:v_took%N=common_timestamp-$v_at%N,v_vec%N=vec" SIZE
	 ":onmatch(irq.softirq_entry).trace(%E,$v_took%N,$v_vec%N)"},

	{LATENCY_BLOCK, "block:block_rq_issue", "hist:keys=dev,sector:r_at%N=common_timestamp" SIZE,
	 "dev == %D", true},
	{LATENCY_BLOCK, "block:block_rq_complete",
	 "hist:keys=dev,sector:r_took%N=common_timestamp-$r_at%N,r_dev%N=dev" SIZE
	 ":onmatch(block.block_rq_issue).trace(%E,$r_took%N,$r_dev%N)",
	 "dev == %D", true},

	{LATENCY_PAIR, NULL, "hist:keys=%K:e_at%N=common_timestamp" SIZE},
	{LATENCY_PAIR, NULL,
	 "hist:keys=%K:e_took%N=common_timestamp-$e_at%N" SIZE ":onmatch(%B).trace(%E,$e_took%N)"},
};

/* What a synthetic event has beside the time; as many as trace() gives */
static const char *const fields[_LATENCY_MAX] = {
	[LATENCY_RUNQUEUE] = "; pid_t pid; char comm[16]; pid_t waker; unsigned char flags",
	[LATENCY_BLOCKED] = "; pid_t pid; char comm[16]; pid_t waker; unsigned char flags",
	[LATENCY_SYSCALL] = "; pid_t pid",
	[LATENCY_IRQ] = "; int irq",
	[LATENCY_SOFTIRQ] = "; unsigned int vec",
	[LATENCY_BLOCK] = "; unsigned int dev",
	[LATENCY_PAIR] = "",
};

int latency_kernel_check(const struct latency_config *l, struct fault *why)
{
	if (l->task && strpbrk(l->task, "\"\\"))
		return value_refuse(why,
				    "way=kernel: task=%s must have no quotation mark and no "
				    "backslash; way=user takes them",
				    l->task);
	if (l->kind == LATENCY_PAIR && strcmp(l->events[0], l->events[1]) == 0)
		return value_refuse(why,
				    "way=kernel takes two different events; way=user also takes "
				    "one event twice");
	return 0;
}

char *latency_kernel_filter(const struct latency_config *l)
{
	const bool has_name = l->kind == LATENCY_RUNQUEUE || l->kind == LATENCY_BLOCKED;

	if (!l->task)
		return strf("nsec >= %" PRIu64, l->nsec);
	/* COMM: of the task in whose context the event happens */
	return strf("nsec >= %" PRIu64 " && %s ~ \"%s\"", l->nsec, has_name ? "comm" : "COMM",
		    l->task);
}

char *latency_kernel_event(const struct latency_config *l, unsigned number)
{
	_cleanup_free_ char *filter = latency_kernel_filter(l);

	return filter ? strf("+lat%u u64 nsec%s if %s", number, fields[l->kind], filter) : NULL;
}

/* --- */

static void put_event(FILE *f, const char *event)
{
	for (const char *c = event; *c; c++)
		(void)fputc(*c == ':' ? '.' : *c, f);
}

static void put(FILE *f, const struct latency_config *l, const char *text,
		const struct latency_kernel *kernel)
{
	for (const char *c = text; *c; c++) {
		if (*c != '%') {
			(void)fputc(*c, f);
			continue;
		}
		switch (*++c) {
		case 'E':
			(void)fputs(kernel->event, f);
			break;
		case 'N':
			(void)fprintf(f, "%u", kernel->number);
			break;
		case 'S':
			(void)fprintf(f, "%u",
				      l->kind == LATENCY_BLOCK || l->kind == LATENCY_PAIR
					      ? OTHERS
					      : kernel->tasks);
			break;
		case 'B':
			put_event(f, l->events[0]);
			break;
		case 'K':
			for (size_t i = 0; l->keys[i]; i++)
				(void)fprintf(f, "%s%s", i == 0 ? "" : ",", l->keys[i]);
			break;
		case 'I':
			(void)fprintf(f, "%d", seccomp_syscall_resolve_name(l->call));
			break;
		case 'D':
			(void)fprintf(f, "%u", l->device);
			break;
		default:
			break;
		}
	}
}

static char *fill(const struct latency_config *l, const struct line *line,
		  const struct latency_kernel *kernel)
{
	const bool filtered = line->filter && (!line->of_device || l->has_device);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put(f, l, line->text, kernel);
	if (filtered) {
		(void)fputs(" if ", f);
		put(f, l, line->filter, kernel);
	}
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int latency_kernel_triggers(const struct latency_config *l, const struct latency_kernel *kernel,
			    struct trace_trigger *ret)
{
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const struct line *line = &lines[i];
		struct trace_trigger *t = &ret[n];
		const char *name, *colon;

		if (line->kind != l->kind)
			continue;
		name = line->event ? line->event : l->events[n];
		colon = strchr(name, ':');
		*t = (struct trace_trigger){
			.system = strndup(name, (size_t)(colon - name)),
			.name = strdup(colon + 1),
			.trigger = fill(l, line, kernel),
		};
		n++;
		if (t->system && t->name && t->trigger)
			continue;
		while (n > 0)
			trigger_done(&ret[--n]);
		return -ENOMEM;
	}
	return n;
}
