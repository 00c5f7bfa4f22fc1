/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From nothing to recording: what an earlier process left is looked at first. Main thread; the disk
 * is touched by jobs, small state files aside.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "daemon/session/cmdlines.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/session-runtime.h"
#include "daemon/session/session-tail.h"
#include "engine/clock.h"
#include "formats/tail-message.h"
#include "writer/store.h"

#define CHUNK_MAX	(64 * MIB)
#define WORKERS_DEFAULT 4U

/* Half-made files of an earlier process */
static void tidy(struct session *s)
{
	_cleanup_close_ int fd = -EBADF;

	store_remove_unfinished(s->files.dir_fd);
	fd = openat(s->dir_fd, "snapshot", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		store_remove_unfinished(fd);
}

/* STATE/NAME, and where its @files go, unless that is NULL */
static int open_dirs(struct session *s, const char *files, struct fault *why)
{
	int r = 0;

	if (s->dir_fd < 0) {
		r = state_root_find(s->env->root, why);
		if (r < 0)
			return r;
		r = store_open_dir(state_root_fd(s->env->root), s->name, &s->dir_fd, why);
		if (r >= 0)
			r = session_check_place(s, why);
	}
	if (r >= 0 && files)
		r = store_open_dir(s->dir_fd, files, &s->files.dir_fd, why);
	if (r < 0 && r != -ESTALE) {
		struct fault inner = *why;

		(void)fault_set(why, r, "%s/%s: %s", s->env->state_dir, s->name, inner.text);
	}
	return r;
}

static int prepare_files(struct session *s, struct fault *why)
{
	unsigned n_cpus = instance_n_cpus(s->instance);

	s->files.cpustat = calloc(n_cpus, sizeof(char *));
	s->dropped_said = calloc(n_cpus, sizeof(*s->dropped_said));
	if (file_plan_init(&s->files.plan, s->instance) < 0 || !s->files.cpustat ||
	    !s->dropped_said || recording_report_init(&s->report, n_cpus) < 0)
		return fault_errno(why, -ENOMEM, "cannot start");
	return session_prepare_segment(s, why);
}

/* What an earlier process left and is to be taken up; what is not is removed */
static int find_leftover(struct session *s, struct state **ret, struct fault *why)
{
	_cleanup_(state_freep) struct state *left = NULL;
	int r = open_dirs(s, NULL, why);

	if (r >= 0)
		r = session_read_leftover(s, &left, why);
	if (r >= 0 && left && left->flight && !session_fits(s, left)) {
		r = session_discard_flight(s, left, why);
		state_free(TAKE_PTR(left));
	}
	if (r >= 0)
		*ret = TAKE_PTR(left);
	return r;
}

static int open_files(struct session *s, struct fault *why)
{
	int r = open_dirs(s, session_is_flight(s) ? "snapshot" : "record", why);

	if (r >= 0)
		tidy(s);
	return r;
}

/* There is an instance, or @r says why not (@why) */
static void start_with(struct session *s, int r, struct fault *why)
{
	if (r >= 0)
		r = session_prepare_triggers(s, why);
	if (r >= 0)
		r = prepare_files(s, why);
	if (r >= 0 && session_is_flight(s)) {
		session_opened(s, 0, why);
		return;
	}
	/* Before the files: what waits in the slots tells whether it has reached one */
	if (r >= 0)
		r = session_open_drain(s, why);
	if (r < 0) {
		recording_forget_errors(s->recording);
		session_fail(s, why);
		return;
	}
	s->files.slots = drain_slots(s->drain);
	session_start_job(s, STEP_OPENING);
}

void session_start_new(struct session *s)
{
	struct fault why = {};
	int r;

	s->kernel = calloc(1, sizeof(*s->kernel));
	r = s->kernel ? session_create_instance(s, &why)
		      : fault_errno(&why, -ENOMEM, "cannot start");
	start_with(s, r, &why);
}

void session_start(struct session *s)
{
	_cleanup_(state_freep) struct state *left = NULL;
	struct fault why = {};
	int r;

	session_set_state(s, SESSION_STARTING);
	if (!s->away)
		s->failure = (struct fault){};
	s->missing = (struct fault){};
	s->retry_usec = s->lost = s->lost_usec = s->overshoot = 0;
	s->trouble = s->next_error = s->sync_error = 0;
	disk_watch_begin(&s->disk, now_usec(CLOCK_MONOTONIC));
	s->mapped = s->held = s->undrained = s->kept = false;
	s->wants &= ~WANT_NOTE;
	r = find_leftover(s, &left, &why);
	if (r >= 0 && s->config)
		cmdlines_raise(s->env);
	if (r >= 0 && left) {
		r = session_attach(s, left, &why);
		s->kernel = TAKE_PTR(left);
		if (r >= 0)
			r = open_files(s, &why);
	} else if (r >= 0 && s->config) {
		r = open_files(s, &why);
		if (r >= 0)
			r = session_find_boot_trace(s, &why);
		if (r >= 0) {
			if (r > 0)
				session_start_job(s, STEP_SAVING_BOOT);
			else
				session_start_new(s);
			return;
		}
	} else if (r >= 0) {
		session_release(s, true); /* nothing wanted, nothing left */
		s->left_behind = false;
		session_settle(s, SESSION_STOPPED);
		return;
	}
	start_with(s, r, &why);
}

int session_note_base(struct session *s, bool boundary)
{
	unsigned n_cpus = instance_n_cpus(s->instance);
	struct state *k = s->kernel;

	free(k->base);
	k->n_cpus = 0;
	k->base = calloc(n_cpus, sizeof(*k->base));
	if (!k->base)
		return -ENOMEM;
	k->n_cpus = n_cpus;
	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		struct cpu_stats stats;

		if (session_read_stats(s, cpu, boundary, &stats) < 0)
			continue;
		k->base[cpu] = (struct state_base){stats.overrun, stats.commit_overrun,
						   stats.dropped_events, stats.read_events, 0};
	}
	return 0;
}

static unsigned workers_wanted(const struct session *s)
{
	if (s->env->workers > 0)
		return s->env->workers;
	return MIN(instance_n_cpus(s->instance), WORKERS_DEFAULT);
}

/* What the pipes of a killed process held is gone with those that the FD store has not kept */
static void count_lost_pipes(struct session *s)
{
	const struct drain_fds *fds = drain_fds(s->drain);
	struct cpu_list new_pipes = {};
	_cleanup_free_ char *cpus = NULL;
	uint64_t bytes = 0;
	unsigned n = 0;

	/* Those made later may be smaller (pipe-user-pages-soft), so each counts as the largest */
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++) {
		struct drain_counts counts;

		drain_cpu(s->drain, cpu, &counts);
		bytes = MAX(bytes, counts.pipe_capacity);
	}
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++) {
		if (fds->cpus[cpu].old_pipe)
			continue;
		n++;
		cpu_list_add(&new_pipes, cpu);
		if (cpu < s->kernel->n_cpus)
			s->kernel->base[cpu].in_flight += bytes;
	}
	if (n == 0)
		return;
	if (n < fds->n_cpus)
		(void)cpu_list_format(&new_pipes, &cpus);
	(void)log_full(
		LOG_WARNING, s->name, MESSAGE_EVENTS_LOST, 0,
		"the earlier process was killed, and no service manager kept its pipes%s%s: up to %llu bytes of events a CPU may be lost",
		cpus ? " of CPU " : "", cpus ? cpus : "", (unsigned long long)bytes);
}

/* Go on from where an earlier process was */
static void take_over(struct session *s)
{
	uint64_t pending = drain_pending(s->drain);

	if (pending > 0)
		(void)log_full(LOG_INFO, s->name, MESSAGE_RECOVERED, 0,
			       "going on with %llu bytes that the earlier process had in hand",
			       (unsigned long long)pending);
	if (!s->kernel->handed_over)
		count_lost_pipes(s);
	s->kernel->handed_over = false;
	/* What was lost before this segment has been reported, if not in its last minute */
	session_count_missing(s);
	for (unsigned cpu = 0; cpu < s->kernel->n_cpus; cpu++)
		s->lost += s->kernel->base[cpu].overrun + s->kernel->base[cpu].commit_overrun +
			   s->kernel->base[cpu].dropped_events;
	(void)state_write(s->dir_fd, s->kernel);
}

static int note_first_base(struct session *s, struct fault *why)
{
	int r = session_note_base(s, false);

	return r < 0 ? fault_errno(why, r, "cannot note the counters of session %s", s->name)
		     : session_write_state(s, why);
}

int session_trace(struct session *s, struct fault *why)
{
	s->paused = s->kernel->paused;
	if (s->paused)
		(void)log_full(LOG_NOTICE, s->name, NULL, 0, "still paused");
	return instance_trace(s->instance, !s->paused, why);
}

int session_begin_recording(struct session *s, struct fault *why)
{
	uint64_t chunk = MIN(CHUNK_MAX, session_max_prealloc(s) / instance_n_cpus(s->instance));
	int r = 0;

	if (s->files.adopt)
		take_over(s);
	if (!s->salvage && (!s->files.adopt || s->kernel->n_cpus != instance_n_cpus(s->instance)))
		r = note_first_base(s, why);
	session_begin_counting(s);
	s->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r >= 0 && s->notify_fd < 0)
		r = fault_errno(why, -errno, "cannot make an eventfd");
	if (r >= 0) {
		r = sd_event_add_io(s->env->event, &s->notify_source, s->notify_fd, EPOLLIN,
				    session_on_notify, s);
		if (r >= 0)
			r = sd_event_source_set_priority(s->notify_source, PRIORITY_WORKER);
		if (r >= 0)
			r = sd_event_add_time_relative(
				s->env->event, &s->flush_source, CLOCK_MONOTONIC,
				session_tick_usec(&s->config->storage), 0, session_on_flush, s);
		if (r < 0)
			(void)fault_errno(why, r, "cannot watch the session");
	}
	if (r >= 0)
		r = drain_run(s->drain, recording_file(s->recording), workers_wanted(s),
			      session_max_file_size(s), chunk, s->notify_fd, why);
	if (r >= 0 && !s->salvage)
		r = session_trace(s, why);
	s->segment_usec = s->synced_usec = now_usec(CLOCK_MONOTONIC);
	s->dated_usec = 0;
	s->date_doubted = s->files.adopt; /* current.dat has the date of when it was made */
	if (r >= 0)
		session_look(s);
	return r;
}

static void close_files(struct session *s)
{
	recording_close(s->recording);
	for (unsigned cpu = 0; s->files.cpustat && cpu < s->report.n_cpus; cpu++)
		free(s->files.cpustat[cpu]);
	free(s->files.cpustat);
	file_plan_done(&s->files.plan);
	close_p(&s->files.dir_fd);
	s->files = (struct recording_input){.dir_fd = -EBADF};
	recording_report_done(&s->report);
}

void session_release(struct session *s, bool keep_instance)
{
	struct fault why = {};

	s->notify_source = sd_event_source_disable_unref(s->notify_source);
	s->flush_source = sd_event_source_disable_unref(s->flush_source);
	s->look_source = sd_event_source_disable_unref(s->look_source);
	session_tail_end(s, TAIL_END_LEFT); /* those that are still there: it failed */
	if (s->state != SESSION_STARTING)
		session_sample(s);
	/* Its events may be the session's own probes, which go with the session's instance */
	triggers_disarm(s->triggers, keep_instance);
	session_close_drain(s, keep_instance);
	free(TAKE_PTR(s->dropped_said));
	session_end_flight(s);
	close_files(s);
	if (keep_instance) {
		instance_free(TAKE_PTR(s->instance));
	} else if (s->instance) {
		if (instance_destroy(TAKE_PTR(s->instance), &why) < 0)
			(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s", why.text);
		else if (state_remove(s->dir_fd) < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, -errno,
				       "cannot remove the state file: %m");
		else
			(void)boot_note_remove(s->dir_fd);
		session_forget_synced(s);
	}
	state_free(TAKE_PTR(s->kernel));
	close_p(&s->notify_fd);
	close_p(&s->dir_fd);
	s->notify_fd = s->dir_fd = -EBADF;
}
