/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the flush timer looks after: partial sub-buffers, meddling with the instance, losses, task
 * names, the segment's age, the next sync. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/now.h"
#include "daemon/plumbing/job.h"
#include "daemon/session/session-internal.h"
#include "recorder/kernel-text.h"
#include "recorder/saved-cmdlines.h"

#define LOSS_REPORT_USEC (60 * USEC_PER_SEC)

/*
 * The kernel's table holds 32768 names, by pid modulo that: fetch them before new tasks can have
 * taken the places of old ones.
 */
#define FORKS_BETWEEN_LOOKS 8192
#define TICK_MIN_USEC	    (USEC_PER_SEC / 10)
#define LOOK_USEC	    (USEC_PER_SEC / 4)

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

/* The words of trace-cmd's CPUSTAT, counted from the segment's begin; then our own. What was not
 * written is said in one file only, though it may be found when the next has begun. */
static char *stats_text(struct session *s, unsigned cpu, const struct cpu_stats *now, bool final,
			const char *more)
{
	const struct state_base *base =
		cpu < s->kernel->n_cpus ? &s->kernel->base[cpu] : &(const struct state_base){};
	struct trace_file *file = recording_old(s->recording) ? recording_old(s->recording)
							      : recording_file(s->recording);
	_cleanup_free_ char *counted = NULL;
	struct cpu_stats since = *now;
	struct drain_counts counts;
	uint64_t size = 0;
	char *text;

	drain_cpu(s->drain, cpu, &counts);
	since.overrun -= base->overrun;
	since.commit_overrun -= base->commit_overrun;
	since.dropped_events -= base->dropped_events;
	since.read_events -= base->read_events;
	counted = kernel_text_of_stats(cpu, &since);
	(void)trace_file_read_size(file, cpu, &size);
	if (!counted || asprintf(&text,
				 "%sflyrec subbufs: %" PRIu64 "\nflyrec bytes: %" PRIu64
				 "\nflyrec not written bytes: %" PRIu64
				 "\nflyrec maybe lost in a kill bytes: %" PRIu64 "\n%s%s",
				 counted, size / drain_subbuf_size(s->drain), size,
				 counts.dropped_bytes - s->dropped_said[cpu], base->in_flight, more,
				 final ? "flyrec final: yes\n" : "") < 0)
		return NULL;
	if (final)
		s->dropped_said[cpu] = counts.dropped_bytes;
	return text;
}

int session_read_stats(struct session *s, unsigned cpu, bool boundary, struct cpu_stats *ret)
{
	struct drain_counts counts;

	if (!boundary)
		return instance_read_stats(s->instance, cpu, ret);
	drain_cpu(s->drain, cpu, &counts);
	return kernel_text_stats(counts.stats, ret);
}

void session_prepare_stats(struct session *s, bool final)
{
	const struct trace_file *old = recording_old(s->recording);
	char date[64] = "", more[128];
	int64_t off;

	/* What slewing has made of a clock that is not slewed, and what is too little for a file */
	if (final && session_date_off(s, old ? old : recording_file(s->recording), &off) >= 0)
		(void)snprintf(date, sizeof(date), "flyrec date off by usec: %" PRId64 "\n", off);
	for (unsigned cpu = 0; cpu < drain_n_cpus(s->drain); cpu++) {
		struct cpu_stats stats;

		free(s->files.cpustat[cpu]);
		s->files.cpustat[cpu] = NULL;
		if (s->salvage || session_read_stats(s, cpu, final, &stats) < 0)
			continue;
		(void)strcpy(more, date);
		if (final && s->undrained)
			(void)snprintf(more, sizeof(more),
				       "%sflyrec left in the ring buffer events: %" PRIu64 "\n",
				       date, stats.entries);
		s->files.cpustat[cpu] = stats_text(s, cpu, &stats, final, more);
	}
}

bool session_disk_full(const struct session *s)
{
	return disk_watch_is_full(drain_trouble(s->drain));
}

/* CPU by CPU, and try by try, one disk gives different errors: each kind is told once */
static unsigned trouble_kind(int trouble)
{
	if (disk_watch_is_full(trouble))
		return 1U << 0;
	return trouble == -ETIMEDOUT ? 1U << 1 : 1U << 2;
}

static void tell_trouble(struct session *s, int trouble)
{
	bool told = trouble < 0 && (s->told & trouble_kind(trouble));

	s->told = trouble < 0 ? s->told | trouble_kind(trouble) : 0;
	s->failure = (struct fault){};
	if (trouble < 0)
		(void)fault_set(
			&s->failure, trouble,
			"cannot write to %s/%s/record/current.dat: %s; the ring buffer keeps the newest events, trying again",
			s->env->state_dir, s->name,
			trouble == -ETIMEDOUT ? "the disk does not answer" : strerror(-trouble));
	(void)log_full(told	     ? LOG_DEBUG
		       : trouble < 0 ? LOG_ERR
				     : LOG_NOTICE,
		       s->name, MESSAGE_DISK_TROUBLE, trouble, "%s",
		       trouble < 0 ? s->failure.text : "writing again");
	s->events->changed(s->events->userdata, s);
}

void session_report_trouble(struct session *s)
{
	int trouble = disk_watch_look(&s->disk, drain_trouble(s->drain), drain_flushed(s->drain),
				      drain_total_bytes(s->drain), now_usec(CLOCK_MONOTONIC));
	bool mapped = drain_mapped(s->drain);

	if (trouble != s->trouble)
		tell_trouble(s, trouble);
	/* Room may be made by retention, which is part of a sync */
	if (trouble != s->trouble && session_disk_full(s))
		s->wants |= WANT_SYNC;
	s->trouble = trouble;
	/* What the kernel made at boot always counts as mapped */
	if (mapped && !s->mapped && !s->kept)
		(void)log_full(
			LOG_WARNING, s->name, MESSAGE_MEDDLING, 0,
			"somebody has mapped a ring buffer of this session: copying it, which is slower");
	s->mapped = mapped;
}

void session_report_losses(struct session *s, bool at_once)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC), lost = 0;
	bool just_said = s->lost_usec > 0 && now - s->lost_usec < LOSS_REPORT_USEC;

	for (unsigned cpu = 0; cpu < drain_n_cpus(s->drain) && cpu < s->kernel->n_cpus; cpu++) {
		struct cpu_stats stats;

		if (instance_read_stats(s->instance, cpu, &stats) >= 0)
			lost += stats.overrun + stats.commit_overrun + stats.dropped_events;
	}
	if (lost <= s->lost || (just_said && !at_once))
		return;
	(void)log_full(
		LOG_WARNING, s->name, MESSAGE_EVENTS_LOST, 0,
		"%" PRIu64
		" events were overwritten before they could be taken (a larger BufferSize= helps)",
		lost - s->lost);
	s->lost = lost;
	s->lost_usec = now;
}

uint64_t session_tick_usec(const struct storage_config *storage)
{
	return MIN(storage->flush_usec, storage->sync_interval_usec / 2);
}

/* In a fork storm sooner than otherwise, so that about FORKS_BETWEEN_LOOKS come in between */
static uint64_t next_tick(uint64_t tick, uint64_t forks)
{
	if (forks <= FORKS_BETWEEN_LOOKS)
		return tick;
	return MIN(MAX(tick * FORKS_BETWEEN_LOOKS / forks, TICK_MIN_USEC), tick);
}

/* An event may wait for a flush, and what that flush brings is too late for a sync that begins with
 * it: a tick less than SyncIntervalSec= between two. Half a tick, as they come a little late. */
static bool sync_is_due(const struct session *s, uint64_t now)
{
	const struct storage_config *storage = &s->config->storage;
	uint64_t tick = session_tick_usec(storage);

	return now - s->synced_usec + tick / 2 >= storage->sync_interval_usec - tick;
}

void session_refresh_units(struct session *s)
{
	struct fault missing = {};

	if (s->salvage)
		return;
	(void)instance_refresh_pids(s->instance, &missing);
	if (strcmp(missing.text, s->missing.text) == 0)
		return;
	(void)log_full(missing.text[0] ? LOG_WARNING : LOG_NOTICE, s->name, NULL, missing.error,
		       "%s", missing.text[0] ? missing.text : "processes of each Unit= are traced");
	s->missing = missing;
	if (s->state == SESSION_RECORDING)
		s->events->changed(s->events->userdata, s);
}

bool session_check_instance(struct session *s)
{
	struct session_config *again = NULL;
	struct fault why = {};
	int r;

	if (s->salvage) /* set up by a configuration that we no longer have */
		return true;
	/* Whatever comes after a repaired clock belongs into the next segment */
	drain_hold(s->drain);
	if (triggers_check(s->triggers))
		s->wants |= WANT_WATCH;
	r = instance_check(s->instance, &why);
	if (r >= 0 && r != INSTANCE_GONE)
		session_refresh_units(s);
	if (r == INSTANCE_OK)
		return true;
	(void)log_full(LOG_WARNING, s->name, MESSAGE_MEDDLING, r < 0 ? r : 0, "%s", why.text);
	if (r == INSTANCE_EMPTIED && !s->flight) {
		s->wants |= WANT_ROTATE;
		s->held = true;
	}
	if (r != INSTANCE_GONE)
		return true;
	(void)session_config_copy(s->config, &again);
	session_config_free(s->pending);
	s->pending = again;
	s->wants |= WANT_STOP;
	session_wake(s);
	return false;
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	session_look(userdata);
	return 0;
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
	fetch->names = task_names_ref(s->files.plan.names);
	fetch->tracing_fd = fcntl(s->env->tracing_fd, F_DUPFD_CLOEXEC, 0);
	if (fetch->tracing_fd < 0 || job_start(s->env->event, run_fetch, on_fetched, fetch) < 0)
		on_fetched(fetch, 0, NULL); /* the next sync gets those that are still there */
}

/* Not too often, but as soon as that is over */
static void look_later(struct session *s, uint64_t usec)
{
	if (!s->look_source) {
		(void)sd_event_add_time_relative(s->env->event, &s->look_source, CLOCK_MONOTONIC,
						 usec, 0, on_look, s);
	} else if (sd_event_source_get_enabled(s->look_source, NULL) == 0) {
		(void)sd_event_source_set_time_relative(s->look_source, usec);
		(void)sd_event_source_set_enabled(s->look_source, SD_EVENT_ONESHOT);
	}
}

void session_look(struct session *s)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC), forks;

	if (now < s->look_usec + LOOK_USEC) {
		look_later(s, s->look_usec + LOOK_USEC - now);
		return;
	}
	s->look_usec = now;
	forks = count_forks();
	if (s->fetched_forks == 0)
		s->fetched_forks = forks;
	if (forks - s->fetched_forks >= FORKS_BETWEEN_LOOKS) {
		s->fetched_forks = forks;
		fetch_names(s);
	}
	drain_tell(s->drain);
}

int session_on_flush(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;
	const struct storage_config *storage = &s->config->storage;
	uint64_t now = now_usec(CLOCK_MONOTONIC), forks = count_forks();

	if (s->forks == 0)
		s->forks = forks;
	forks -= s->forks;
	(void)sd_event_source_set_time_relative(source,
						next_tick(session_tick_usec(storage), forks));
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	/* Workers that are to change files would take what is held meanwhile for the next one's */
	if (s->step != STEP_RETARGETING && !session_check_instance(s))
		return 0;
	/* Before it is asked of the workers again what they have just done */
	session_report_trouble(s);
	if (disk_watch_observe(&s->disk, s->trouble, now))
		s->wants |= WANT_LEAVE;
	if (!s->held)
		drain_flush(s->drain);
	if (drain_total_bytes(s->drain) != s->synced_bytes &&
	    (sync_is_due(s, now) || forks >= FORKS_BETWEEN_LOOKS)) {
		session_report_losses(s, false);
		s->forks += forks;
		s->wants |= WANT_SYNC;
	}
	session_look(s);
	if (session_disk_full(s))
		s->wants |= WANT_SYNC;
	if (drain_bytes_left(s->drain) <= 0 ||
	    (storage->max_file_usec > 0 && now - s->segment_usec >= storage->max_file_usec &&
	     drain_total_bytes(s->drain) > 0))
		s->wants |= WANT_ROTATE;
	session_wake(s);
	s->events->ticked(s->events->userdata);
	return 0;
}
