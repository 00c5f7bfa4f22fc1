/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace.dat that is being recorded: laid out so that any reader finds a valid file at every
 * moment (DESIGN.md section 4). Each CPU has a region far from the next in a sparse file of
 * constant size; what grows is the sizes in the CPU table, written by the recorder's workers.
 *
 * Owner: the session. The functions may run on any thread, one at a time a file; the workers write
 * data and sizes meanwhile, through the fds.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "formats/live-block.h"
#include "writer/metadata.h"
#include "writer/own-content.h"
#include "writer/storage-config.h"
#include "writer/task-names.h"

#define TRACE_FILE_CPUSTAT_ROOM 640 /* bytes reserved for each CPU's statistics */

struct trace_file;

struct trace_file_params {
	struct metadata_source source;
	struct symbols *symbols;
	unsigned n_cpus;
	unsigned subbuf_size;	/* bytes */
	uint64_t max_file_size; /* bytes of data, all CPUs together */
	uint64_t slack;		/* bytes a region may get beyond that: the ring buffer's */
	enum storage_direct direct;
	size_t names_room; /* bytes reserved for task names */
	const char *clock; /* the instance's trace_clock file: "local [mono]\n" */
	bool has_date;
	int64_t date_usec; /* realtime minus the instance's clock */
	uint8_t boot_id[16];
	struct own_content own; /* the boot of its clocks is boot_id */
	/* For a file that is written in one go, and never finished like a segment: */
	const uint64_t *rooms; /* [n_cpus]: bytes of each region, one behind the other; or NULL */
	const char *note;      /* text that explains the file, or NULL */
	const char *uname;     /* of the machine it is from; NULL: this one */
};

/* One CPU's place in the file; what the recorder needs as plain values */
struct trace_file_region {
	int data_fd; /* O_DIRECT where possible */
	int buffered_fd;
	uint64_t offset;
	uint64_t room;
	uint64_t size;	  /* bytes there (at adoption) */
	uint64_t size_at; /* file offset of the 8-byte size */
};

/**
 * trace_file_create() - begin a file, valid and empty of data
 * @name: made as ".NAME.new"; trace_file_publish() gives it its name
 * Return: 0 or negative errno (-ENOSPC …) with @why set; nothing is left behind then.
 */
int trace_file_create(int dir_fd, const char *name, const struct trace_file_params *params,
		      struct trace_file **ret, struct fault *why);

/**
 * trace_file_publish() - rename ".NAME.new" to NAME
 * @replace: put it in the place of an existing NAME; else that is an error
 */
int trace_file_publish(int dir_fd, const char *name, bool replace, struct fault *why);

/**
 * trace_file_open() - take up a file that an earlier process left unfinished
 * @direct: as in params
 * Sizes are those recorded; recovery corrects them with trace_file_set_size().
 * Return: 0, -EBADMSG if it is no live file of ours, -ENODATA if it ends before its first region,
 * or negative errno; @why names the reason.
 */
int trace_file_open(int dir_fd, const char *name, enum storage_direct direct,
		    struct trace_file **ret, struct fault *why);

/* Where it is on its way from sparse to dense: an enum live_phase */
unsigned trace_file_phase(const struct trace_file *file);
unsigned trace_file_n_cpus(const struct trace_file *file);
unsigned trace_file_subbuf_size(const struct trace_file *file);
uint64_t trace_file_trace_id(const struct trace_file *file);
const struct live_block *trace_file_live_block(const struct trace_file *file);
/* Was it shorter than it had been made when it was opened? Its size is right again. */
bool trace_file_was_cut(const struct trace_file *file);
/* Bytes before the first region; bytes on the disk in all, preallocation too */
uint64_t trace_file_header_size(const struct trace_file *file);
uint64_t trace_file_disk_bytes(const struct trace_file *file);
bool trace_file_is_direct(const struct trace_file *file);
void trace_file_region(const struct trace_file *file, unsigned cpu, struct trace_file_region *ret);

/**
 * trace_file_set_size() - correct a CPU's size; bytes beyond it become a hole again
 */
int trace_file_set_size(struct trace_file *file, unsigned cpu, uint64_t size);

/**
 * trace_file_read_size() - a CPU's size as readers see it now
 */
int trace_file_read_size(const struct trace_file *file, unsigned cpu, uint64_t *ret);

/**
 * trace_file_write_names() - replace the task names
 * Who reads them in that moment may see half of a line, where the file system's writes are not
 * atomic.
 * @text: exactly trace_file_names_room() bytes
 */
int trace_file_write_names(struct trace_file *file, const char *text);
size_t trace_file_names_room(const struct trace_file *file);

/**
 * trace_file_write_cpustat() - replace a CPU's statistics
 * @text: lines; cut if longer than TRACE_FILE_CPUSTAT_ROOM - 1
 */
int trace_file_write_cpustat(struct trace_file *file, unsigned cpu, const char *text);

/**
 * trace_file_share() - let a new file have its sections, where they are those of another file, in
 * the same blocks of the disk Nothing happens where the file system cannot, or the sections differ.
 * Whole blocks only, up to the task names. Both files wait until it is done, so first sync the new
 * one; it need not be synced for it again, as both places on the disk hold the same.
 */
void trace_file_share(struct trace_file *file, const struct trace_file *other);

/**
 * trace_file_add_clock() - one more reading of the clocks
 * On the disk with the next sync. Return: 0, also for a file that has no room for any, or negative
 * errno.
 */
int trace_file_add_clock(struct trace_file *file, const struct own_clock *reading);

/**
 * trace_file_write_sheds() - add to which events the file says were not recorded for a while
 * @ended: by the trace's clock: what goes on in the file and is not in @sheds ended there, an
 * earlier process having switched it off; 0: there is none
 * Return: 0, also if the file has no room for it, or negative errno.
 */
int trace_file_write_sheds(struct trace_file *file, const struct own_sheds *sheds, uint64_t ended);

/**
 * trace_file_write_tasks() - who those tasks are that are new since this was called last
 * On the disk with the next sync. Return: 0, also for a file that has no room for them, or negative
 * errno.
 */
int trace_file_write_tasks(struct trace_file *file, struct task_names *names);

/* Bytes that they take */
uint32_t trace_file_tasks_used(const struct trace_file *file, uint32_t *ret_room);

/**
 * trace_file_sync() - make what is recorded so far safe from a power cut
 * Data first (fdatasync), then a note of the sizes in the live block.
 */
int trace_file_sync(struct trace_file *file);

/**
 * trace_file_is_unsure() - has a sync of data in the page cache failed?
 * trace_file_take_unsure() - the same, but true once only
 * What was not synced by then may or may not be on the disk, whatever later syncs say: they no
 * longer note sizes. Thread: that of the syncs, or between them.
 */
bool trace_file_is_unsure(const struct trace_file *file);
bool trace_file_take_unsure(struct trace_file *file);

/**
 * trace_file_date() - its DATE option: realtime minus the clock, microseconds
 * Return: false if it has none, as its clock counts no time.
 */
bool trace_file_date(const struct trace_file *file, int64_t *ret);

/**
 * trace_file_first_time() - realtime of the first data, microseconds; 0 when there is none or the
 * clock counts no time
 */
uint64_t trace_file_first_time(const struct trace_file *file);

/**
 * trace_file_complete() - nothing more will be written: give unneeded preallocation back, sync
 */
int trace_file_complete(struct trace_file *file);

/* Closes; the file stays as it is. NULL is fine. */
void trace_file_free(struct trace_file *file);

DEFINE_CLEANUP(struct trace_file *, trace_file_free)
