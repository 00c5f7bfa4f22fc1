/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker is a thread that runs the pumps of some CPUs of one session: it sleeps in epoll until
 * a ring buffer passes its watermark (buffer_percent) or the main thread asks for something.
 *
 * The main thread owns the object. Requests are posted without waiting; the worker answers by
 * writing to the session's eventfd (notify_fd), and worker_done() tells. One request at a time,
 * flushes aside.
 *
 * A worker runs on any CPU. Kept on those that it drains, a byte costs 0.96 (sub-buffers of 16 KiB)
 * or 0.84 (4 KiB) of the CPU time; but a real-time task on such a CPU keeps it, and whoever is to
 * let it go, waiting: millions of events were lost in 6 of 6 runs on a busy machine, in 1 of 6
 * without. A recorder rather costs 4 % more.
 */
#pragma once

#include "recorder/pump.h"

enum worker_request {
	WORKER_RETARGET = 1, /* every pump goes on in its next target */
	WORKER_FLUSH,	     /* what there is now, partial sub-buffers too, into the file */
	WORKER_FINISH,	     /* drain to the end (tracing is off); a pump may still end up full */
	WORKER_LEAVE,	     /* empty pipes and slots, then take nothing more (hand-over) */
};

struct worker;

/**
 * worker_new() - start a thread
 * @pumps: initialised, with one staging and with targets; borrowed until worker_free(). Only the
 * worker touches them now.
 * @next: one target for each pump, read at WORKER_RETARGET; borrowed
 * @notify_fd: eventfd, written when a request is done, a region fills up, the session's
 *             bytes pass their limit, trouble begins or ends, or as worker_tell() says; borrowed
 * @bytes_left: shared by the session's workers: bytes until the segment has its size; a worker that
 *              takes it below zero notifies once
 */
int worker_new(struct pump **pumps, const struct pump_target *next, size_t n_pumps, int notify_fd,
	       _Atomic int64_t *bytes_left, struct worker **ret);

/* Post a request; -EBUSY while another one is not done. Never blocks. */
int worker_post(struct worker *worker, enum worker_request request);

/*
 * Take nothing out of the ring buffers until the next worker_flush() or WORKER_RETARGET; what is
 * being moved at this moment still goes. Requests are served as ever. Never blocks.
 */
void worker_hold(struct worker *worker);

/* Notify once when a ring buffer next passes its watermark */
void worker_tell(struct worker *worker);

/* Also look at partial sub-buffers, once, soon: all pumps are asked for all they have, and say in
 * pump->behind whether they gave it. Never blocks. */
void worker_flush(struct worker *worker);

/* From now on, or no longer, notify when a flush is done, whoever asked for it: one that is asked
 * for meanwhile would be waited for as well */
void worker_tell_flushes(struct worker *worker, bool on);

/* Is the last flush that was asked for done? */
bool worker_flushed(const struct worker *worker);

/* Is the last request done? */
bool worker_done(const struct worker *worker);

/* Nanoseconds of CPU time that the thread has used */
uint64_t worker_cpu_nsec(const struct worker *worker);

/**
 * worker_free() - end the thread, as soon as its current system call returns, and free
 * NULL is fine.
 */
void worker_free(struct worker *worker);
