/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first bytes of a trace.dat in the making. Any thread, one a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "writer/options.h"
#include "writer/probes.h"
#include "writer/sections.h"
#include "writer/store.h"
#include "writer/trace-file-internal.h"

#define REGION_MIN (4 * MIB)

#define STREAM_BUFFER (64 * KIB) /* a system call costs more than it to fill */

/* Names, the CPU count, options, table and clock */
static int put_tables(FILE *out, struct trace_file *file, const struct trace_file_params *params,
		      const struct options *o)
{
	struct sections_places places;
	int r = sections_put_tables(out, "", 0, params->names_room, params->n_cpus, o,
				    params->clock, &places);

	if (r < 0)
		return r;
	file->names_at = places.names_at;
	file->names_room = places.names_room;
	for (unsigned cpu = 0; cpu < params->n_cpus; cpu++) {
		file->cpustat_at[cpu] = places.options_at + o->cpustat_at[cpu];
		file->cpustat_room[cpu] = TRACE_FILE_CPUSTAT_ROOM;
	}
	file->table_at = places.table_at;
	file->live_at = round_up((uint64_t)ftello(out), LIVE_BLOCK_ALIGN);
	return 0;
}

/* One behind the other: it is known how large they will be */
static int place_dense(struct trace_file *file, const struct trace_file_params *params,
		       struct fault *why)
{
	uint64_t align = MAX((uint64_t)REGION_ALIGN, (uint64_t)params->subbuf_size);
	uint64_t at = round_up(file->live_at + 2 * live_block_size(file->n_cpus), align);

	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++) {
		file->region_at[cpu] = at;
		at = round_up(at + params->rooms[cpu], align);
	}
	file->end = at;
	file->live->phase = LIVE_DENSE;
	file->live->unit = (uint32_t)align;
	return ftruncate(file->fd, (off_t)at) < 0
		       ? fault_errno(why, -errno, "cannot set the file's size")
		       : 0;
}

/* Where the regions go: as far apart as wanted, or as the file system's largest file allows */
static int place_regions(struct trace_file *file, const struct trace_file_params *params,
			 struct fault *why)
{
	uint64_t align = MAX((uint64_t)REGION_ALIGN, (uint64_t)params->subbuf_size);
	uint64_t first = round_up(file->live_at + 2 * live_block_size(file->n_cpus), align);
	uint64_t wanted = MIN(params->max_file_size, (uint64_t)INT64_MAX / 2) + params->slack;
	uint64_t stride = round_up(MAX(wanted, REGION_MIN), align);

	for (;;) {
		uint64_t end;

		errno = EFBIG; /* of numbers that are too large to ask for */
		if (stride < params->slack || stride < REGION_MIN)
			return fault_set(why, -EFBIG,
					 "this file system's largest file is too small for %u CPUs",
					 file->n_cpus);
		if (!__builtin_mul_overflow(stride, file->n_cpus, &end) &&
		    end < INT64_MAX - first && ftruncate(file->fd, (off_t)(first + end)) >= 0) {
			file->end = first + end;
			break;
		}
		if (errno != EFBIG && errno != EINVAL)
			return fault_errno(why, -errno, "cannot set the file's size");
		stride = round_up(stride / 2, align);
	}
	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++)
		file->region_at[cpu] = first + cpu * stride;
	return 0;
}

static int write_offsets(struct trace_file *file)
{
	int r = 0;

	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++)
		r = trace_file_write_offset(file, cpu, file->region_at[cpu]);
	return r;
}

static int fill(struct trace_file *file, const struct trace_file_params *params, struct fault *why)
{
	_cleanup_free_ char *probes = NULL;
	struct options_params wanted = {
		.n_cpus = params->n_cpus,
		.cpustat_room = TRACE_FILE_CPUSTAT_ROOM,
		.clock = params->clock,
		.has_date = params->has_date,
		.date_usec = params->date_usec,
		.trace_id = file->live->trace_id,
		.note = params->note,
		.uname = params->uname,
	};
	_cleanup_(options_done) struct options options = {0};
	_cleanup_free_ char *buffer = malloc(STREAM_BUFFER);
	_cleanup_fclose_ FILE *out = NULL; /* before its buffer */
	int fd, r;

	r = probes_read(params->source.tracing_fd, params->source.systems, &probes);
	if (r < 0)
		return fault_errno(why, r, "cannot read dynamic_events of tracefs");
	wanted.probes = probes;
	r = options_make(&wanted, &options);
	if (r < 0)
		return r;
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		r = -errno;
		close_p(&fd);
		return r;
	}
	if (buffer)
		(void)setvbuf(out, buffer, _IOFBF, STREAM_BUFFER);
	r = metadata_write(out, &params->source, params->subbuf_size, params->symbols, why);
	if (r >= 0)
		r = put_tables(out, file, params, &options);
	if (fflush(out) != 0 && r >= 0)
		r = -errno;
	if (r < 0)
		return r;
	r = params->rooms ? place_dense(file, params, why) : place_regions(file, params, why);
	if (r >= 0)
		r = write_offsets(file);
	return r < 0 ? r : live_block_write(file->fd, file->live_at, file->live);
}

int trace_file_create(int dir_fd, const char *name, const struct trace_file_params *params,
		      struct trace_file **ret, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = trace_file_alloc(params->n_cpus);
	char tmp[STORE_NAME_SIZE + 8];
	int r;

	if (!file)
		return fault_errno(why, -ENOMEM, "cannot create %s", name);
	file->subbuf_size = params->subbuf_size;
	file->has_date = params->has_date;
	file->date_usec = params->date_usec;
	file->live = live_block_new(params->n_cpus, params->boot_id, options_new_trace_id());
	if (!file->live)
		return fault_errno(why, -ENOMEM, "cannot create %s", name);
	file->fd = store_create_new(dir_fd, name);
	if (file->fd < 0)
		return fault_errno(why, file->fd, "cannot create %s", name);
	if (why)
		why->error = 0;
	r = fill(file, params, why);
	store_new_name(name, tmp);
	if (r >= 0)
		r = trace_file_open_direct(file, dir_fd, tmp, params->direct, why);
	if (r < 0) {
		store_drop_new(dir_fd, name);
		return why && why->error ? r : fault_errno(why, r, "cannot create %s", name);
	}
	*ret = TAKE_PTR(file);
	return 0;
}

int trace_file_publish(int dir_fd, const char *name, bool replace, struct fault *why)
{
	int r = store_publish_new(dir_fd, name, replace);

	return r < 0 ? fault_errno(why, r, "cannot rename .%s.new to %s", name, name) : 0;
}
