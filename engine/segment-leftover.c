/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

#include "basic/now.h"
#include "basic/strv.h"
#include "engine/segment-internal.h"
#include "writer/compact.h"
#include "writer/recover.h"
#include "writer/store.h"

#define EIO_USEC (20 * USEC_PER_SEC)

static int set_aside(struct segment *s, const char *name, struct fault *why)
{
	char to[STORE_NAME_SIZE];
	char reason[sizeof(why->text)];
	int r;

	(void)snprintf(reason, sizeof(reason), "%.*s", 900, why->text);
	r = store_set_aside(s->dir_fd, name, to);
	if (r < 0)
		return fault_errno(why, r, "cannot rename %s, which is damaged (%s)", name, reason);
	segment_note(s, LOG_WARNING, -EBADMSG, "record/%s is damaged (%s), renamed to %s", name,
		     reason, to);
	return 0;
}

static bool is_damage(int error)
{
	return error == -EBADMSG || error == -ENODATA || error == -EOPNOTSUPP || error == -ELOOP ||
	       error == -EISDIR || error == -ENXIO;
}

bool segment_has_waited(struct segment *s)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);

	if (s->eio_usec == 0)
		s->eio_usec = now;
	return now - s->eio_usec >= EIO_USEC;
}

/*
 * @error: why it cannot be taken up. Read errors may pass: the file is put aside for them when they
 * have not for a while, and where that cannot be done either, it is the disk that is away.
 */
static int refuse(struct segment *s, const char *name, int error, struct fault *why)
{
	struct fault first = *why;
	int r;

	if (!is_damage(error) && (error != -EIO || !segment_has_waited(s)))
		return error;
	r = set_aside(s, name, why);
	if (r >= 0 || error != -EIO)
		return r;
	*why = first;
	return error;
}

int segment_take_up(struct segment *s, const char *name, struct trace_file **ret, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	struct recover_report report;
	char *slots = s->slots;
	int r;

	if (faccessat(s->dir_fd, name, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fault_errno(why, -errno, "cannot open %s", name);
	/* Direct= may have been set since: what is there is finished all the same */
	r = trace_file_open(s->dir_fd, name,
			    s->plan.params.direct == STORAGE_DIRECT_NO ? STORAGE_DIRECT_NO
								       : STORAGE_DIRECT_AUTO,
			    &file, why);
	if (r >= 0 && compact_interrupted(file))
		r = compact_resume(file, why);
	if (r < 0)
		return refuse(s, name, r, why);
	/* Its sizes were right and on the disk before the first gap was closed */
	if (trace_file_phase(file) == LIVE_DENSE) {
		*ret = TAKE_PTR(file);
		return 1;
	}
	if (trace_file_n_cpus(file) != s->plan.params.n_cpus ||
	    trace_file_subbuf_size(file) != s->plan.params.subbuf_size)
		slots = NULL;
	r = recover_file(file, s->dir_fd, name, slots, &report, why);
	if (r < 0)
		return refuse(s, name, r, why);
	if (report.adopted > 0 || report.cut > 0)
		segment_note(
			s, report.unreadable ? LOG_WARNING : LOG_INFO, 0,
			"record/%s: recovered %llu bytes past the recorded size, dropped %llu bytes%s%s",
			name, (unsigned long long)report.adopted, (unsigned long long)report.cut,
			report.unreadable ? " (the disk cannot read some)" : "",
			report.kept_cut ? " (kept in *.damaged)" : "");
	*ret = TAKE_PTR(file);
	return 1;
}

static int finish_leftover(struct segment *s, const char *name, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	int r;

	if (store_same_file(s->dir_fd, name, STORE_CURRENT)) {
		/* Ended while the two names were swapped: it is still the live file */
		(void)unlinkat(s->dir_fd, name, 0);
		return 0;
	}
	r = segment_take_up(s, name, &file, why);
	if (r <= 0)
		return r;
	r = segment_archive(s, file, name, why);
	if (r >= 0)
		segment_note(s, LOG_INFO, 0, "record/%s: finished what had been begun", name);
	return r;
}

int segment_finish_leftovers(struct segment *s, struct fault *why)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct fault one;
	int r, result = 0;

	r = store_list_finishing(s->dir_fd, &names);
	if (r < 0)
		return fault_errno(why, r, "cannot read directory record");
	for (char **name = names; *name; name++) {
		r = finish_leftover(s, *name, &one);
		if (r < 0 && result >= 0) {
			result = r;
			*why = one;
		}
	}
	return result;
}
