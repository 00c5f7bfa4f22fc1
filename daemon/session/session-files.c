/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a session's files shall be like: sizes and limits from its configuration and the file
 * system, header from the instance as it is now. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/session/session-internal.h"
#include "engine/clock.h"
#include "writer/file-age.h"

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
	return session_use_or_default(s->config->storage.max_use, s->files.dir_fd);
}

uint64_t session_max_file_size(const struct session *s)
{
	uint64_t size = s->config->storage.max_file_size;

	if (size == STORAGE_DEFAULT)
		size = max_use(s) / 8;
	/* At least two segments fit, else retention would leave nothing but the live one */
	return MAX(MIN(size, max_use(s) / 2), MIB);
}

static uint64_t keep_free(const struct session *s)
{
	struct statvfs vfs;

	if (s->config->storage.keep_free != STORAGE_DEFAULT)
		return s->config->storage.keep_free;
	if (fstatvfs(s->files.dir_fd, &vfs) < 0)
		return 0;
	return MIN((uint64_t)vfs.f_blocks * vfs.f_frsize / 100 * 15, 4 * GIB);
}

/* All CPUs' preallocation together */
uint64_t session_max_prealloc(const struct session *s)
{
	return max_use(s) / 16;
}

static void set_limits(struct session *s)
{
	s->files.limits = (struct retention_limits){
		.max_use = max_use(s),
		.keep_free = keep_free(s),
		.max_files = s->config->storage.max_files,
		.max_age_usec = s->config->storage.max_retention_usec,
		.live_reserve = session_max_file_size(s) + session_max_prealloc(s),
	};
}

void session_snapshot_limits(const struct session *s, struct retention_limits *ret)
{
	const struct snapshot_config *config = &s->config->snapshot;

	*ret = (struct retention_limits){
		.max_use = session_use_or_default(config->max_use, s->files.dir_fd),
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
	if (fstat(s->files.dir_fd, &own) < 0)
		return;
	most = s->events->keep_free(s->events->userdata, own.st_dev);
	ret->keep_free = MAX(ret->keep_free, most);
}

uint64_t session_keep_free(const struct session *s, dev_t device)
{
	struct stat st;

	return s->state == SESSION_RECORDING && s->config && fstat(s->files.dir_fd, &st) >= 0 &&
			       st.st_dev == device
		       ? keep_free(s)
		       : 0;
}

bool session_make_room(struct session *s, int error)
{
	struct retention_report report = {.cpu_subbufs = s->report.evicted,
					  .n_cpus = s->report.n_cpus};
	struct retention_limits limits;
	struct fault why;

	if (error != -ENOSPC && error != -EDQUOT)
		return false;
	if (session_is_flight(s)) {
		session_snapshot_limits(s, &limits);
	} else {
		set_limits(s);
		limits = s->files.limits;
	}
	if (session_copies(s)) /* to delete it frees nothing */
		limits.keep_free = 0;
	if (retention_apply(s->files.dir_fd, &limits, &report, &why) < 0)
		(void)log_full(LOG_WARNING, s->name, MESSAGE_DISK_TROUBLE, why.error, "%s",
			       why.text);
	else if (report.files > 0)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_DISK_TROUBLE, 0,
			       "no room to begin: retention removed %u old files, %llu bytes",
			       report.files, (unsigned long long)report.bytes);
	return report.files > 0;
}

uint64_t session_buffer_size(const struct session *s)
{
	uint64_t size;

	return instance_is_kept(s->instance) && instance_buffer_size(s->instance, &size) >= 0
		       ? size
		       : s->config->trace.buffer_size;
}

int session_prepare_segment(struct session *s, struct fault *why)
{
	struct trace_file_params *p = &s->files.plan.params;
	_cleanup_(strv_freep) char **next = NULL; /* systems of the events to be enabled next */
	int r = 0;

	set_limits(s);
	for (size_t i = 0; s->change && r >= 0 && i < s->change->trace.n_events; i++)
		r = strv_append(&next, s->change->trace.events[i].system);
	if (r < 0)
		return fault_errno(why, r, "cannot prepare a segment");
	r = file_plan_describe(&s->files.plan, s->instance, s->env->tracing_fd, next, why);
	if (r < 0)
		return r;
	p->symbols = s->env->symbols;
	p->max_file_size = session_max_file_size(s);
	p->slack = MAX(session_buffer_size(s), 4 * MIB) + 2 * MIB;
	p->direct = s->config->storage.direct;
	memcpy(p->boot_id, s->env->boot_id, sizeof(p->boot_id));
	return 0;
}

int session_date_off(struct session *s, const struct trace_file *file, int64_t *ret)
{
	int64_t date, now;
	int r;

	if (s->salvage || !trace_file_date(file, &date))
		return -EOPNOTSUPP;
	r = clock_date_usec(s->instance, s->config->trace.clock, &now);
	if (r < 0)
		return r;
	*ret = (int64_t)((uint64_t)now - (uint64_t)date);
	return 0;
}

void session_check_date(struct session *s)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);
	int64_t off;

	/* A clock that counts no time has no date; the file's age is noted by the wall clock still
	 */
	if (session_date_off(s, recording_file(s->recording), &off) < 0)
		off = file_age_offset_usec() - recording_clock_usec(s->recording);
	s->date_doubted = clock_date_is_off(0, off, UINT64_MAX);
	if (!clock_date_is_off(0, off, s->dated_usec ? now - s->dated_usec : UINT64_MAX))
		return;
	s->date_doubted = false;
	s->dated_usec = now;
	s->wants |= WANT_ROTATE;
}

char *session_announce_snapshot(struct session *s, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s/snapshot/%s", s->env->state_dir, s->name, name) < 0)
		return NULL;
	s->events->snapshot_finished(s->events->userdata, s, path);
	return path;
}
