/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Snapshots of a session: requests wait in a queue, each is a flush by the workers, a job that
 * finds what belongs to it, and one that copies that, while the session goes on. Those of flight
 * sessions are two jobs: capture and export. Main thread, but for what runs as a job.
 */
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/job.h"
#include "daemon/session-internal.h"
#include "daemon/session-runtime.h"
#include "writer/store.h"

#define POSTS_MAX  16
#define DETAIL_MAX 512

struct snapshot_request {
	struct snapshot_request *next;
	struct segment_cut cut;
	struct coresight_job coresight;
	char *session, *reason;
	char *detail;	       /* or NULL */
	struct fault why;      /* of the copying that has failed */
	sd_event_source *post; /* PostSec= runs: not yet */
	session_snapshot_done_t done;
	void *userdata;
};

static void request_free(struct snapshot_request *request)
{
	(void)sd_event_source_disable_unref(request->post);
	coresight_job_done(&request->coresight);
	close_p(&request->cut.dir_fd);
	close_p(&request->cut.part_fd);
	segment_cut_done(&request->cut);
	free(request->session);
	free(request->reason);
	free(request->detail);
	free(request);
}

static void answer(struct session *s, int result, const char *path, const struct fault *why)
{
	struct snapshot_request *request = s->requests;

	s->requests = request->next;
	s->answered = request;
	request->done(request->userdata, result, path, why);
	s->answered = NULL;
	request_free(request);
}

void session_drop_snapshots(struct session *s)
{
	struct fault why;

	while (s->requests) {
		(void)fault_set(&why, -ECANCELED, "session %s has ended", s->name);
		answer(s, why.error, NULL, &why);
	}
}

bool session_snapshots_busy(const struct session *s)
{
	unsigned waiting = 0;

	for (const struct snapshot_request *r = s->requests; r; r = r->next)
		if (!r->post || ++waiting >= POSTS_MAX)
			return true;
	return false;
}

static bool is_word(const char *reason)
{
	return *reason && strlen(reason) <= 28 &&
	       strspn(reason, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(reason);
}

static int on_post(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	for (struct snapshot_request *r = s->requests; r; r = r->next)
		if (r->post == source)
			r->post = sd_event_source_disable_unref(r->post);
	session_advance(s);
	return 0;
}

/* @cut: its texts are copied */
static int enqueue(struct session *s, const struct segment_cut *cut, uint64_t post_usec,
		   session_snapshot_done_t done, void *userdata)
{
	struct snapshot_request *request, **end = &s->requests;
	int r = 0;

	if (s->state != SESSION_RECORDING || s->stop_wanted)
		return -ENOTCONN;
	if (!is_word(cut->reason) || cut->from_usec > cut->to_usec)
		return -EINVAL;
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	request->cut = *cut;
	request->cut.dir_fd = request->cut.part_fd = -EBADF;
	request->cut.session = request->session = strdup(cut->session ? cut->session : s->name);
	request->cut.reason = request->reason = strdup(cut->reason);
	request->cut.detail = request->detail = cut->detail ? strdup(cut->detail) : NULL;
	if (!request->session || !request->reason || (cut->detail && !request->detail))
		r = -ENOMEM;
	else if (post_usec > 0)
		r = sd_event_add_time_relative(s->daemon->event, &request->post, CLOCK_MONOTONIC,
					       post_usec, 0, on_post, s);
	if (r < 0) {
		request_free(request);
		return r;
	}
	request->done = done;
	request->userdata = userdata;
	while (*end)
		end = &(*end)->next;
	*end = request;
	session_advance(s);
	return 0;
}

/* What follows the word, as a line of the file's text; *@ret is NULL if nothing does */
static int detail_of(const char *reason, char **ret)
{
	const char *text = strchr(reason, ' ');
	size_t n;

	*ret = NULL;
	if (!text)
		return 0;
	text += strspn(text, " ");
	n = strlen(text);
	if (n > DETAIL_MAX || escape_plain(text, n, false) != n || memchr(text, '\t', n))
		return -EINVAL;
	if (asprintf(ret, "for: %s\n", text) >= 0)
		return 0;
	*ret = NULL;
	return -ENOMEM;
}

int session_request_cut(struct session *s, const struct segment_cut *what, const char *reason,
			session_snapshot_done_t done, void *userdata)
{
	_cleanup_free_ char *detail = NULL, *word = NULL;
	struct segment_cut cut = *what;
	int r = detail_of(reason, &detail);

	if (r < 0)
		return r;
	word = strndup(reason, strcspn(reason, " "));
	if (!word)
		return -ENOMEM;
	cut.reason = word;
	cut.detail = detail;
	return enqueue(s, &cut, 0, done, userdata);
}

int session_snapshot(struct session *s, uint64_t from_usec, uint64_t to_usec, const char *reason,
		     session_snapshot_done_t done, void *userdata)
{
	const struct segment_cut what = {.from_usec = from_usec,
					 .to_usec = to_usec,
					 .trigger_usec = now_usec(CLOCK_REALTIME)};

	return session_request_cut(s, &what, reason, done, userdata);
}

int session_snapshot_coresight(struct session *s, uint64_t from_usec, uint64_t to_usec,
			       const char *reason, session_snapshot_done_t done, void *userdata)
{
	const struct segment_cut what = {
		.from_usec = from_usec,
		.to_usec = to_usec,
		.trigger_usec = now_usec(CLOCK_REALTIME),
		.coresight = true,
	};

	return session_request_cut(s, &what, reason, done, userdata);
}

int session_take_part(struct session *s, char ret_boot_id[static 33])
{
	memcpy(ret_boot_id, s->answered->cut.boot_id, 33);
	return TAKE_FD(s->answered->cut.part_fd);
}

void session_shape(const struct session *s, struct together_shape *ret)
{
	*ret = (struct together_shape){
		.name = s->name,
		.clock = s->config->trace.clock,
		.subbuf_size = instance_subbuf_size(s->instance),
		.n_cpus = instance_n_cpus(s->instance),
	};
}

const char *session_coresight_name(const struct session *s, const struct fault **ret_why)
{
	*ret_why = &s->answered->coresight.why;
	return s->answered->coresight.name;
}

/* Nobody waits for it: the log says what became of it, and those who listen are told */
static void on_triggered(void *userdata, int result, const char *path, const struct fault *why)
{
	struct session *s = userdata;

	if (result < 0) {
		(void)log_full(result == -ENODATA ? LOG_WARNING : LOG_ERR, s->name,
			       MESSAGE_SNAPSHOT, result, "snapshot failed: %s", why->text);
		/* Nothing had been traced yet: the next one shall not be refused over that */
		if (result == -ENODATA)
			trigger_limit_give_back(&s->limit);
		return;
	}
	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0, "snapshot %s", path);
	daemon_snapshot_finished(s->daemon, s->name, path);
}

static bool too_many(struct session *s, const struct snapshot_config *config, const char *reason)
{
	if (trigger_limit_admit(&s->limit, config->burst, config->interval_usec,
				now_usec(CLOCK_MONOTONIC)))
		return false;
	if (s->limit.refused == 1) /* said once an interval */
		(void)log_full(LOG_WARNING, s->name, NULL, 0,
			       "snapshot trigger %s suppressed: more than Burst=%u in IntervalSec=",
			       reason, config->burst);
	return true;
}

int session_trigger(struct session *s, const struct snapshot_cause *cause)
{
	const struct snapshot_config *config;
	struct segment_cut cut = {
		.to_usec = UINT64_MAX,
		.reason = cause->reason,
		.detail = cause->detail,
		.trigger_usec = cause->time_usec > 0 ? cause->time_usec : now_usec(CLOCK_REALTIME),
	};
	int r;

	if (s->state != SESSION_RECORDING || s->stop_wanted)
		return -ENOTCONN;
	config = &s->config->snapshot;
	if (too_many(s, config, cause->reason))
		return -EBUSY;
	if (config->last_usec > 0)
		cut.from_usec = cut.trigger_usec - MIN(cut.trigger_usec, config->last_usec);
	r = enqueue(s, &cut, config->post_usec, on_triggered, s);
	/* Under way by now: events are being overwritten */
	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0, "snapshot trigger %s%s%.*s",
		       cause->reason, cause->detail ? ", " : "",
		       cause->detail ? (int)strcspn(cause->detail, "\n") : 0,
		       cause->detail ? cause->detail : "");
	return r;
}

/* The first that need not wait becomes the first of all; false: there is none */
static bool find_ready(struct session *s)
{
	for (struct snapshot_request **at = &s->requests, *r; (r = *at); at = &r->next) {
		if (r->post && !s->stop_wanted) /* a stop cuts PostSec= short */
			continue;
		*at = r->next;
		r->next = s->requests;
		s->requests = r;
		return true;
	}
	return false;
}

/* Begin with the first that waits, if any */
bool session_begin_snapshot(struct session *s)
{
	const struct snapshot_config *config = &s->config->snapshot;

	if (s->copying || !find_ready(s))
		return false;
	s->requests->coresight.wanted =
		!s->requests->cut.is_part && (s->requests->cut.coresight || config->coresight);
	session_snapshot_limits(s, &s->requests->cut.limits);
	if (s->requests->cut.parts) {
		session_start_job(s, STEP_CUTTING);
		return true;
	}
	if (s->flight) {
		session_begin_capture(s, s->requests->cut.from_usec, s->requests->cut.to_usec);
		return true;
	}
	s->step = STEP_FLUSHING;
	(void)drain_post(&s->drain, WORKER_FLUSH);
	return true;
}

/* What can only be done before the session goes on; the rest is label_file()'s */
static bool is_whole(const struct session *s, const struct segment_cut *cut)
{
	return s->flight && !cut->parts;
}

static void label_file(struct snapshot_request *request)
{
	if (request->cut.is_part)
		return;
	segment_label(&request->cut);
	coresight_job_publish(&request->coresight, request->cut.name, &request->cut.limits);
}

int session_run_cut(void *userdata)
{
	struct session *s = userdata;
	struct snapshot_request *request = s->requests;
	int r;

	r = store_open_dir(s->dir_fd, "snapshot", &request->cut.dir_fd, &s->segment.failure);
	if (r >= 0 && request->coresight.wanted)
		coresight_job_collect(&request->coresight, request->cut.dir_fd,
				      request->cut.trigger_usec, request->reason);
	if (r >= 0 && !is_whole(s, &request->cut))
		return segment_cut_begin(&s->segment, &request->cut);
	if (r >= 0)
		r = flight_export(s->flight, &s->segment, &request->cut);
	flight_drop(s->flight);
	if (r >= 0)
		label_file(request);
	return r;
}

/* What is there, or why not. That a machine has none is said once. */
static void report_coresight(struct session *s)
{
	const struct coresight_job *job = &s->requests->coresight;

	if (!job->wanted)
		return;
	STRV_FOREACH (note, job->notes)
		if (job->name[0])
			(void)log_full(LOG_NOTICE, s->name, NULL, 0, "CoreSight: %s", *note);
	if (job->name[0] || (job->why.error == -ENODEV && s->coresight_said))
		return;
	s->coresight_said |= job->why.error == -ENODEV;
	(void)log_full(job->why.error == -ENODEV ? LOG_NOTICE : LOG_WARNING, s->name, NULL,
		       job->why.error, "snapshot without CoreSight: %s", job->why.text);
}

static void finish(struct session *s, int result, struct fault *why)
{
	const struct segment_cut *cut = &s->requests->cut;
	_cleanup_free_ char *path = NULL;

	if (cut->complaint.error < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, cut->complaint.error, "%s",
			       cut->complaint.text);
	if (cut->evicted_files > 0)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
			       "retention removed %u old snapshots, %llu bytes", cut->evicted_files,
			       (unsigned long long)cut->evicted_bytes);
	if (result >= 0 && cut->report.left_out_files > 0)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
			       "%u segments of that time are left out: a snapshot is of one boot, "
			       "one clock and one size of sub-buffers",
			       cut->report.left_out_files);
	if (result >= 0 && !cut->is_part)
		session_note_snapshots(s, cut->kept_files, cut->kept_bytes);
	if (result >= 0 && !cut->is_part &&
	    asprintf(&path, "%s/%s/snapshot/%s", s->daemon->options.state_dir, s->name, cut->name) <
		    0)
		result = fault_errno(why, -ENOMEM, "cannot name the snapshot");
	if (result >= 0)
		report_coresight(s);
	answer(s, result, path, why);
	session_file_is_made();
	/* Nothing else looks after a flight session's instance */
	if (s->flight)
		(void)session_check_instance(s);
}

/* Thread: job. The session goes on meanwhile: its next segment, its syncs. */
static int run_copy(void *userdata)
{
	struct session *s = userdata;
	struct snapshot_request *request = s->requests;
	int r = segment_cut_copy(&request->cut, &request->why);

	if (r >= 0)
		label_file(request);
	return r;
}

static void set_copying(struct session *s, bool copying)
{
	s->copying = copying;
	atomic_store(&s->segment.held_open, copying);
}

static void on_copied(void *userdata, int result)
{
	struct session *s = userdata;
	struct fault why = s->requests->why;

	set_copying(s, false);
	finish(s, result, &why);
	session_advance(s);
}

void session_cut_done(struct session *s, int result)
{
	if (result >= 0 && !is_whole(s, &s->requests->cut)) {
		result = job_start(s->daemon->event, run_copy, on_copied, s);
		set_copying(s, result >= 0);
		if (s->copying)
			return;
		(void)fault_errno(&s->segment.failure, result, "cannot start a thread");
	}
	finish(s, result, &s->segment.failure);
}
