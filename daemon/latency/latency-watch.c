/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "analysis/words.h"
#include "basic/escape.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/latency.h"
#include "daemon/latency/latency-watch.h"
#include "daemon/plumbing/timer.h"
#include "decode/who.h"
#include "writer/proc-task.h"

#define SOON_USEC  (20 * 1000)
#define ANEW_USEC  (200 * 1000) /* after an end that had to be */
#define LATER_USEC (USEC_PER_SEC / 2)
#define AGAIN_USEC (5 * USEC_PER_SEC)
#define AGAIN_MAX  (60 * USEC_PER_SEC)

struct latency_watch {
	sd_event *event;
	int64_t priority;
	struct latency_watch_calls calls;
	struct latency_config *conditions;
	size_t n;
	pid_t pid;			 /* 0: none */
	uint64_t began_usec, again_usec; /* monotonic; after a failure, as often as it fails */
	int fd;
	sd_event_source *source, *timer;
};

/* --- what is said of a hit */

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

static void on_hit(struct latency_watch *w, const struct latency_message *m)
{
	const struct latency_config *c = &w->conditions[m->condition];
	_cleanup_(cgroup_names_done) struct cgroup_names names = {};
	_cleanup_free_ char *lines = NULL;
	const bool known = m->pid > 0 && find_cgroup(m->pid, &names) >= 0;

	if (c->unit && (!known || !who_fits_unit(c->unit, &names)))
		return;
	lines = hit_lines(c, m, names.unit);
	w->calls.on_hit(w->calls.userdata, m->condition, m->at_usec, lines);
}

/* --- the process */

static void end(struct latency_watch *w)
{
	w->source = sd_event_source_disable_unref(w->source);
	close_p(&w->fd);
	w->fd = -EBADF;
	if (w->pid > 0) {
		(void)kill(w->pid, SIGKILL);
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	w->pid = 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

static void again(struct latency_watch *w, uint64_t usec)
{
	(void)timer_arm(w->event, &w->timer, usec, on_time, w);
}

static void fail(struct latency_watch *w, const char *why)
{
	end(w);
	w->calls.on_state(w->calls.userdata, why);
	w->again_usec = now_usec(CLOCK_MONOTONIC) - w->began_usec > AGAIN_MAX
				? AGAIN_USEC
				: MIN(MAX(2 * w->again_usec, AGAIN_USEC), AGAIN_MAX);
	again(w, w->again_usec);
}

/* Its peer has ended: as it had to, or it was killed */
static void on_end(struct latency_watch *w)
{
	char text[64];
	int status = 0;

	(void)kill(w->pid, SIGKILL); /* it has closed the socket, or is about to be gone */
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	end(w);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		again(w, ANEW_USEC);
		return;
	}
	(void)snprintf(text, sizeof(text), "its process ended, %s %d",
		       WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	fail(w, text);
}

/* It had to read what anybody may have put into a trace: what it says is checked */
static bool is_sane(const struct latency_watch *w, const struct latency_message *m)
{
	return m->comm[sizeof(m->comm) - 1] == '\0' &&
	       m->waker_comm[sizeof(m->waker_comm) - 1] == '\0' &&
	       m->text[sizeof(m->text) - 1] == '\0' && m->pid >= 0 && m->waker_pid >= 0 &&
	       m->waker <= SPAN_WAKER_SOFTIRQ && (m->type != LATENCY_HIT || m->condition < w->n);
}

static int on_message(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct latency_watch *w = userdata;
	struct latency_message message;
	ssize_t n = recv(fd, &message, sizeof(message), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		on_end(w);
		return 0;
	}
	if ((size_t)n != sizeof(message) || !is_sane(w, &message)) {
		fail(w, "its process says what makes no sense");
		return 0;
	}
	switch (message.type) {
	case LATENCY_WATCHING:
		w->calls.on_state(w->calls.userdata, NULL);
		break;
	case LATENCY_HIT:
		on_hit(w, &message);
		break;
	default:
		fail(w, message.text);
		break;
	}
	return 0;
}

static void feed_close(struct latency_feed *feed)
{
	close_p(&feed->tail_fd);
	for (unsigned cpu = 0; cpu < feed->ring.n_cpus; cpu++) {
		close_p(&feed->ring.trace_fds[cpu]);
		close_p(&feed->ring.stats_fds[cpu]);
	}
	free(feed->ring.trace_fds);
	free(feed->ring.stats_fds);
}

static int start(struct latency_watch *w, struct fault *why)
{
	_cleanup_(feed_close) struct latency_feed feed = {.tail_fd = -EBADF};
	const pid_t self = getpid();
	int pair[2], r = w->calls.open(w->calls.userdata, &feed, why);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return fault_errno(why, -errno, "cannot make a socket");
	w->began_usec = now_usec(CLOCK_MONOTONIC);
	w->pid = fork();
	if (w->pid == 0)
		latency_process(&feed, w->conditions, w->n, pair[1], self);
	r = w->pid < 0 ? -errno : 0;
	close(pair[1]);
	w->fd = pair[0];
	if (r >= 0)
		r = sd_event_add_io(w->event, &w->source, w->fd, EPOLLIN, on_message, w);
	if (r >= 0)
		r = sd_event_source_set_priority(w->source, w->priority);
	if (r < 0) {
		w->pid = MAX(w->pid, 0);
		return fault_errno(why, r, "cannot start a process");
	}
	return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct latency_watch *w = userdata;
	struct fault why = {};
	int r = start(w, &why);

	if (r == -EAGAIN)
		again(w, LATER_USEC);
	else if (r < 0)
		fail(w, why.text);
	return 0;
}

void latency_watch_anew(struct latency_watch *w)
{
	end(w);
	again(w, SOON_USEC);
}

int latency_watch_new(sd_event *event, int64_t priority, char *const *conditions,
		      const struct latency_watch_calls *calls, struct latency_watch **ret)
{
	_cleanup_(latency_watch_freep) struct latency_watch *w = calloc(1, sizeof(*w));
	struct fault why;
	int r = 0;

	if (!w)
		return -ENOMEM;
	w->event = event;
	w->priority = priority;
	w->calls = *calls;
	w->fd = -EBADF;
	w->conditions = calloc(strv_length(conditions), sizeof(*w->conditions));
	if (!w->conditions)
		return -ENOMEM;
	STRV_FOREACH (text, conditions) {
		r = latency_parse(*text, true, &w->conditions[w->n], &why);
		if (r < 0)
			return r;
		w->n++;
	}
	r = timer_arm(event, &w->timer, SOON_USEC, on_time, w);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

struct latency_watch *latency_watch_free(struct latency_watch *watch)
{
	if (!watch)
		return NULL;
	end(watch);
	(void)sd_event_source_disable_unref(watch->timer);
	for (size_t i = 0; i < watch->n; i++)
		latency_done(&watch->conditions[i]);
	free(watch->conditions);
	free(watch);
	return NULL;
}
