/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "analysis/words.h"
#include "basic/escape.h"
#include "basic/strv.h"
#include "daemon/latency/latency-text.h"
#include "decode/who.h"
#include "writer/proc-task.h"

/* "NAME PID", as it can be shown; the name that /proc has if the process knew none */
static char *task_text(const char *comm, int32_t pid)
{
	_cleanup_free_ char *name = NULL;
	struct proc_task task;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (comm[0] == '\0' && proc_task_stat(AT_FDCWD, path, &task) >= 0)
		name = strndup(task.comm, task.comm_size);
	else
		name = strdup(comm[0] ? comm : "<...>");
	if (escape_replace(&name) < 0 || !name)
		return NULL;
	return strf("%s %d", name, pid);
}

static int find_cgroup(int32_t pid, struct cgroup_names *ret)
{
	char path[32], cgroup[PROC_TASK_CGROUP_MAX];
	uint32_t hierarchy;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	r = proc_task_cgroup(AT_FDCWD, path, cgroup, &hierarchy);
	return r < 0 ? r : cgroup_names_parse(cgroup, ret);
}

static char *waker_text(const struct latency_message *m)
{
	_cleanup_free_ char *task = NULL;

	if (m->preempted)
		return strdup(", preempted");
	switch ((enum span_waker)m->waker) {
	case SPAN_WAKER_TASK:
		task = task_text(m->waker_comm, m->waker_pid);
		return task ? strf(", woken by %s", task) : NULL;
	case SPAN_WAKER_IRQ:
		return strdup(", woken by an interrupt");
	case SPAN_WAKER_SOFTIRQ:
		return strdup(", woken by a softirq");
	case SPAN_WAKER_IDLE:
		return strf(", woken from idle");
	case SPAN_WAKER_UNKNOWN:
		break;
	}
	return strdup("");
}

/* @task: or "" */
static char *sentence(const struct latency_config *c, const struct latency_message *m,
		      const char *task, const char *label)
{
	_cleanup_free_ char *time = analysis_nsec(m->nsec), *waker = waker_text(m);
	const char *of = *task ? " of " : "";

	if (!time || !waker)
		return NULL;
	switch (c->kind) {
	case LATENCY_RUNQUEUE:
		return strf("%s %s %s for CPU %u%s", task, m->open ? "has been waiting" : "waited",
			    time, m->cpu, waker);
	case LATENCY_BLOCKED:
		return strf("%s %s blocked %s%s", task, m->open ? "has been" : "was", time, waker);
	case LATENCY_IRQ:
	case LATENCY_SOFTIRQ:
		return strf("%s %s %s %s on CPU %u%s%s",
			    c->kind == LATENCY_IRQ ? "interrupt" : "softirq", label,
			    m->open ? "has taken" : "took", time, m->cpu,
			    *task ? ", interrupting " : "", task);
	case LATENCY_BLOCK:
		return strf("%s %s %s", label, m->open ? "has taken" : "took", time);
	case LATENCY_SYSCALL:
		return strf("%s%s%s %s %s", c->call, of, task, m->open ? "has taken" : "took",
			    time);
	case LATENCY_PAIR:
		return strf("%s to %s %s %s%s%s", c->events[0], c->events[1],
			    m->open ? "has taken" : "took", time, of, task);
	case _LATENCY_MAX:
		break;
	}
	return NULL;
}

static char *hit_lines(const struct latency_config *c, const struct latency_message *m,
		       const char *unit)
{
	_cleanup_free_ char *task = m->pid ? task_text(m->comm, m->pid) : strdup("");
	_cleanup_free_ char *label = escape_text(m->text, false);
	_cleanup_free_ char *text = NULL, *named = NULL;

	if (!task || !label)
		return NULL;
	text = sentence(c, m, task, label);
	named = unit ? escape_text(unit, false) : NULL;
	if (!text)
		return NULL;
	return strf("latency: %s%s%s%s\nat CPU: %u\n", text, named ? " (" : "", named ? named : "",
		    named ? ")" : "", m->cpu);
}

int latency_hit_lines(const struct latency_config *c, const struct latency_message *m, char **ret)
{
	_cleanup_(cgroup_names_done) struct cgroup_names names = {};
	const bool known = m->pid > 0 && find_cgroup(m->pid, &names) >= 0;

	if (c->unit && (!known || !who_fits_unit(c->unit, &names)))
		return -ESRCH;
	*ret = hit_lines(c, m, names.unit);
	return 0;
}
