/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Snapshots of a session: requests wait in a queue, each is a flush by the workers and then a job.
 * Main thread; session_run_cut() runs as the job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "daemon/session-internal.h"
#include "writer/store.h"

struct snapshot_request {
	struct snapshot_request *next;
	struct segment_cut cut;
	char *reason;
	void (*done)(void *userdata, int result, const char *path, const struct fault *why);
	void *userdata;
};

static void answer(struct session *s, int result, const char *path, const struct fault *why)
{
	struct snapshot_request *request = s->requests;

	s->requests = request->next;
	request->done(request->userdata, result, path, why);
	close_p(&request->cut.dir_fd);
	free(request->reason);
	free(request);
}

void session_drop_snapshots(struct session *s)
{
	struct fault why;

	while (s->requests) {
		(void)fault_set(&why, -ECANCELED, "session %s has ended", s->name);
		answer(s, why.error, NULL, &why);
	}
}

static bool is_word(const char *reason)
{
	return *reason && strlen(reason) <= 28 &&
	       strspn(reason, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(reason);
}

int session_snapshot(struct session *s, uint64_t from_usec, uint64_t to_usec, const char *reason,
		     void (*done)(void *userdata, int result, const char *path,
				  const struct fault *why),
		     void *userdata)
{
	struct snapshot_request *request, **end = &s->requests;

	if (s->state != SESSION_RECORDING || s->stop_wanted)
		return -ENOTCONN;
	if (!is_word(reason) || from_usec > to_usec)
		return -EINVAL;
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	request->reason = strdup(reason);
	if (!request->reason) {
		free(request);
		return -ENOMEM;
	}
	request->done = done;
	request->userdata = userdata;
	request->cut = (struct segment_cut){
		.dir_fd = -EBADF,
		.from_usec = from_usec,
		.to_usec = to_usec,
		.reason = request->reason,
		.session = s->name,
		.trigger_usec = store_now_usec(),
	};
	while (*end)
		end = &(*end)->next;
	*end = request;
	session_advance(s);
	return 0;
}

/* Begin with the first that waits, if any */
bool session_begin_snapshot(struct session *s)
{
	const struct snapshot_config *config = &s->config->snapshot;

	if (!s->requests)
		return false;
	s->requests->cut.limits = (struct retention_limits){
		.max_use = config->max_use == STORAGE_DEFAULT ? s->segment.limits.max_use
							      : config->max_use,
		.max_files = config->max_files,
		.max_age_usec = config->max_retention_usec,
	};
	s->step = STEP_FLUSHING;
	(void)drain_post(&s->drain, WORKER_FLUSH);
	return true;
}

/* For those who list files without opening them; not every file system takes it */
static void label(const struct session *s, const struct snapshot_request *request)
{
	_cleanup_close_ int fd = -EBADF;
	char time[32];

	fd = openat(request->cut.dir_fd, request->cut.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	(void)snprintf(time, sizeof(time), "%llu", (unsigned long long)request->cut.trigger_usec);
	(void)fsetxattr(fd, "user.flyrec.session", s->name, strlen(s->name), 0);
	(void)fsetxattr(fd, "user.flyrec.reason", request->reason, strlen(request->reason), 0);
	(void)fsetxattr(fd, "user.flyrec.time_usec", time, strlen(time), 0);
	(void)fsetxattr(fd, "user.flyrec.boot_id", s->daemon->boot_id_text,
			strlen(s->daemon->boot_id_text), 0);
}

int session_run_cut(void *userdata)
{
	struct session *s = userdata;
	struct snapshot_request *request = s->requests;
	int r;

	r = store_open_dir(s->dir_fd, "snapshot", &request->cut.dir_fd, &s->segment.failure);
	if (r >= 0)
		r = segment_cut(&s->segment, &request->cut);
	if (r >= 0)
		label(s, request);
	return r;
}

void session_cut_done(struct session *s, int result)
{
	_cleanup_free_ char *path = NULL;

	if (result >= 0 && asprintf(&path, "%s/%s/snapshot/%s", s->daemon->options.state_dir,
				    s->name, s->requests->cut.name) < 0)
		result = fault_errno(&s->segment.failure, -ENOMEM, "cannot name the snapshot");
	answer(s, result, path, &s->segment.failure);
}
