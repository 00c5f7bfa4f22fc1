/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions that drain their instance into segments: workers move the data, jobs make and finish the
 * files, a timer looks after what nothing else would tell. Also those that only empty what an
 * earlier process has left (salvage). The only writer of struct session_record. Main thread, but
 * for …_run_…(), which are jobs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "daemon/plumbing/fdstore.h"
#include "daemon/plumbing/priority.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/session-internal.h"
#include "engine/clock.h"
#include "formats/tail-message.h"
#include "writer/file-age.h"
#include "writer/store.h"

#define CHUNK_MAX	(64 * MIB)
#define WORKERS_DEFAULT 4U
#define RETRY_USEC	(10 * USEC_PER_SEC) /* after a rotation that could not be begun */
/* A few, and a wake-up is not worth a copy; large ones are cheaper by reference */
#define READ_QUOTA_MIN	  32
#define SPLICE_SUBBUF_MIN (16 * KIB)
#define READ_MAX	  (16 * MIB) /* of a CPU, before the others get their turn */
#define LOSS_REPORT_USEC  (60 * USEC_PER_SEC)
#define TICK_MIN_USEC	  (USEC_PER_SEC / 10)

/* --- a drain's fds, into the service manager's FD store and out of it: what a kill would lose */

struct fd_name {
	char text[32];
};

static struct fd_name trace_name(unsigned cpu)
{
	struct fd_name name;

	(void)snprintf(name.text, sizeof(name.text), "cpu%u.trace", cpu);
	return name;
}

static struct fd_name pipe_name(const struct drain_pipe *pipe)
{
	struct fd_name name;

	(void)snprintf(name.text, sizeof(name.text), "%s%u.pipe", pipe->of_cpu ? "cpu" : "worker",
		       pipe->number);
	return name;
}

static struct drain_fd take_fd(struct session *s, const char *what)
{
	int fd = fdstore_take(s->env->fdstore, s->name, what);

	return (struct drain_fd){.fd = fd >= 0 ? fd : -EBADF, .old = fd >= 0};
}

static int take_pipe(struct session *s, struct drain_fds *fds, bool of_cpu, unsigned number)
{
	struct drain_pipe pipe = {.of_cpu = of_cpu, .number = number};

	pipe.end = take_fd(s, pipe_name(&pipe).text);
	return pipe.end.old ? drain_fds_add_pipe(fds, &pipe) : 0;
}

static struct drain_fds *take_fds(struct session *s)
{
	struct drain_fds *fds = drain_fds_new(instance_n_cpus(s->claim.instance));
	int r = 0;

	if (!fds)
		return NULL;
	fds->slots = take_fd(s, "slots");
	fds->notes = take_fd(s, "notes");
	for (unsigned cpu = 0; cpu < fds->n_cpus && r >= 0; cpu++) {
		fds->traces[cpu] = take_fd(s, trace_name(cpu).text);
		r = take_pipe(s, fds, true, cpu);
	}
	for (unsigned i = 0; i < DRAIN_PIPES_MAX && r >= 0; i++)
		r = take_pipe(s, fds, false, i);
	if (r >= 0)
		return fds;
	drain_fds_free(fds);
	return NULL;
}

static void store_fd(struct session *s, const char *what, const struct drain_fd *fd)
{
	if (!fd->old)
		fdstore_put(s->env->fdstore, s->name, what, fd->fd);
}

/*
 * Those that were not there yet. The notes before the pipes, without which those are of no use; and
 * a trace fd before them: it keeps the instance that their pages belong to.
 */
static void store_fds(struct session *s, bool had_slots, bool had_notes)
{
	const struct drain_fds *fds = drain_fds(s->rec.drain);

	if (had_slots && !fds->slots.old)
		fdstore_drop(s->env->fdstore, s->name, "slots");
	if (had_notes && !fds->notes.old)
		fdstore_drop(s->env->fdstore, s->name, "notes");
	store_fd(s, "slots", &fds->slots);
	store_fd(s, "notes", &fds->notes);
	store_fd(s, trace_name(0).text, &fds->traces[0]);
	for (size_t i = 0; i < fds->n_pipes; i++)
		store_fd(s, pipe_name(&fds->pipes[i]).text, &fds->pipes[i].end);
	for (unsigned cpu = 1; cpu < fds->n_cpus; cpu++)
		store_fd(s, trace_name(cpu).text, &fds->traces[cpu]);
}

/*
 * What an earlier process had in these pipes is in the file, or nobody knows whose it is. Not
 * before it is certain that this start succeeds: the next one would take them for lost.
 */
static void drop_old_pipes(struct session *s)
{
	struct drain_pipe pipe;

	while (drain_pop_pipe(s->rec.drain, &pipe))
		if (pipe.end.old)
			fdstore_drop(s->env->fdstore, s->name, pipe_name(&pipe).text);
}

static void keep_fd(struct session *s, const char *what, struct drain_fd *fd, bool stored,
		    bool keep)
{
	if (fd->fd < 0 || (!stored && !fd->old))
		return;
	if (keep)
		fdstore_keep(s->env->fdstore, s->name, what, TAKE_FD(fd->fd));
	else
		fdstore_drop(s->env->fdstore, s->name, what);
}

/*
 * For the next start, in this process or another. New notes that nobody has used yet are not kept,
 * nor pipes: with them the next one would not know that others were lost.
 * @stored: the new ones have been put into the store, too
 */
static void put_back(struct session *s, struct drain_fds *fds, bool stored, bool keep)
{
	bool keep_new = keep && (fds->notes.old || !fds->unused);

	for (size_t i = 0; i < fds->n_pipes; i++)
		keep_fd(s, pipe_name(&fds->pipes[i]).text, &fds->pipes[i].end, stored,
			fds->pipes[i].end.old ? keep : keep_new);
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++)
		keep_fd(s, trace_name(cpu).text, &fds->traces[cpu], stored, keep);
	keep_fd(s, "slots", &fds->slots, stored, keep);
	keep_fd(s, "notes", &fds->notes, stored, keep_new);
	drain_fds_free(fds);
}

static unsigned workers_wanted(const struct session *s)
{
	if (s->env->workers > 0)
		return s->env->workers;
	return MIN(instance_n_cpus(s->claim.instance), WORKERS_DEFAULT);
}

/* Sub-buffers that are full after a wake-up, as many as are taken in one go at most; 0: splice them
 */
static unsigned read_quota(const struct session *s)
{
	enum storage_drain drain = s->spec.config->storage.drain;
	unsigned subbuf_size = drain_subbuf_size(s->rec.drain);
	uint64_t n =
		session_buffer_size(s) / subbuf_size * s->spec.config->trace.buffer_percent / 100;

	if (drain == STORAGE_DRAIN_SPLICE || n < READ_QUOTA_MIN ||
	    (drain == STORAGE_DRAIN_AUTO && subbuf_size >= SPLICE_SUBBUF_MIN))
		return 0;
	return (unsigned)MIN(n, READ_MAX / subbuf_size);
}

static void choose_way(struct session *s)
{
	drain_read(s->rec.drain, s->mode->salvage ? 0 : read_quota(s));
}

static int open_drain(struct session *s, struct fault *why)
{
	struct drain_fds *fds = take_fds(s);
	bool had_slots = fds && fds->slots.old, had_notes = fds && fds->notes.old;
	int r;

	if (!fds)
		return fault_errno(why, -ENOMEM, "cannot start draining");
	r = drain_open(s->rec.drain, s->claim.instance, fds, workers_wanted(s), why);
	if (r >= 0)
		store_fds(s, had_slots, had_notes);
	else
		put_back(s, fds, false, true);
	return r;
}

static void close_drain(struct session *s, bool keep)
{
	struct drain_fds *fds = NULL;

	drain_close(s->rec.drain, &fds);
	/* Without, the start did not get so far: what is in the store is the next one's */
	if (fds)
		put_back(s, fds, true, keep);
	fdstore_flush(s->env->fdstore);
}

/* --- what the next file shall be like */

int session_open_files(struct session *s, struct fault *why)
{
	_cleanup_close_ int fd = -EBADF;
	int r = session_open_dir(s, s->mode->dir, &s->rec.files.dir_fd, why);

	if (r < 0)
		return r;
	store_remove_unfinished(s->rec.files.dir_fd);
	fd = io_open_at(s->claim.dir_fd, "snapshot", O_DIRECTORY | O_NOFOLLOW);
	if (fd >= 0)
		store_remove_unfinished(fd);
	return 0;
}

uint64_t session_buffer_size(const struct session *s)
{
	uint64_t size;

	return instance_is_kept(s->claim.instance) &&
			       instance_buffer_size(s->claim.instance, &size) >= 0
		       ? size
		       : s->spec.config->trace.buffer_size;
}

int session_prepare_segment(struct session *s, struct fault *why)
{
	struct trace_file_params *p = &s->rec.files.plan.params;
	_cleanup_(strv_freep) char **next = NULL; /* systems of the events to be enabled next */
	int r = 0;

	session_segment_limits(s, &s->rec.files.limits);
	for (size_t i = 0; s->spec.change && r >= 0 && i < s->spec.change->trace.n_events; i++)
		r = strv_append(&next, s->spec.change->trace.events[i].system);
	if (r >= 0)
		r = session_overhead_tell(s, &s->rec.files.plan);
	if (r < 0)
		return fault_errno(why, r, "cannot prepare a segment");
	for (size_t i = 0; i < s->rec.n_steps && !s->mode->drains; i++)
		file_plan_add_clock(&s->rec.files.plan, &s->rec.steps[i]);
	if (!s->mode->drains)
		s->rec.n_steps = 0;
	r = file_plan_describe(&s->rec.files.plan, s->claim.instance, s->env->tracing_fd, next,
			       why);
	if (r < 0)
		return r;
	p->symbols = s->env->symbols;
	p->max_file_size = session_max_file_size(s);
	p->slack = MAX(session_buffer_size(s), 4 * MIB) + 2 * MIB;
	p->direct = s->spec.config->storage.direct;
	memcpy(p->boot_id, s->env->boot_id, sizeof(p->boot_id));
	return 0;
}

int session_prepare_files(struct session *s, struct fault *why)
{
	unsigned n_cpus = instance_n_cpus(s->claim.instance);

	s->rec.files.adopt = s->claim.adopted;
	s->rec.files.cpustat = calloc(n_cpus, sizeof(char *));
	s->rec.n_steps = 0;
	if (file_plan_init(&s->rec.files.plan, s->claim.instance) < 0 || !s->rec.files.cpustat ||
	    recording_report_init(&s->rec.report, n_cpus) < 0)
		return fault_errno(why, -ENOMEM, "cannot start");
	s->rec.files.plan.goes_on = !s->mode->drains;
	return session_prepare_segment(s, why);
}

/* By how many microseconds the DATE of a file of the running session is behind what it is now;
 * negative errno if that is not known */
static int date_off(struct session *s, const struct trace_file *file, int64_t *ret)
{
	int64_t date, now;
	int r;

	if (s->mode->salvage || !trace_file_date(file, &date))
		return -EOPNOTSUPP;
	r = clock_date_usec(s->claim.instance, s->spec.config->trace.clock, &now);
	if (r < 0)
		return r;
	*ret = (int64_t)((uint64_t)now - (uint64_t)date);
	return 0;
}

static int read_clocks(const struct session *s, enum own_clock_at at, struct own_clock *ret)
{
	return clock_read(s->claim.instance, s->spec.config->trace.clock, at, ret);
}

void session_read_clocks(struct session *s)
{
	struct own_clock now;

	if (!session_records(s) || read_clocks(s, OWN_CLOCK_STEP, &now) < 0)
		return;
	/* In a storm of steps the first ones and the last one */
	s->rec.n_steps = MIN(s->rec.n_steps + 1, ARRAY_SIZE(s->rec.steps));
	s->rec.steps[s->rec.n_steps - 1] = now;
	if (s->mode->drains)
		session_want(s, WANT_SYNC);
}

void session_clocks_now(const struct session *s, struct own_clocks *ret)
{
	struct own_clock now;

	own_clocks_init(ret, s->spec.config->trace.clock, s->env->boot_id);
	if (read_clocks(s, OWN_CLOCK_SNAPSHOT, &now) >= 0)
		(void)own_clocks_add(ret, &now);
}

/* For the step that comes next */
static void prepare_clocks(struct session *s, bool ends)
{
	struct recording_input *in = &s->rec.files;

	in->n_clocks = 0;
	if (s->mode->salvage)
		return;
	if (session_overhead_tell(s, &in->plan) >= 0)
		s->overhead.untold = false;
	memcpy(in->clocks, s->rec.steps, s->rec.n_steps * sizeof(*in->clocks));
	in->n_clocks = s->rec.n_steps;
	s->rec.n_steps = 0;
	if (ends && read_clocks(s, OWN_CLOCK_END, &in->clocks[in->n_clocks]) >= 0)
		in->n_clocks++;
}

void session_doubt_date(struct session *s)
{
	s->rec.date_doubted = s->mode->drains;
}

void session_check_date(struct session *s)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);
	int64_t off;

	/* A clock that counts no time has no date; the file's age is noted by the wall clock still
	 */
	if (date_off(s, recording_file(s->rec.recording), &off) < 0)
		off = file_age_offset_usec() - recording_clock_usec(s->rec.recording);
	s->rec.date_doubted = clock_date_is_off(0, off, UINT64_MAX);
	if (!clock_date_is_off(0, off, s->rec.dated_usec ? now - s->rec.dated_usec : UINT64_MAX))
		return;
	s->rec.date_doubted = false;
	s->rec.dated_usec = now;
	session_want(s, WANT_ROTATE);
}

/* --- losses */

/* The file before the next one, or the only one */
static struct trace_file *ending(const struct session *s)
{
	struct trace_file *old = recording_old(s->rec.recording);

	return old ? old : recording_file(s->rec.recording);
}

static void prepare_stats(struct session *s, bool ends)
{
	const struct state *k = s->claim.state;
	struct ledger *ledger = &s->counts.ledger;
	char date[64] = "";
	struct ledger_file file = {
		.subbuf_size = drain_subbuf_size(s->rec.drain),
		.ends = ends,
		.undrained = ends && s->rec.undrained,
		.more = date,
	};
	int64_t off;

	prepare_clocks(s, ends);
	/* What slewing has made of a clock that is not slewed, and what is too little for a file */
	if (ends && date_off(s, ending(s), &off) >= 0)
		(void)snprintf(date, sizeof(date), "flyrec date off by usec: %" PRId64 "\n", off);
	for (unsigned cpu = 0; cpu < drain_n_cpus(s->rec.drain); cpu++) {
		struct drain_counts counts;

		drain_cpu(s->rec.drain, cpu, &counts);
		if (ends)
			ledger_end_file(ledger, cpu, counts.stats);
		free(TAKE_PTR(s->rec.files.cpustat[cpu]));
		if (s->mode->salvage)
			continue;
		file.bytes = 0;
		(void)trace_file_read_size(ending(s), cpu, &file.bytes);
		file.dropped_bytes = counts.dropped_bytes;
		s->rec.files.cpustat[cpu] =
			ledger_text(ledger, cpu, cpu < k->n_cpus ? &k->base[cpu] : NULL, &file);
	}
}

/* How many events were overwritten since the last time: once a minute, unless @at_once */
static void report_losses(struct session *s, bool at_once)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC), lost = s->counts.ledger.untold;
	bool just_said = s->rec.lost_usec > 0 && now - s->rec.lost_usec < LOSS_REPORT_USEC;

	if (lost == 0 || (just_said && !at_once))
		return;
	(void)log_full(
		LOG_WARNING, s->name, MESSAGE_EVENTS_LOST, 0,
		"%" PRIu64
		" events were overwritten before they could be taken (a larger BufferSize= helps)",
		lost);
	ledger_told(&s->counts.ledger);
	s->rec.lost_usec = now;
}

/* --- now and then */

uint64_t session_tick_usec(const struct storage_config *storage)
{
	return MIN(storage->flush_usec, storage->sync_interval_usec / 2);
}

/* In a fork storm sooner than otherwise, so that about SESSION_FORKS_MAX come in between */
static uint64_t next_tick(uint64_t tick, uint64_t forks)
{
	if (forks <= SESSION_FORKS_MAX)
		return tick;
	return MIN(MAX(tick * SESSION_FORKS_MAX / forks, TICK_MIN_USEC), tick);
}

/* An event may wait for a flush, and what that flush brings is too late for a sync that begins with
 * it: a tick less than SyncIntervalSec= between two. Half a tick, as they come a little late. */
static bool sync_is_due(const struct session *s, uint64_t now)
{
	const struct storage_config *storage = &s->spec.config->storage;
	uint64_t tick = session_tick_usec(storage);

	return s->overhead.untold ||
	       now - s->rec.synced_usec + tick / 2 >= storage->sync_interval_usec - tick;
}

bool session_check_instance(struct session *s)
{
	struct fault why = {};
	int r;

	if (s->mode->salvage) /* set up by a configuration that we no longer have */
		return true;
	/* Whatever comes after a repaired clock belongs into the next segment */
	drain_hold(s->rec.drain);
	if (triggers_check(s->triggers))
		session_want(s, WANT_WATCH);
	r = instance_check(s->claim.instance, &why);
	if (r >= 0 && r != INSTANCE_GONE)
		session_refresh_units(s);
	if (r == INSTANCE_OK)
		return true;
	(void)log_full(LOG_WARNING, s->name, MESSAGE_MEDDLING, r < 0 ? r : 0, "%s", why.text);
	if (r == INSTANCE_EMPTIED && s->mode->drains) {
		s->rec.held = true;
		session_want(s, WANT_ROTATE);
	}
	if (r != INSTANCE_GONE)
		return true;
	(void)session_pend(s, s->spec.config);
	session_want(s, WANT_STOP);
	return false;
}

static void report_trouble(struct session *s)
{
	bool mapped = drain_mapped(s->rec.drain);

	session_report_trouble(s);
	/* What the kernel made at boot always counts as mapped */
	if (mapped && !s->rec.mapped && !session_is_kept(s) && !drain_reads(s->rec.drain))
		(void)log_full(
			LOG_WARNING, s->name, MESSAGE_MEDDLING, 0,
			"somebody has mapped a ring buffer of this session: copying it, which is slower");
	s->rec.mapped = mapped;
}

/* While the next file is being made, or the workers change to it, that is under way */
static bool file_is_full(const struct session *s)
{
	return s->step != STEP_NEXT && s->step != STEP_RETARGETING &&
	       (drain_full(s->rec.drain) || drain_bytes_left(s->rec.drain) <= 0);
}

static int on_flush(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;
	const struct storage_config *storage = &s->spec.config->storage;
	uint64_t now = now_usec(CLOCK_MONOTONIC), forks = session_new_forks(s);
	unsigned wants = 0;

	(void)timer_rearm(source, next_tick(session_tick_usec(storage), forks));
	/* Workers that are to change files would take what is held meanwhile for the next one's */
	if (s->step != STEP_RETARGETING && !session_check_instance(s))
		return 0;
	/* Before it is asked of the workers again what they have just done */
	report_trouble(s);
	drop_old_pipes(s);
	if (disk_watch_observe(&s->disk.watch, s->disk.trouble, now))
		wants |= WANT_LEAVE;
	if (!s->rec.held)
		drain_flush(s->rec.drain);
	if (drain_total_bytes(s->rec.drain) != s->rec.synced_bytes &&
	    (sync_is_due(s, now) || forks >= SESSION_FORKS_MAX)) {
		session_forks_synced(s, forks);
		wants |= WANT_SYNC;
	}
	session_look_for_names(s);
	if (session_disk_full(s))
		wants |= WANT_SYNC;
	if (file_is_full(s) ||
	    (storage->max_file_usec > 0 && now - s->rec.segment_usec >= storage->max_file_usec &&
	     drain_total_bytes(s->rec.drain) > 0))
		wants |= WANT_ROTATE;
	session_want(s, wants);
	s->events->ticked(s->events->userdata);
	return 0;
}

static int on_notify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct session *s = userdata;
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
	report_trouble(s);
	session_check_workers(s);
	session_tail_check(s);
	if (s->state == SESSION_RECORDING && file_is_full(s))
		session_want(s, WANT_ROTATE);
	if (s->state == SESSION_RECORDING)
		session_look_for_names(s);
	session_advance(s);
	return 0;
}

/* --- begin */

/* What the pipes of a killed process held is gone with those that the FD store has not kept */
static void count_lost_pipes(struct session *s)
{
	unsigned n_cpus = drain_n_cpus(s->rec.drain), n = 0;
	struct cpu_list lost = {};
	_cleanup_free_ char *cpus = NULL;
	uint64_t bytes = 0;

	/* Those made later may be smaller (pipe-user-pages-soft), so each counts as the largest */
	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		struct drain_counts counts;

		drain_cpu(s->rec.drain, cpu, &counts);
		bytes = MAX(bytes, counts.capacity);
	}
	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		if (!drain_lost(s->rec.drain, cpu))
			continue;
		n++;
		cpu_list_add(&lost, cpu);
		session_note_in_flight(s, cpu, bytes);
	}
	if (n == 0)
		return;
	if (n < n_cpus)
		(void)cpu_list_format(&lost, &cpus);
	(void)log_full(
		LOG_WARNING, s->name, MESSAGE_EVENTS_LOST, 0,
		"the earlier process was killed, and no service manager kept its pipes%s%s: up to %llu bytes of events a CPU may be lost",
		cpus ? " of CPU " : "", cpus ? cpus : "", (unsigned long long)bytes);
}

/* Go on from where an earlier process was */
static void take_over(struct session *s)
{
	uint64_t pending = drain_pending(s->rec.drain);

	if (pending > 0)
		(void)log_full(LOG_INFO, s->name, MESSAGE_RECOVERED, 0,
			       "going on with %llu bytes that the earlier process had in hand",
			       (unsigned long long)pending);
	if (!s->claim.state->handed_over)
		count_lost_pipes(s);
	session_count_missing(s);
}

static int record_watch(struct session *s, struct fault *why)
{
	struct session_record *rec = &s->rec;
	int r;

	rec->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rec->notify_fd < 0)
		return fault_errno(why, -errno, "cannot make an eventfd");
	r = sd_event_add_io(s->env->event, &rec->notify_source, rec->notify_fd, EPOLLIN, on_notify,
			    s);
	if (r >= 0)
		r = sd_event_source_set_priority(rec->notify_source, PRIORITY_WORKER);
	if (r >= 0)
		r = timer_arm(s->env->event, &rec->flush_source,
			      session_tick_usec(&s->spec.config->storage), on_flush, s);
	return r < 0 ? fault_errno(why, r, "cannot watch the session") : 0;
}

/* The drain before the files: what is in hand tells whether it has reached one */
static int record_open(struct session *s, struct fault *why)
{
	int r = open_drain(s, why);

	if (r < 0)
		return r;
	drain_hand(s->rec.drain, &s->rec.files.hand);
	session_start_job(s, STEP_OPENING);
	return 0;
}

static int record_begin(struct session *s, struct fault *why)
{
	struct session_record *rec = &s->rec;
	uint64_t chunk =
		MIN(CHUNK_MAX, session_max_prealloc(s) / instance_n_cpus(s->claim.instance));
	int r;

	if (s->claim.adopted)
		take_over(s);
	r = session_note_start(s, why);
	if (r >= 0)
		r = record_watch(s, why);
	if (r >= 0)
		r = drain_run(rec->drain, recording_file(rec->recording), session_max_file_size(s),
			      chunk, rec->notify_fd, why);
	if (r >= 0) {
		rec->files.hand = (struct recover_hand){}; /* the workers' now */
		drop_old_pipes(s);
		choose_way(s);
	}
	if (r >= 0 && !s->mode->salvage)
		r = session_trace(s, why);
	rec->segment_usec = rec->synced_usec = now_usec(CLOCK_MONOTONIC);
	rec->date_doubted = s->claim.adopted; /* current.dat has the date of when it was made */
	if (r >= 0)
		session_look_for_names(s);
	return r;
}

/* --- steps */

static void log_notes(struct session *s)
{
	const struct recording_notes *notes = &s->rec.report.notes;

	for (size_t i = 0; i < notes->n; i++) {
		const struct recording_note *note = &notes->items[i];

		(void)log_full(note->level, s->name,
			       note->level == LOG_DEBUG ? NULL : MESSAGE_RECOVERED,
			       note->fault.error, "%s", note->fault.text);
	}
}

static void announce_finished(struct session *s)
{
	char path[PATH_MAX];

	STRV_FOREACH (name, s->rec.report.finished) {
		(void)snprintf(path, sizeof(path), "%s/%s/record/%s", s->env->state_dir, s->name,
			       *name);
		s->events->segment_finished(s->events->userdata, s, path);
	}
}

void session_harvest(struct session *s)
{
	const struct recording_report *report = &s->rec.report;

	log_notes(s);
	session_count_files(s, report);
	if (report->names_fill && s->state == SESSION_RECORDING && !(s->wants & WANT_STOP))
		session_want(s, WANT_ROTATE);
	if (session_is_to_compress(s))
		compression_note_removed(&s->compression, s->name, report->plain_evicted);
	for (unsigned cpu = 0; cpu < MIN(report->n_cpus, drain_n_cpus(s->rec.drain)); cpu++)
		drain_add_dropped(s->rec.drain, cpu, report->unsure[cpu]);
	announce_finished(s);
	recording_report_clear(&s->rec.report);
}

void session_file_is_made(void)
{
	(void)malloc_trim(0);
}

int session_run_open(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	int r = recording_open(s->rec.recording, &s->rec.files, &s->rec.report, why);

	session_count_snapshots(s);
	return r >= 0 && s->disk.away ? recording_probe_disk(s->rec.recording, why) : r;
}

/*
 * Bytes of the next segment after which the one after it is begun: so much before MaxFileSize= as
 * has come in lately while one was being made
 */
static uint64_t next_limit(struct session *s)
{
	uint64_t max = session_max_file_size(s);
	int64_t left = drain_bytes_left(s->rec.drain);
	uint64_t over = left < 0 ? (uint64_t)-left : 0;

	s->rec.overshoot = MAX(over, s->rec.overshoot / 8 * 7);
	return max - MIN(s->rec.overshoot, max / 2);
}

void session_begin_next(struct session *s)
{
	struct fault why;
	int r = session_prepare_segment(s, &why);

	session_rotation_begins(s);
	if (r < 0)
		session_on_next(s, r, &why);
	else
		session_start_job(s, STEP_NEXT);
}

/* What it says of the file is of one called current.dat */
int session_run_next(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	session_forget_synced(s);
	return recording_begin_next(s->rec.recording, &s->rec.files, &s->rec.report, why);
}

/* The next file is there: point the workers at it */
void session_on_next(struct session *s, int result, const struct fault *why)
{
	if (result < 0 && result != s->rec.next_error)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "cannot begin a new segment, going on in the old one: %s",
			       why->text);
	s->rec.next_error = result;
	if (result < 0) {
		s->rec.retry_usec = now_usec(CLOCK_MONOTONIC) + RETRY_USEC;
		s->rec.held = false;
		drain_flush(s->rec.drain);
		session_rotation_done(s, result, why->text);
		session_drop_change(s, result, why->text);
		return;
	}
	s->rec.segment_usec = now_usec(CLOCK_MONOTONIC);
	session_begin_step(s, STEP_RETARGETING);
	(void)drain_retarget(s->rec.drain, recording_file(s->rec.recording), next_limit(s));
}

/* The workers are in the next file */
void session_on_retargeted(struct session *s, int result, const struct fault *why)
{
	drain_retargeted(s->rec.drain);
	if (drain_full(s->rec.drain))
		session_want(s, WANT_ROTATE);
	session_tail_moved(s);
	prepare_stats(s, true);
	/* The next process, should this one be killed, counts from here on */
	session_sample(s);
	report_losses(s, false);
	if (session_note_base(s, true) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, -ENOMEM,
			       "cannot note the counters: %m, ignoring");
	if (s->rec.held) {
		s->rec.held = false;
		drain_flush(s->rec.drain);
	}
	(void)session_apply_change(s);
	session_start_job(s, STEP_FINISHING);
}

int session_run_close(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	session_forget_synced(s);
	return recording_finish_old(s->rec.recording, &s->rec.files, &s->rec.report, why);
}

/* The new segment's counters into the state file as well, which may wait for the disk like the rest
 */
int session_run_finish(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	struct fault not_noted;
	int noted = session_write_notes(s, &not_noted), r;

	r = session_run_close(s, why);
	if (r >= 0 && noted < 0)
		*why = not_noted;
	return r < 0 ? r : noted;
}

void session_on_finished(struct session *s, int result, const struct fault *why)
{
	const char *archive = s->rec.report.archive;
	_cleanup_free_ char *path = NULL;

	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "%s; what is left to do is tried again", why->text);
	else if (archive[0])
		path = strf("%s/%s/record/%s", s->env->state_dir, s->name, archive);
	session_rotation_done(s, result, result < 0 ? why->text : path ? path : "");
	session_file_is_made();
	compression_look(&s->compression);
	s->events->changed(s->events->userdata, s);
}

void session_begin_sync(struct session *s)
{
	s->rec.synced_usec = now_usec(CLOCK_MONOTONIC);
	s->rec.synced_bytes = drain_total_bytes(s->rec.drain);
	session_sample_now_and_then(s);
	report_losses(s, false);
	prepare_stats(s, false);
	session_start_job(s, STEP_SYNCING);
}

int session_run_sync(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	return recording_sync(s->rec.recording, &s->rec.files, &s->rec.report, why);
}

void session_on_synced(struct session *s, int result, const struct fault *why)
{
	if (result < 0 && result != s->rec.sync_error)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result, "%s", why->text);
	s->rec.sync_error = result;
	if (trace_file_is_unsure(recording_file(s->rec.recording)))
		session_want(s, WANT_ROTATE);
	session_note_synced(s); /* it says what was synced, whatever else has failed */
	if (session_disk_full(s))
		drain_flush(s->rec.drain); /* there may be room again */
}

/* Tracing is off and everything there was has been taken: close the last segment */
void session_on_drained(struct session *s, int result, const struct fault *why)
{
	if (drain_full(s->rec.drain) && now_usec(CLOCK_MONOTONIC) >= s->rec.retry_usec) {
		session_want(s, WANT_ROTATE);
		return;
	}
	if (drain_full(s->rec.drain) || drain_trouble(s->rec.drain) < 0) {
		(void)log_full(
			LOG_ERR, s->name, MESSAGE_EVENTS_LOST, drain_trouble(s->rec.drain),
			"Failed to write all events; data left in the ring buffer was discarded");
		drain_drop_pending(s->rec.drain);
		s->rec.undrained = true;
	}
	prepare_stats(s, true);
	session_tail_end(s, TAIL_END_STOPPED);
	session_sample(s); /* for the last time that there are counters */
	report_losses(s, true);
	close_drain(s, false);
	recording_close_current(s->rec.recording);
	session_start_job(s, STEP_CLOSING);
}

void session_on_closed(struct session *s, int result, const struct fault *why)
{
	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_DISK_TROUBLE, result,
			       "%s; the file stays as it is and is finished at the next start",
			       why->text);
	else if (s->rec.report.archive[0])
		session_on_finished(s, 0, why);
	session_release(s, false);
	session_settle(s, SESSION_STOPPED);
}

/* The workers have nothing in their hands: hand over, or leave a disk that is gone */
void session_on_left(struct session *s, int result, const struct fault *why)
{
	if (s->wants & WANT_LEAVE) {
		session_leave_disk(s);
		return;
	}
	session_note_handed_over(s, drain_trouble(s->rec.drain) == 0);
	session_tail_end(s, TAIL_END_LEFT);
	session_release(s, true);
	session_settle(s, SESSION_STOPPED);
}

/* --- the mode */

static void record_tell(const struct session *s)
{
	(void)log_full(LOG_INFO, s->name, MESSAGE_SESSION_STARTED, 0, "recording (%s)",
		       trace_file_is_direct(recording_file(s->rec.recording)) ? "O_DIRECT"
									      : "page cache");
}

const char *session_drain(const struct session *s)
{
	if (!s->mode->drains || s->state != SESSION_RECORDING)
		return "";
	return drain_reads(s->rec.drain) ? "read" : "splice";
}

static void record_reload(struct session *s, bool storage)
{
	if (storage)
		compression_begin(&s->compression);
	if (storage && s->state == SESSION_RECORDING)
		choose_way(s);
	if (!session_is_to_compress(s))
		compression_stop(&s->compression);
	session_want(s, storage ? WANT_ROTATE : 0);
}

static void record_stop(struct session *s)
{
	struct session_record *rec = &s->rec;
	bool leave = s->wants & (WANT_HAND_OVER | WANT_LEAVE);
	struct fault why;

	compression_stop(&s->compression);
	rec->flush_source = sd_event_source_disable_unref(rec->flush_source);
	session_stop_looking(s);
	if (!leave && instance_trace(s->claim.instance, false, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, why.error, "%s, ignoring", why.text);
	session_begin_step(s, leave ? STEP_LEAVING : STEP_DRAINING);
	(void)drain_post(rec->drain, leave ? WORKER_LEAVE : WORKER_FINISH);
}

static void record_snapshot(struct session *s, const struct snapshot_order *order)
{
	session_begin_step(s, STEP_FLUSHING);
	(void)drain_post(s->rec.drain, WORKER_FLUSH);
}

static int record_cut(struct session *s, const struct snapshot_order *order,
		      struct snapshot_result *made, struct fault *why)
{
	/* Names of tasks that came since the last sync */
	recording_refresh_names(s->rec.recording, &s->rec.files, &s->rec.report);
	return snapshot_order_find(order, s->rec.files.dir_fd, made, why);
}

static void record_count(const struct session *s, unsigned cpu, struct ledger_moved *ret)
{
	struct drain_counts counts;

	drain_cpu(s->rec.drain, cpu, &counts);
	ret->subbufs = counts.subbufs;
	ret->bytes = counts.total_bytes;
	ret->not_written = counts.dropped_bytes / drain_subbuf_size(s->rec.drain);
}

static void record_release(struct session *s, bool keep)
{
	struct session_record *rec = &s->rec;

	sd_event_source_disable_unref(rec->notify_source);
	sd_event_source_disable_unref(rec->flush_source);
	session_stop_looking(s);
	close_drain(s, keep);
	recording_close(rec->recording);
	for (unsigned cpu = 0; rec->files.cpustat && cpu < rec->report.n_cpus; cpu++)
		free(rec->files.cpustat[cpu]);
	free(rec->files.cpustat);
	file_plan_done(&rec->files.plan);
	recording_report_done(&rec->report);
	close_p(&rec->files.dir_fd);
	close_p(&rec->notify_fd);
	*rec = (struct session_record){
		.recording = rec->recording,
		.drain = rec->drain,
		.files.dir_fd = -EBADF,
		.notify_fd = -EBADF,
	};
}

#define RECORD_OPS                                                                   \
	.dir = "record", .drains = true, .open = record_open, .begin = record_begin, \
	.tell = record_tell, .reload = record_reload, .stop = record_stop,           \
	.snapshot = record_snapshot, .cut = record_cut, .count = record_count,       \
	.release = record_release

const struct mode_ops mode_record = {RECORD_OPS};
/* It ends as soon as it has begun: what is not asked of it then must be there all the same */
const struct mode_ops mode_salvage = {RECORD_OPS, .salvage = true};
