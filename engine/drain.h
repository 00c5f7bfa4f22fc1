/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A session's pumps and workers as one thing: made from an instance and a file, pointed at the next
 * file, ended. Wires recorder/ and writer/ together through plain values. Main thread.
 */
#pragma once

#include <sys/uio.h>

#include "basic/parse.h"
#include "daemon/plumbing/fdstore.h"
#include "recorder/instance.h"
#include "recorder/worker.h"
#include "writer/trace-file.h"

struct drain {
	unsigned n_cpus;
	unsigned subbuf_size;
	struct pump *pumps;	  /* [n_cpus] */
	struct pump **order;	  /* [n_cpus], worker after worker */
	struct pump_target *next; /* [n_cpus], in the same order */
	struct worker **workers;  /* [n_workers] */
	unsigned n_workers;
	int slots_fd;
	char *slots; /* n_cpus sub-buffers */
	uint64_t chunk_max;
	struct cpu_list new_pipes; /* of CPUs whose pipe is not from the FD store */
	int file_fd;		   /* of the file that all workers are in, borrowed; main thread */
	_Atomic int64_t bytes_left;
};

void drain_init(struct drain *drain);

/**
 * drain_open() - the fds and memory: those that an earlier process left, or new ones
 * Everything goes into the FD store under the session's name.
 */
int drain_open(struct drain *drain, struct instance *instance, const char *session,
	       struct fdstore *store, struct fault *why);

/**
 * drain_run() - start @n_workers threads that move data into @file
 * @max_bytes: of all CPUs together until @notify_fd is written
 * @chunk_max: preallocation a CPU at most, bytes
 */
int drain_run(struct drain *drain, struct trace_file *file, unsigned n_workers, uint64_t max_bytes,
	      uint64_t chunk_max, int notify_fd, struct fault *why);

/**
 * drain_retarget() - ask the workers to go on in @file; drain_idle() tells when they all do
 */
int drain_retarget(struct drain *drain, struct trace_file *file, uint64_t max_bytes);
/* All of them do: file_fd is that of the next file */
void drain_retargeted(struct drain *drain);

/* Ask all workers for the same; drain_idle() tells when all have done it */
int drain_post(struct drain *drain, enum worker_request request);
bool drain_idle(const struct drain *drain);
void drain_flush(struct drain *drain);
/* From now on, or no longer, notify when a worker has done a flush: drain_flushed() tells when all
 * are */
void drain_tell_flushes(struct drain *drain, bool on);
bool drain_flushed(const struct drain *drain);
/* Notify once when a ring buffer next passes its watermark */
void drain_tell(struct drain *drain);
/* Nothing is taken any more until drain_flush() or drain_retarget() */
void drain_hold(struct drain *drain);

/* Bytes in hand and in no file yet, of all CPUs; before the workers start */
uint64_t drain_pending(const struct drain *drain);

/* They never get into one: count them as lost; when the workers are done */
void drain_drop_pending(struct drain *drain);

/* Bytes moved so far, of all CPUs */
uint64_t drain_total_bytes(const struct drain *drain);

/* The first trouble of any CPU: negative errno, or 0 */
int drain_trouble(const struct drain *drain);

/* Is any region full? Has somebody mapped a CPU? */
bool drain_full(const struct drain *drain);
bool drain_mapped(const struct drain *drain);

/**
 * drain_close() - end the threads, close the fds
 * @keep: leave what is in the FD store there (hand-over), and have it for another drain_open();
 * else it is taken out
 */
void drain_close(struct drain *drain, const char *session, struct fdstore *store, bool keep);
