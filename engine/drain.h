/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A session's pumps and workers as one thing: made from an instance and a file, pointed at the next
 * file, ended. Wires recorder/ and writer/ together through plain values. Main thread.
 */
#pragma once

#include "recorder/instance.h"
#include "recorder/worker.h"
#include "writer/recover.h"
#include "writer/trace-file.h"

struct drain;

/*
 * What holds the data that a drain has in hand, and outlives it: kept somewhere it is there for the
 * next drain_open(), in this process or another. -EBADF: none.
 */
struct drain_fd {
	int fd;
	bool old; /* it came from an earlier drain; the caller's */
};

/* To be read. A worker's has a number of its own; each CPU had one in earlier versions. */
struct drain_pipe {
	struct drain_fd end;
	bool of_cpu;
	unsigned number;
};

#define DRAIN_PIPES_MAX \
	512U /* numbers of workers' pipes, to keep those of more than are used now */

struct drain_fds {
	struct drain_fd slots; /* memfd, a partial sub-buffer of each CPU */
	struct drain_fd notes; /* memfd, whose data is in which pipe, and what was read */
	bool unused;	       /* nothing was ever drained into the new pipes */
	size_t n_pipes;
	struct drain_pipe *pipes; /* drain_fds_add_pipe() */
	unsigned n_cpus;
	struct drain_fd traces[]; /* trace_pipe_raw */
};

/* All -EBADF; NULL: no memory */
struct drain_fds *drain_fds_new(unsigned n_cpus);
int drain_fds_add_pipe(struct drain_fds *fds, const struct drain_pipe *pipe);
/* Closes; NULL is fine */
void drain_fds_free(struct drain_fds *fds);

/**
 * drain_new() - one that drains nothing yet: of all that can be asked it says 0, or "done"
 */
int drain_new(struct drain **ret);

/* Must be closed. NULL is fine. */
void drain_free(struct drain *drain);

/**
 * drain_open() - take over fds and memory, and make what is missing
 * @fds: of as many CPUs as the instance has; consumed on success, on error all fds in it are still
 * there. An old memfd that does not fit is replaced, and is not "old" then.
 * @n_workers: that drain_run() starts, each with a pipe
 */
int drain_open(struct drain *drain, struct instance *instance, struct drain_fds *fds,
	       unsigned n_workers, struct fault *why);

/* Once open: its fds, which stay the drain's */
const struct drain_fds *drain_fds(const struct drain *drain);

/**
 * drain_pop_pipe() - of the pipes of earlier drains one that holds nothing that is wanted any more
 * It is closed. Any time while it is open. Return: is there one?
 */
bool drain_pop_pipe(struct drain *drain, struct drain_pipe *ret);

/**
 * drain_read() - from now on take so many sub-buffers of a CPU by copy after each wake-up, and by
 * splice only what a flush asks for
 * @quota: as many as are full then; 0: all by splice, as in the beginning
 */
void drain_read(struct drain *drain, unsigned quota);
bool drain_reads(const struct drain *drain);

/**
 * drain_hand() - what an earlier drain has taken by copy, and has written to a file maybe; before
 * drain_run()
 * @ret: the drain's
 */
void drain_hand(const struct drain *drain, struct recover_hand *ret);

/* May something be lost that an earlier drain had in hand of this CPU? Before drain_run(). */
bool drain_lost(const struct drain *drain, unsigned cpu);

/**
 * drain_run() - start the threads that move data into @file
 * @max_bytes: of all CPUs together until @notify_fd is written
 * @chunk_max: preallocation a CPU at most, bytes
 */
int drain_run(struct drain *drain, struct trace_file *file, uint64_t max_bytes, uint64_t chunk_max,
	      int notify_fd, struct fault *why);

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

unsigned drain_n_cpus(const struct drain *drain);
unsigned drain_subbuf_size(const struct drain *drain);
/* Of the file that all workers are in, borrowed; -EBADF: none yet */
int drain_file_fd(const struct drain *drain);

/* One CPU's, as they are now */
struct drain_counts {
	uint64_t published;	/* bytes in the file that readers may rely on */
	uint64_t total_bytes;	/* moved since drain_open() */
	uint64_t subbufs;	/* likewise */
	uint64_t dropped_bytes; /* taken out of the ring buffer and not written */
	uint64_t capacity;	/* bytes that it has in hand at most */
	bool behind;		/* the last flush left something in the ring buffer */
	const char *stats;	/* the kernel's text when the last file ended */
};

void drain_cpu(const struct drain *drain, unsigned cpu, struct drain_counts *ret);

/* Bytes of a CPU in the file, those that could not be published too; while the workers rest */
uint64_t drain_written(const struct drain *drain, unsigned cpu);

/* Count as dropped what somebody else has found to be lost; beside the workers */
void drain_add_dropped(struct drain *drain, unsigned cpu, uint64_t bytes);

/* Bytes until the limit of drain_run() or drain_retarget() is reached; negative: beyond it */
int64_t drain_bytes_left(const struct drain *drain);

/* Bytes in hand and in no file yet, of all CPUs; before the workers start */
uint64_t drain_pending(const struct drain *drain);

/* They never get into one: count them as lost; when the workers are done */
void drain_drop_pending(struct drain *drain);

/* Bytes moved so far, of all CPUs */
uint64_t drain_total_bytes(const struct drain *drain);

/* Nanoseconds of CPU time that its threads have used since drain_new() */
uint64_t drain_cpu_nsec(const struct drain *drain);

/* The first trouble of any CPU: negative errno, or 0 */
int drain_trouble(const struct drain *drain);

/* Is any region full? Has somebody mapped a CPU? */
bool drain_full(const struct drain *drain);
bool drain_mapped(const struct drain *drain);

/**
 * drain_close() - end the threads; as after drain_new() then
 * @ret_fds: those that drain_open() took or made; NULL: nobody wants them, close them. Not set
 * unless it was open.
 */
void drain_close(struct drain *drain, struct drain_fds **ret_fds);
