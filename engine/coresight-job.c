/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/strv.h"
#include "engine/coresight-job.h"
#include "recorder/coresight.h"

/* Tests have machines with CoreSight in directories */
static const char *sysroot(void)
{
	const char *path = secure_getenv("FLYREC_SYSROOT");

	return path ? path : "/";
}

static int collect(struct coresight_job *job, int root_fd)
{
	char ftrace[STORE_NAME_SIZE + 4];
	const struct coresight_request request = {
		.root_fd = root_fd,
		.dir_fd = job->dir.fd,
		.ftrace = ftrace,
		.description = "flyrec " PACKAGE_VERSION,
	};

	(void)snprintf(ftrace, sizeof(ftrace), "../%s", job->dat);
	return coresight_collect(&request, &job->notes, &job->why);
}

void coresight_job_collect(struct coresight_job *job, int dir_fd, uint64_t usec, const char *reason)
{
	_cleanup_close_ int root_fd = open(sysroot(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[STORE_NAME_SIZE];
	int r;

	if (root_fd < 0) {
		(void)fault_errno(&job->why, -errno, "%s: cannot open", sysroot());
		return;
	}
	r = store_snapshot_name(dir_fd, usec, reason, job->dat);
	if (r >= 0) {
		store_coresight_name(job->dat, name);
		r = new_dir_open(&job->dir, dir_fd, name, 0750);
	}
	if (r < 0)
		(void)fault_errno(&job->why, r, "cannot make its directory");
	else if (collect(job, root_fd) < 0)
		new_dir_done(&job->dir);
}

void coresight_job_publish(struct coresight_job *job, const char *dat,
			   const struct retention_limits *limits)
{
	struct retention_report report = {0};
	int parent_fd = job->dir.parent_fd;
	int r = strcmp(dat, job->dat) == 0 ? 0 : -ESTALE; /* else it tells of another file */

	if (!job->dir.temporary)
		return; /* why has been said */
	if (r >= 0)
		r = new_dir_publish(&job->dir);
	if (r < 0) {
		(void)fault_errno(&job->why, r, "cannot give its directory a name");
		return;
	}
	store_coresight_name(dat, job->name);
	/* what fails here has failed, and was told, after the snapshot itself a moment ago */
	(void)retention_apply(parent_fd, limits, &report, NULL);
}

void coresight_job_done(struct coresight_job *job)
{
	if (job->dir.name)
		new_dir_done(&job->dir);
	strv_free(job->notes);
	*job = (struct coresight_job){};
}
