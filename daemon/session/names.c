/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of tasks, fetched before the kernel forgets them: its table holds 32768, by pid modulo
 * that, so a look is due before new tasks can have taken the places of old ones. The only writer
 * of struct session_names. Main thread, but for run_fetch(), which is a job.
 */
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/now.h"
#include "daemon/plumbing/job.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/session-internal.h"
#include "recorder/saved-cmdlines.h"

#define LOOK_USEC (USEC_PER_SEC / 4)

/* Tasks made since boot */
static uint64_t count_forks(void)
{
	_cleanup_free_ char *text = NULL;
	const char *p;

	if (io_read_file_at(AT_FDCWD, "/proc/stat", &text, NULL) < 0)
		return 0;
	p = strstr(text, "\nprocesses ");
	return p ? strtoull(p + strlen("\nprocesses "), NULL, 10) : 0;
}

/* Takes the kernel's names into memory; needs nothing of the session, which may end meanwhile */
struct fetch {
	struct task_names *names;
	int tracing_fd;
};

static int run_fetch(void *userdata, struct fault *why)
{
	struct fetch *fetch = userdata;
	_cleanup_free_ char *text = NULL;
	int r = saved_cmdlines_read(fetch->tracing_fd, &text);

	return r < 0 ? r : task_names_merge(fetch->names, text);
}

static void on_fetched(void *userdata, int result, const struct fault *why)
{
	struct fetch *fetch = userdata;

	task_names_free(fetch->names);
	close_p(&fetch->tracing_fd);
	free(fetch);
}

/* Beside whatever else the session is doing: a slow disk must not cost names */
static void fetch_names(struct session *s)
{
	struct fetch *fetch = calloc(1, sizeof(*fetch));

	if (!fetch)
		return;
	fetch->names = task_names_ref(s->rec.files.plan.names);
	fetch->tracing_fd = fcntl(s->env->tracing_fd, F_DUPFD_CLOEXEC, 0);
	if (fetch->tracing_fd < 0 || job_start(s->env->event, run_fetch, on_fetched, fetch) < 0)
		on_fetched(fetch, 0, NULL); /* the next sync gets those that are still there */
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	session_look_for_names(userdata);
	return 0;
}

/* Not too often, but as soon as that is over */
static void look_later(struct session *s, uint64_t usec)
{
	if (!s->names.source || sd_event_source_get_enabled(s->names.source, NULL) == 0)
		(void)timer_arm(s->env->event, &s->names.source, usec, on_look, s);
}

void session_look_for_names(struct session *s)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC), forks;

	if (now < s->names.look_usec + LOOK_USEC) {
		look_later(s, s->names.look_usec + LOOK_USEC - now);
		return;
	}
	s->names.look_usec = now;
	session_overhead_data(s);
	forks = count_forks();
	if (s->names.fetched_forks == 0)
		s->names.fetched_forks = forks;
	if (forks - s->names.fetched_forks >= SESSION_FORKS_MAX) {
		s->names.fetched_forks = forks;
		fetch_names(s);
	}
	drain_tell(s->rec.drain);
}

uint64_t session_new_forks(struct session *s)
{
	uint64_t forks = count_forks();

	if (s->names.synced_forks == 0)
		s->names.synced_forks = forks;
	return forks - s->names.synced_forks;
}

void session_forks_synced(struct session *s, uint64_t forks)
{
	s->names.synced_forks += forks;
}

void session_stop_looking(struct session *s)
{
	sd_event_source_disable_unref(s->names.source);
	s->names = (struct session_names){};
}
