/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The CoreSight snapshot that goes with a snapshot of a session: NAME.coresight beside NAME.dat.
 * Owner: the request; everything but coresight_job_done() on the thread of its job.
 */
#pragma once

#include "basic/new-dir.h"
#include "writer/retention.h"
#include "writer/store.h"

struct coresight_job {
	char name[STORE_NAME_SIZE]; /* of the directory; "": there is none */
	struct fault why;	    /* then: error and reason; -ENODEV: no CoreSight here */
	char **notes;		    /* what is not in it */
	struct new_dir dir;
	char dat[STORE_NAME_SIZE]; /* that it says it goes with */
};

/**
 * coresight_job_collect() - all that the sinks hold, under a temporary name
 * Before the snapshot itself is made: a sink holds microseconds, a ring buffer seconds.
 * @dir_fd: STATE/NAME/snapshot; @usec, @reason: what the snapshot's name will be made of
 */
void coresight_job_collect(struct coresight_job *job, int dir_fd, uint64_t usec,
			   const char *reason);

/**
 * coresight_job_publish() - the snapshot @dat is there: give the directory its name
 * @limits: of the snapshots; there is more to count now
 */
void coresight_job_publish(struct coresight_job *job, const char *dat,
			   const struct retention_limits *limits);

/* Frees; what was not published is gone */
void coresight_job_done(struct coresight_job *job);
