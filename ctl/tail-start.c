/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "ctl/tail-run.h"
#include "ctl/view.h"

/* In front of the others; opened when it is its turn */
static int prepend(struct tail *t, const char *path, uint64_t from, struct fault *why)
{
	struct tail_segment *s = tail_segment_new(path);

	if (!s)
		return fault_errno(why, -ENOMEM, "cannot begin");
	s->from = from;
	s->next = t->first;
	t->first = s;
	if (!t->last)
		t->last = s;
	return 0;
}

/* Count in a finished one: Return: 1, 0 it is not to be read, or negative errno */
static int count_finished(struct tail *t, const char *path, uint64_t enough, uint64_t *ret_count,
			  uint64_t *ret_from, struct fault *why)
{
	_cleanup_(tail_segment_freep) struct tail_segment *s = tail_segment_new(path);
	int r;

	if (!s)
		return fault_errno(why, -ENOMEM, "cannot begin");
	r = tail_open_finished(t, s, NULL, why);
	if (r > 0)
		r = tail_segment_count(s, UINT64_MAX, enough, ret_count, ret_from, why);
	return r < 0 ? r : s->fd >= 0;
}

static bool is_wanted(const struct tail *t, const struct view_file *file)
{
	const struct event_filter_time *since = &t->filter.since;
	const char *name = strrchr(file->path, '/');

	return strcmp(file->kind, "segment") == 0 && name && strcmp(name, "/current.dat") != 0 &&
	       (!since->set || !since->realtime || file->end_usec >= since->value);
}

/* Back through what was finished before, until there are enough events */
static int go_back(struct tail *t, uint64_t lines, struct fault *why)
{
	struct view_files files = {};
	int r = view_read_files(t->bus, "tail", t->session, &files);

	if (r < 0)
		return fault_set(why, r, "cannot list what was recorded before");
	for (size_t i = files.n; i-- > 0 && r >= 0 && lines > 0;) {
		uint64_t count = 0, from = 0;

		if (!is_wanted(t, &files.files[i]))
			continue;
		r = 1;
		if (lines != UINT64_MAX)
			r = count_finished(t, files.files[i].path, lines, &count, &from, why);
		if (r <= 0)
			continue;
		r = prepend(t, files.files[i].path, from, why);
		if (lines == UINT64_MAX)
			continue;
		t->skip = count > lines ? count - lines : 0;
		lines -= MIN(count, lines);
	}
	view_files_done(&files);
	return r < 0 ? r : 0;
}

int tail_start(struct tail *t, uint64_t lines, struct fault *why)
{
	struct tail_segment *s = t->last;
	uint64_t count = 0, from = 0;
	int r;

	if (s && lines == 0) {
		s->filter.from = MAX(s->filter.from, t->bound + 1);
		return 0;
	}
	if (s && lines != UINT64_MAX) {
		r = tail_segment_count(s, t->bound, lines, &count, &from, why);
		if (r < 0)
			return r;
		s->filter.from = MAX(s->filter.from, from);
		t->skip = count > lines ? count - lines : 0;
		lines -= MIN(count, lines);
	}
	return lines > 0 ? go_back(t, lines, why) : 0;
}
