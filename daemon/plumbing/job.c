/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/plumbing/job.h"

struct job {
	pthread_t thread;
	int done_fd;
	sd_event_source *source;
	job_work_t work;
	job_done_t done;
	void *userdata;
	int result;
	struct fault why;
};

static void *job_main(void *userdata)
{
	struct job *job = userdata;
	uint64_t one = 1;

	(void)pthread_setname_np(pthread_self(), "flyrec-job");
	job->result = job->work(job->userdata, &job->why);
	(void)!write(job->done_fd, &one, sizeof(one));
	return NULL;
}

static void job_free(struct job *job)
{
	sd_event_source_disable_unref(job->source);
	close_p(&job->done_fd);
	free(job);
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct job *job = userdata;

	(void)pthread_join(job->thread, NULL);
	job->done(job->userdata, job->result, &job->why);
	job_free(job);
	return 0;
}

int job_start(sd_event *event, job_work_t work, job_done_t done, void *userdata)
{
	struct job *job = calloc(1, sizeof(*job));
	sigset_t all, old;
	int r;

	if (!job)
		return -ENOMEM;
	job->work = work;
	job->done = done;
	job->userdata = userdata;
	job->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = job->done_fd < 0
		    ? -errno
		    : sd_event_add_io(event, &job->source, job->done_fd, EPOLLIN, on_done, job);
	if (r >= 0) {
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &old);
		r = -pthread_create(&job->thread, NULL, job_main, job);
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (r < 0)
		job_free(job);
	return r;
}
