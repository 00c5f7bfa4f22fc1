/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/scheduling.h"
#include "basic/strv.h"
#include "daemon/plumbing/job.h"
#include "daemon/session/compression.h"

#define RETRY_USEC  (60 * USEC_PER_SEC) /* after one that failed, or had no room */
#define REFUSED_MAX 100U		/* names that are remembered; then all are tried again */

struct compress_work {
	struct compression *owner; /* NULL: it is gone */
	struct compression_order order;
	struct compress_order todo;
	struct compress_report report;
	atomic_bool cancel;
	atomic_int tid; /* of the job; 0: it does not run */
};

static void work_free(struct compress_work *work)
{
	close_p(&work->todo.dir_fd);
	strv_free(work->todo.refused);
	free(work);
}

/* Thread: job */
static int work_run(void *userdata, struct fault *why)
{
	struct compress_work *work = userdata;
	int r;

	atomic_store(&work->tid, gettid());
	r = compress_next(&work->todo, &work->report, why);
	atomic_store(&work->tid, 0);
	return r;
}

/* --- what came of it */

/* So much is said once, until it works again */
static void fail(struct compression *c, const struct fault *why, const char *what_now)
{
	bool said = c->failure.error == why->error;

	(void)fault_set(&c->failure, why->error, "%s", why->text);
	(void)log_full(said ? LOG_DEBUG : LOG_WARNING, c->work->order.session, NULL, why->error,
		       "Failed to compress record/%s: %s; %s", c->work->report.name, why->text,
		       what_now);
}

/* Not at once, whatever else is finished meanwhile */
static void try_later(struct compression *c)
{
	c->retry_usec = now_usec(CLOCK_MONOTONIC) + RETRY_USEC;
}

/* Another try would end the same: not before the next start */
static void refuse(struct compression *c, const struct fault *why)
{
	if (strv_length(c->refused) >= REFUSED_MAX)
		strv_free(TAKE_PTR(c->refused));
	c->failure.error = 0; /* each is another file */
	fail(c, why, "it stays as it is");
	if (strv_append(&c->refused, c->work->report.name) < 0)
		try_later(c);
}

static void succeed(struct compression *c, const struct compress_report *report)
{
	(void)log_full(LOG_DEBUG, c->work->order.session, NULL, 0,
		       "compressed record/%s: %llu bytes instead of %llu", report->name,
		       (unsigned long long)report->bytes, (unsigned long long)report->raw_bytes);
	c->failure = (struct fault){};
}

static void harvest(struct compression *c, int result, const struct fault *why)
{
	const struct compress_report *report = &c->work->report;
	struct fault no_room;

	if (result >= 0 || report->name[0])
		c->tally = report->tally;
	switch (result) {
	case COMPRESS_NOTHING:
		return;
	case COMPRESS_DONE:
		succeed(c, report);
		break;
	case COMPRESS_NO_ROOM:
		(void)fault_set(&no_room, -ENOSPC,
				"no room for a copy within MaxUse= and beyond KeepFree=");
		fail(c, &no_room, "nothing is deleted for it, trying again");
		try_later(c);
		break;
	case -ECANCELED:
	case -ENOENT: /* retention was quicker */
		break;
	case -EBADMSG:
	case -ENODATA:
	case -EPERM:
	case -ENOTSUP:
		refuse(c, why);
		break;
	default:
		fail(c, why, "trying again");
		try_later(c);
	}
	c->look = true;
}

static void on_done(void *userdata, int result, const struct fault *why)
{
	struct compress_work *work = userdata;
	struct compression *c = work->owner;

	if (c) {
		harvest(c, result, why);
		c->work = NULL;
		work->order.compressed(work->order.session_userdata, &work->report);
	}
	work->order.done(work->order.userdata);
	work_free(work);
}

/* --- begin and end */

static int work_new(struct compression *c, const struct compression_order *order,
		    struct compress_work **ret)
{
	struct compress_work *work = calloc(1, sizeof(*work));
	int r;

	if (!work)
		return -ENOMEM;
	work->owner = c;
	work->order = *order;
	work->todo.limits = *order->limits;
	work->todo.cancel = &work->cancel;
	work->todo.dir_fd = fcntl(order->dir_fd, F_DUPFD_CLOEXEC, 3);
	r = work->todo.dir_fd < 0 ? -errno : strv_copy(c->refused, &work->todo.refused);
	if (r < 0)
		work_free(work);
	else
		*ret = work;
	return r;
}

int compression_start(struct compression *c, const struct compression_order *order)
{
	struct compress_work *work;
	int r;

	if (c->work || !c->look || now_usec(CLOCK_MONOTONIC) < c->retry_usec)
		return 0;
	r = work_new(c, order, &work);
	if (r < 0)
		return r;
	r = job_start(order->event, work_run, on_done, work);
	if (r < 0) {
		work_free(work);
		return r;
	}
	/* What is finished from now on it may not have seen */
	c->look = false;
	c->work = work;
	return 1;
}

void compression_begin(struct compression *c)
{
	strv_free(c->refused);
	*c = (struct compression){.work = c->work, .tally = c->tally, .look = true};
}

void compression_look(struct compression *c)
{
	c->look = true;
}

void compression_stop(struct compression *c)
{
	pid_t tid;

	if (!c->work || atomic_exchange(&c->work->cancel, true))
		return;
	/* On a busy machine it would take seconds until it sees that */
	tid = atomic_load(&c->work->tid);
	if (tid > 0)
		scheduling_normal(tid);
}

void compression_leave(struct compression *c)
{
	compression_stop(c);
	if (c->work)
		c->work->owner = NULL;
	strv_free(c->refused);
	*c = (struct compression){};
}

void compression_note_removed(struct compression *c, const char *session, unsigned files)
{
	/* It is known then why */
	if (files == 0 || c->behind_said || c->failure.error < 0)
		return;
	c->behind_said = true;
	(void)log_full(
		LOG_WARNING, session, NULL, 0,
		"retention removed %u segments before they were compressed: the machine leaves too little time for that",
		files);
}
