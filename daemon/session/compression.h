/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compress=: a session's finished segments are compressed by a job beside its steps, one at a time
 * over all sessions, which the manager sees to. The job has all it needs itself: nothing waits for
 * it but a disk that is to be unmounted, and the end of flyrecd. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "writer/compress.h"

struct compress_work;

struct compression {
	struct compress_work *work;  /* job under way, or NULL */
	bool look;		     /* there may be a segment to compress */
	uint64_t retry_usec;	     /* monotonic: not before then */
	char **refused;		     /* names of segments that cannot be compressed; or NULL */
	struct compress_tally tally; /* of the directory, as the last job left it */
	struct fault failure;	     /* the last one, until a segment is compressed */
	bool behind_said;	     /* that retention is faster */
};

/* What a job works on, and who hears of it */
struct compression_order {
	sd_event *event;
	const char *session; /* its name, which stays as long as the session does */
	int dir_fd;	     /* STATE/NAME/record; duplicated */
	const struct retention_limits *limits;
	/* The session, unless it is gone by then */
	void (*compressed)(void *session_userdata, const struct compress_report *report);
	void *session_userdata;
	/* Then, in any case: another one may begin */
	void (*done)(void *userdata);
	void *userdata;
};

/**
 * compression_begin() - the session records, or with another configuration: as if there had been
 * nothing before
 */
void compression_begin(struct compression *c);

/* A segment has been finished */
void compression_look(struct compression *c);

/**
 * compression_start() - compress the next segment, if there may be one
 * Return: 1: a job is under way; 0: there is nothing to do; or negative errno.
 */
int compression_start(struct compression *c, const struct compression_order *order);

/* The job ends soon, with the segment as it was */
void compression_stop(struct compression *c);

/* The session goes; the job need not have ended */
void compression_leave(struct compression *c);

/* Retention has removed so many segments that were not compressed: said once */
void compression_note_removed(struct compression *c, const char *session, unsigned files);
