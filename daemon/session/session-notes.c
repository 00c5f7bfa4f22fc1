/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * RUNTIME/KIND/NAME/state: what the next process must know and a disk may not tell it, in memory
 * that lasts as long as the machine runs. KIND "away": what is left in the kernel of a session
 * whose disk is gone. "synced": how much of current.dat the disk has confirmed; a disk that forgets
 * what it has taken takes the file back to an earlier state, and the file cannot tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "basic/log.h"
#include "daemon/session/session-internal.h"

static int open_notes(const struct session *s, const char *kind, bool make)
{
	const char *parts[] = {s->env->runtime_dir, kind, s->name};
	_cleanup_close_ int dir = -EBADF;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int at = i == 0 ? AT_FDCWD : dir, fd;

		if (make && mkdirat(at, parts[i], 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(at, parts[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close_p(&dir);
		dir = fd;
	}
	return TAKE_FD(dir);
}

static void forget(const struct session *s, const char *kind)
{
	_cleanup_close_ int dir = open_notes(s, kind, false);

	if (dir >= 0)
		(void)state_remove(dir);
}

static void note(struct session *s, const char *kind, const struct state *state)
{
	_cleanup_close_ int dir = open_notes(s, kind, true);
	int r = dir < 0 ? dir : state_write(dir, state);

	if (r < 0 && !s->note_failed)
		(void)log_full(LOG_WARNING, s->name, NULL, r, "cannot write %s/%s/%s: %m, ignoring",
			       s->env->runtime_dir, kind, s->name);
	s->note_failed = r < 0;
}

static int recall(const struct session *s, const char *kind, struct state **ret)
{
	_cleanup_close_ int dir = open_notes(s, kind, false);

	return dir < 0 ? dir : state_read(dir, ret);
}

/* --- sizes of the file */

static void forget_sizes(struct state *k)
{
	free(TAKE_PTR(k->published));
	k->n_published = 0;
}

/* @sizes: NULL: as far as we know */
static void add_sizes(struct session *s, const uint64_t *sizes)
{
	struct state *k = s->kernel;

	forget_sizes(k);
	k->published = recording_file(s->recording)
			       ? calloc(drain_n_cpus(s->drain), sizeof(*k->published))
			       : NULL;
	if (!k->published)
		return;
	k->n_published = drain_n_cpus(s->drain);
	k->file_id = trace_file_trace_id(recording_file(s->recording));
	/* What was written and could not be told any more counts, too */
	for (unsigned cpu = 0; cpu < k->n_published; cpu++)
		k->published[cpu] = sizes ? sizes[cpu] : drain_written(s->drain, cpu);
}

void session_note_synced(struct session *s)
{
	add_sizes(s, trace_file_live_block(recording_file(s->recording))->synced);
	note(s, "synced", s->kernel);
	forget_sizes(s->kernel);
}

void session_forget_synced(const struct session *s)
{
	forget(s, "synced");
}

void session_forget_file(struct session *s, uint64_t file_id)
{
	_cleanup_(state_freep) struct state *synced = NULL;

	if (file_id == 0)
		return;
	if (s->kernel && s->kernel->file_id == file_id)
		forget_sizes(s->kernel);
	if (recall(s, "synced", &synced) >= 0 && synced->file_id == file_id)
		session_forget_synced(s);
}

/* Of another file nothing is there: before one gets another name its note is removed */
static uint64_t missing(const struct session *s, const struct state *noted, unsigned cpu)
{
	struct trace_file_region region = {};

	if (noted->file_id == trace_file_trace_id(recording_file(s->recording)))
		trace_file_region(recording_file(s->recording), cpu, &region);
	return noted->published[cpu] - MIN(noted->published[cpu], region.size);
}

void session_count_missing(struct session *s)
{
	_cleanup_(state_freep) struct state *synced = NULL;
	const struct state *noted = s->kernel;
	uint64_t bytes = 0;

	if (noted->n_published == 0 && recall(s, "synced", &synced) >= 0)
		noted = synced;
	for (unsigned cpu = 0; cpu < MIN(noted->n_published, drain_n_cpus(s->drain)); cpu++) {
		uint64_t n = missing(s, noted, cpu);

		drain_add_dropped(s->drain, cpu, n);
		bytes += n;
	}
	if (bytes > 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_EVENTS_LOST, 0,
			       "%" PRIu64
			       " bytes of record/current.dat were synced but are missing now",
			       bytes);
	forget_sizes(s->kernel);
	s->kernel->mounted = false;
	session_forget_synced(s); /* once is enough */
}

/* --- sessions whose disk is gone */

void session_note_away(struct session *s)
{
	add_sizes(s, NULL);
	s->kernel->mounted = s->was_mounted;
	note(s, "away", s->kernel);
}

void session_forget_away(const struct session *s)
{
	forget(s, "away");
}

int session_recall_away(const struct session *s, struct state **ret)
{
	int r = recall(s, "away", ret);

	if (r < 0 || session_is_in_kernel(s, *ret))
		return r;
	state_free(TAKE_PTR(*ret));
	session_forget_away(s);
	return -ENOENT;
}
