/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/pressure.h"
#include "daemon/plumbing/timer.h"
#include "daemon/trigger/pressure-growth.h"
#include "daemon/trigger/pressure-watch.h"
#include "recorder/unit-group.h"

#define PERIOD_USEC (2 * USEC_PER_SEC) /* PSI_FREQ: averages are taken this often anyway */
/* A search of all control groups, and how long a restart may take that is not worth a word */
#define SEARCH_USEC (5 * USEC_PER_SEC)

struct pressure_watch {
	struct pressure pressure;
	char *condition;
	sd_event *event;
	int64_t priority;
	struct pressure_watch_calls calls;
	sd_event_source *source; /* of @fd, or of a unit the next look */
	int fd;			 /* -EBADF: of a unit */
	char *path;		 /* NULL: of a unit that was not found yet */
	struct pressure_growth growth;
	uint64_t search_usec; /* monotonic: not before that */
	int trouble;	      /* 0: none */
};

/* The kernel's line, malloc'ed: "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" */
static int read_line(const struct pressure_watch *w, char **ret)
{
	_cleanup_free_ char *text = NULL;
	const char *line;
	int r = io_read_file_at(AT_FDCWD, w->path, &text, NULL);

	if (r < 0)
		return r;
	line = strstr(text, w->pressure.full ? "full " : "some ");
	if (!line)
		return -EOPNOTSUPP;
	*ret = strndup(line, strcspn(line, "\n"));
	return *ret ? 0 : -ENOMEM;
}

static void tell(const struct pressure_watch *w, const char *line)
{
	_cleanup_free_ char *lines =
		strf("pressure: %s\n%s%s\n", w->condition, line ? "now: " : "", line ? line : "");

	w->calls.on_pressure(w->calls.userdata, lines);
}

/* @why: error 0: there is none */
static void set_trouble(struct pressure_watch *w, const struct fault *why)
{
	bool same = w->trouble == why->error;

	w->trouble = why->error;
	if (!same)
		w->calls.on_state(w->calls.userdata, why->error < 0 ? why->text : NULL);
}

/* --- of the machine */

/*
 * Before Linux 6.5 only CAP_SYS_RESOURCE may write at all; since then anybody may whose window is a
 * multiple of the period in which the kernel looks anyway (EINVAL otherwise). The capability is
 * never asked for: it is either there or not.
 */
static int explain(const struct pressure_watch *w, int error, struct fault *why)
{
	if (error == -ENOENT || error == -EOPNOTSUPP)
		return fault_errno(why, error,
				   "%s: this kernel does not watch pressure (CONFIG_PSI, psi=1)",
				   w->path);
	if (error == -EINVAL && w->pressure.window_usec % PERIOD_USEC != 0)
		return fault_set(why, error,
				 "%s: a window that is no multiple of 2s needs CAP_SYS_RESOURCE, "
				 "see OnPressure= in flyrec.session(5)",
				 w->path);
	if (error == -EPERM || error == -EACCES)
		return fault_errno(why, error,
				   "%s: kernels before 6.5 ask for CAP_SYS_RESOURCE, see "
				   "OnPressure= in flyrec.session(5)",
				   w->path);
	return fault_errno(why, error, "cannot watch %s", w->path);
}

/* Closing the descriptor ends it */
static int open_machine(struct pressure_watch *w, struct fault *why)
{
	const struct pressure *p = &w->pressure;
	char text[80];
	int n;

	w->fd = open(w->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (w->fd < 0)
		return explain(w, -errno, why);
	n = snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu64, p->full ? "full" : "some",
		     p->stall_usec, p->window_usec);
	/* The kernel takes the last byte for the end of the line, whatever it is */
	if (write(w->fd, text, (size_t)n + 1) < 0)
		return explain(w, -errno, why);
	return 0;
}

static int on_machine(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	_cleanup_free_ char *line = NULL;
	struct pressure_watch *w = userdata;
	struct fault why;

	if (revents & (EPOLLERR | EPOLLHUP)) {
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
		(void)fault_set(&why, -EIO, "the kernel has ended it");
		set_trouble(w, &why);
		return 0;
	}
	(void)read_line(w, &line);
	tell(w, line);
	return 0;
}

/* --- of a unit */

static int find_unit(struct pressure_watch *w, struct fault *why)
{
	_cleanup_free_ char *dir = NULL;
	int r = unit_group_find(w->pressure.unit, &dir, why);

	if (r < 0)
		return r;
	free(w->path);
	w->path = strf("%s/%s.pressure", dir, w->pressure.resource);
	return w->path ? 0 : fault_errno(why, -ENOMEM, "%s", w->pressure.unit);
}

/* Where it was last, as after a restart, or wherever it is.
 * Return: 0; -EAGAIN: gone, but not for long; or another negative errno with @why. */
static int read_unit(struct pressure_watch *w, uint64_t now, char **ret, struct fault *why)
{
	int r = w->path ? read_line(w, ret) : -ENOENT;

	if (r < 0 && now < w->search_usec)
		return -EAGAIN;
	w->search_usec = now + SEARCH_USEC;
	if (r >= 0)
		return r;
	r = find_unit(w, why);
	if (r < 0)
		return r;
	r = read_line(w, ret);
	return r < 0 ? fault_errno(why, r,
				   "%s: this kernel does not watch pressure of control groups, or "
				   "not of this one",
				   w->path)
		     : 0;
}

static void look(struct pressure_watch *w, uint64_t now)
{
	const struct pressure *p = &w->pressure;
	_cleanup_free_ char *line = NULL;
	struct fault why = {};
	uint64_t total = 0;
	int r = read_unit(w, now, &line, &why);

	if (r != -EAGAIN)
		set_trouble(w, &why);
	if (r == -EAGAIN || r == -ENOENT) /* what comes then begins at 0 */
		pressure_growth_begin(&w->growth, now, 0);
	else if (r < 0 || sscanf(line, "%*s %*s %*s %*s total=%" SCNu64, &total) != 1)
		w->growth = (struct pressure_growth){};
	else if (pressure_growth_add(&w->growth, p->window_usec, now, total) >= p->stall_usec) {
		/* The next window begins now */
		pressure_growth_begin(&w->growth, now, total);
		tell(w, line);
	}
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct pressure_watch *w = userdata;

	look(w, now_usec(CLOCK_MONOTONIC));
	(void)timer_rearm(source, w->trouble < 0 ? SEARCH_USEC : w->pressure.window_usec / 2);
	return 0;
}

/* --- both */

static int begin(struct pressure_watch *w, struct fault *why)
{
	int r;

	if (w->pressure.unit[0]) {
		r = timer_arm(w->event, &w->source, 0, on_look, w);
		if (r >= 0)
			r = sd_event_source_set_time_accuracy(w->source,
							      w->pressure.window_usec / 16);
	} else {
		r = open_machine(w, why);
		if (r < 0)
			return r;
		r = sd_event_add_io(w->event, &w->source, w->fd, EPOLLPRI, on_machine, w);
	}
	if (r >= 0)
		r = sd_event_source_set_priority(w->source, w->priority);
	return r < 0 ? fault_errno(why, r, "cannot watch %s", w->condition) : 0;
}

int pressure_watch_new(sd_event *event, int64_t priority, const char *condition,
		       const struct pressure_watch_calls *calls, struct pressure_watch **ret,
		       struct fault *why)
{
	_cleanup_(pressure_watch_freep) struct pressure_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return fault_errno(why, -ENOMEM, "cannot watch %s", condition);
	*w = (struct pressure_watch){
		.event = event, .priority = priority, .calls = *calls, .fd = -EBADF};
	r = pressure_parse(condition, &w->pressure, why);
	if (r < 0)
		return r;
	w->condition = strdup(condition);
	if (!w->pressure.unit[0])
		w->path = strf("/proc/pressure/%s", w->pressure.resource);
	if (!w->condition || (!w->pressure.unit[0] && !w->path))
		return fault_errno(why, -ENOMEM, "cannot watch %s", condition);
	r = begin(w, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

void pressure_watch_free(struct pressure_watch *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->source);
	close_p(&w->fd);
	free(w->condition);
	free(w->path);
	free(w);
}
