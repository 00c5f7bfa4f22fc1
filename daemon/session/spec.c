/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is wanted of a session: the configuration in force, the one that comes after the stop that
 * is under way, events that are to be traced as soon as they can be; and the limits of its files
 * that follow from it on this disk. The only writer of struct session_spec. Main thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "daemon/session/session-internal.h"
#include "daemon/session/subbuf-size.h"

const struct session_config *session_config_in_force(const struct session *s)
{
	return s->state == SESSION_STOPPED || s->mode->salvage ? NULL : s->spec.config;
}

/* --- limits, bytes */

#define MEMBERS_SHARE 4U /* of MaxUse= and MaxFiles=: the part that members may have */

uint64_t session_use_or_default(uint64_t configured, int dir_fd)
{
	struct statvfs vfs;

	if (configured != STORAGE_DEFAULT)
		return configured;
	if (fstatvfs(dir_fd, &vfs) < 0)
		return GIB;
	return MIN((uint64_t)vfs.f_blocks * vfs.f_frsize / 10, 4 * GIB);
}

static uint64_t max_use(const struct session *s)
{
	return session_use_or_default(s->spec.config->storage.max_use, s->rec.files.dir_fd);
}

uint64_t session_max_file_size(const struct session *s)
{
	uint64_t size = s->spec.config->storage.max_file_size;

	if (size == STORAGE_DEFAULT)
		size = max_use(s) / 8;
	/* At least two segments fit, else retention would leave nothing but the live one */
	return MAX(MIN(size, max_use(s) / 2), MIB);
}

static uint64_t keep_free(const struct session *s)
{
	struct statvfs vfs;

	if (s->spec.config->storage.keep_free != STORAGE_DEFAULT)
		return s->spec.config->storage.keep_free;
	if (fstatvfs(s->rec.files.dir_fd, &vfs) < 0)
		return 0;
	return MIN((uint64_t)vfs.f_blocks * vfs.f_frsize / 100 * 15, 4 * GIB);
}

/* All CPUs' preallocation together */
uint64_t session_max_prealloc(const struct session *s)
{
	return max_use(s) / 16;
}

void session_segment_limits(const struct session *s, struct retention_limits *ret)
{
	*ret = (struct retention_limits){
		.max_use = max_use(s),
		.keep_free = keep_free(s),
		.max_files = s->spec.config->storage.max_files,
		.max_age_usec = s->spec.config->storage.max_retention_usec,
		.live_reserve = session_max_file_size(s) + session_max_prealloc(s),
	};
	if (s->spec.config->storage.compress != STORAGE_COMPRESS_NO)
		ret->spare = session_max_file_size(s) / COMPRESS_SHARE;
}

void session_snapshot_limits(const struct session *s, struct retention_limits *ret)
{
	const struct snapshot_config *config = &s->spec.config->snapshot;

	*ret = (struct retention_limits){
		.max_use = session_use_or_default(config->max_use, s->rec.files.dir_fd),
		.keep_free = keep_free(s),
		.max_files = config->max_files,
		.max_age_usec = config->max_retention_usec,
		.keep_newest = true,
	};
	ret->member_use = ret->max_use / MEMBERS_SHARE;
	if (config->max_files > 0)
		ret->member_files = MAX(config->max_files / MEMBERS_SHARE, 1U);
}

/* The largest KeepFree= of the file system: beyond it that session's segments would make way */
void session_member_limits(const struct session *s, struct retention_limits *ret)
{
	struct stat own;
	uint64_t most;

	session_snapshot_limits(s, ret);
	ret->members_only = true;
	if (fstat(s->rec.files.dir_fd, &own) < 0)
		return;
	most = s->events->keep_free(s->events->userdata, own.st_dev);
	ret->keep_free = MAX(ret->keep_free, most);
}

uint64_t session_keep_free(const struct session *s, dev_t device)
{
	struct stat st;

	return s->state == SESSION_RECORDING && s->spec.config &&
			       fstat(s->rec.files.dir_fd, &st) >= 0 && st.st_dev == device
		       ? keep_free(s)
		       : 0;
}

void session_choose_subbuf_size(struct session *s)
{
	struct session_config *config = s->spec.config;
	struct subbuf_size_input in = {
		.page_size = (uint64_t)sysconf(_SC_PAGESIZE),
		.settable = faccessat(s->env->tracing_fd, "buffer_subbuf_size_kb", F_OK, 0) >= 0,
		.persistent = config->trace.persistent,
		.buffer_size = config->trace.buffer_size,
		.n_cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L),
		.flush_usec = s->mode->drains ? session_tick_usec(&config->storage) : 0,
		.max_use = max_use(s),
		.compress = session_is_to_compress(s),
	};

	config->trace.auto_subbuf_size = subbuf_size_auto(&in);
}

bool session_make_room(struct session *s, int error)
{
	struct retention_report report = {.cpu_subbufs = s->rec.report.evicted,
					  .n_cpus = s->rec.report.n_cpus};
	struct retention_limits limits;
	struct fault why;

	if (error != -ENOSPC && error != -EDQUOT)
		return false;
	if (s->mode->drains)
		session_segment_limits(s, &limits);
	else
		session_snapshot_limits(s, &limits);
	if (session_copies(s)) /* to delete it frees nothing */
		limits.keep_free = 0;
	if (retention_apply(s->rec.files.dir_fd, &limits, &report, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, MESSAGE_DISK_TROUBLE, why.error, "%s",
			       why.text);
	else if (report.files > 0)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_DISK_TROUBLE, 0,
			       "no room to begin: retention removed %u old files, %llu bytes",
			       report.files, (unsigned long long)report.bytes);
	return report.files > 0;
}

static int replace(struct session_config **config, const struct session_config *by)
{
	struct session_config *copy;
	int r = session_config_copy(by, &copy);

	if (r < 0)
		return r;
	session_config_free(*config);
	*config = copy;
	return 0;
}

int session_pend(struct session *s, const struct session_config *config)
{
	return replace(&s->spec.pending, config);
}

void session_set_aside(struct session *s, struct session_config *config)
{
	s->spec.pending = s->spec.config;
	s->spec.config = config;
}

void session_take_pending(struct session *s)
{
	session_config_free(s->spec.config);
	s->spec.config = TAKE_PTR(s->spec.pending);
}

void session_forget_spec(struct session *s, bool in_force)
{
	session_config_free(TAKE_PTR(s->spec.pending));
	if (in_force)
		session_config_free(TAKE_PTR(s->spec.config));
}

static int restart_as(struct session *s, const struct session_config *config)
{
	int r = session_pend(s, config);

	if (r >= 0)
		session_restart(s);
	return r;
}

/* --- other events in the same instance */

/* Has the header of the file in use the formats of all its events? */
bool session_change_fits(const struct session *s)
{
	const struct trace_config *trace = &s->spec.change->trace;

	for (size_t i = 0; s->mode->drains && i < trace->n_events; i++)
		if (!strv_contains(s->rec.files.plan.systems, trace->events[i].system))
			return false;
	return true;
}

static void swap_events(struct session *s)
{
	struct trace_config *now = &s->spec.config->trace, *next = &s->spec.change->trace;
	struct trace_event *events = now->events;
	size_t n = now->n_events;

	now->events = next->events;
	now->n_events = next->n_events;
	next->events = events;
	next->n_events = n;
}

/* The next process must see that the instance is no longer as NAME.conf has it */
static void note_change(struct session *s)
{
	session_note_trace(s, s->spec.change->trace_text);
	triggers_tracing_changed(s->triggers);
	SWAP(s->spec.config->text, s->spec.change->text);
	SWAP(s->spec.config->trace_text, s->spec.change->trace_text);
}

void session_drop_change(struct session *s, int result, const char *why)
{
	_cleanup_(session_config_freep) struct session_config *change = TAKE_PTR(s->spec.change);
	bool reload = s->spec.reload;

	if (!change)
		return;
	s->spec.reload = false;
	session_tell(s, WAIT_CHANGED, result, why);
	if (result >= 0 || !reload)
		return;
	/* The kernel did not take the events of a new configuration: it fails as a whole */
	if (session_steady(s))
		(void)restart_as(s, change);
	else if (s->spec.pending)
		(void)session_pend(s, change); /* its disk went before that came to its turn */
}

bool session_apply_change(struct session *s)
{
	struct fault why = {};
	int r;

	if (!s->spec.change)
		return false;
	if (!session_records(s)) {
		session_drop_change(s, -ECANCELED, "the session was stopped");
		return false;
	}
	if (!session_change_fits(s)) {
		session_want(s, WANT_ROTATE);
		return false;
	}
	session_overhead_restore(s);
	swap_events(s);
	r = instance_update_events(s->claim.instance, &why);
	if (r < 0)
		swap_events(s);
	else
		note_change(s);
	(void)log_full(r < 0 ? LOG_WARNING : LOG_NOTICE, s->name, NULL, 0, "%s",
		       r < 0 ? why.text : "traces other events now");
	session_drop_change(s, r, why.text);
	if (r >= 0)
		s->events->changed(s->events->userdata, s);
	return r >= 0;
}

int session_change_events(struct session *s, const struct session_config *config,
			  session_done_t done, void *userdata, struct fault *why)
{
	int r;

	if (!session_records(s))
		return fault_set(why, -ENOTCONN, "session %s does not record, it is %s", s->name,
				 session_state_name(s->state));
	if (s->spec.change)
		return fault_set(why, -EBUSY,
				 "another change of the events of session %s is under way",
				 s->name);
	r = instance_has_events(s->claim.instance, &config->trace, why);
	if (r < 0)
		return r;
	r = session_config_copy(config, &s->spec.change);
	if (r >= 0 && done)
		r = session_wait(s, WAIT_CHANGED, done, userdata);
	if (r < 0) {
		session_config_free(TAKE_PTR(s->spec.change));
		return fault_errno(why, r, "session %s", s->name);
	}
	session_want(s, 0); /* now, or when what is under way is done */
	return 0;
}

/* --- a new configuration: nothing, another segment, other events, or all anew */

/*
 * Everything but [Trace]: the instance stays, the next segment is made the new way, snapshots are
 * taken the new way and for other reasons
 */
static int take_rest(struct session *s, const struct session_config *config)
{
	_cleanup_(session_config_freep) struct session_config *copy = NULL;
	struct session_config *now = s->spec.config;
	int r = session_config_copy(config, &copy);
	bool storage;

	if (r < 0)
		return r;
	storage = memcmp(&now->storage, &config->storage, sizeof(config->storage)) != 0;
	now->storage = copy->storage;
	SWAP(now->snapshot, copy->snapshot);
	SWAP(now->description, copy->description);
	SWAP(now->text, copy->text);
	session_want(s, WANT_TRIGGERS);
	s->mode->reload(s, storage);
	return 0;
}

int session_prepare_triggers(struct session *s, struct fault *why)
{
	if (!s->mode->salvage)
		return triggers_prepare(s->triggers, &s->spec.config->snapshot,
					instance_name(s->claim.instance), s->claim.state->watched,
					why);
	if (s->claim.state->watched)
		triggers_remove_stray(s->name, s->claim.state->instance);
	return 0;
}

void session_renew_triggers(struct session *s)
{
	struct fault why;
	int r;

	triggers_disarm(s->triggers, true);
	r = session_prepare_triggers(s, &why);
	if (r >= 0 && !s->mode->salvage)
		r = triggers_arm(s->triggers, &why);
	if (r >= 0)
		return;
	(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s", why.text);
	(void)restart_as(s, s->spec.config);
}

/* As the configuration says, whatever was asked for at runtime */
static int reconfigure(struct session *s, const struct session_config *config)
{
	enum session_difference difference = session_compare(s->spec.config, config);
	struct fault why;

	if (difference == DIFFERENT_SESSION || (difference == DIFFERENT_EVENTS && s->spec.change))
		return restart_as(s, config);
	if (s->claim.paused)
		(void)session_pause(s, false, &why);
	if (difference == DIFFERENT_EVENTS) {
		if (session_change_events(s, config, NULL, NULL, &why) < 0)
			return restart_as(s, config);
		s->spec.reload = true;
	}
	if (difference != DIFFERENT_NOTHING && take_rest(s, config) < 0)
		return restart_as(s, config);
	if (difference == DIFFERENT_NOTHING)
		s->mode->reload(s, false);
	session_advance(s);
	return 0;
}

int session_configure(struct session *s, const struct session_config *config)
{
	bool ended = s->state == SESSION_STOPPED || s->state == SESSION_FAILED;
	int r = 0;

	session_forget_place(s);
	if (!config && !ended) {
		session_stop(s, false);
		return 0;
	}
	if (config && session_steady(s))
		return reconfigure(s, config);
	if (!ended)
		return restart_as(s, config);
	if (config)
		r = replace(&s->spec.config, config);
	if (r >= 0)
		session_start(s);
	return r;
}
