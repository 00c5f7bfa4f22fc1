/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "analysis/spans.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/latency.h"
#include "daemon/latency/latency-text.h"
#include "daemon/latency/latency-watch.h"
#include "daemon/plumbing/timer.h"

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

static void on_hit(struct latency_watch *w, const struct latency_message *m)
{
	_cleanup_free_ char *lines = NULL;

	if (latency_hit_lines(&w->conditions[m->condition], m, &lines) >= 0)
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
	       m->waker <= SPAN_WAKER_SOFTIRQ && m->condition < w->n;
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
	case LATENCY_LEFT_OUT:
		w->calls.on_left_out(w->calls.userdata, message.condition, message.left_out);
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
