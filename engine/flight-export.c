/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From memory to the disk. Runs as a job; CPUs in parallel.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "engine/flight-internal.h"
#include "engine/parallel.h"
#include "recorder/kernel-text.h"
#include "recorder/ring-header.h"
#include "writer/store.h"

/* Names that the kernel's table can have, and as many threads again: 1 MiB and no more to write */
#define NAMES_ROOM_MAX MIB

struct export
{
	struct flight *flight;
	const struct file_plan *plan;
	const struct snapshot_order *order;
	struct snapshot_result *made;
	struct trace_file *file;
	int names_error;
};

static int write_chunk(struct trace_file_region *region, const char *data, size_t size, uint64_t at)
{
	int r = io_pwrite_all(region->data_fd, data, size, region->offset + at);

	if (r != -EINVAL || region->data_fd == region->buffered_fd)
		return r;
	/* Not with O_DIRECT after all */
	region->data_fd = region->buffered_fd;
	return io_pwrite_all(region->data_fd, data, size, region->offset + at);
}

/* All of it at once: faster, and a full disk shows before anything is written */
static int preallocate(const struct trace_file_region *region, uint64_t size)
{
	if (size == 0 || fallocate(region->buffered_fd, FALLOC_FL_KEEP_SIZE, (off_t)region->offset,
				   (off_t)size) >= 0)
		return 0;
	return errno == EOPNOTSUPP ? 0 : -errno;
}

/* What is in the buffer, which is a ring, from @at on */
struct filled {
	size_t at, waiting; /* sub-buffers */
	size_t total;	    /* room in use; more is behind it */
};

/* The kernel comes nearer: more memory, if all that is waiting is in one piece before it */
static int grow(struct flight *f, struct flight_cpu *c, struct filled *filled)
{
	size_t max = c->buffer_size / f->subbuf_size;
	int r = 0;

	while (filled->at == 0 && filled->waiting == filled->total && filled->total < max &&
	       flight_left(f, c) > 0 && !flight_is_ahead(f, c) && r >= 0) {
		size_t n = MIN(c->chunk, max - filled->total), more = 0;

		r = flight_fill(f, c, c->buffer + filled->total * f->subbuf_size, n, &more);
		filled->total += more;
		filled->waiting += more;
	}
	return r;
}

/* As soon as a chunk is on the disk its place is filled again */
static int write_chunks(struct export *e, struct flight_cpu *c, struct trace_file_region *region)
{
	struct flight *f = e->flight;
	struct filled filled = {.waiting = c->n, .total = c->n};
	size_t size = f->subbuf_size;
	int r = grow(f, c, &filled);

	c->first_nsec = c->n > 0 ? ring_header_time(c->buffer) : 0;
	while (filled.waiting > 0 && r >= 0) {
		size_t n = MIN(MIN(c->chunk, filled.waiting), filled.total - filled.at), more = 0;
		char *place = c->buffer + filled.at * size;

		r = write_chunk(region, place, n * size, c->written);
		if (r < 0)
			break;
		c->written += n * size;
		if (flight_left(f, c) > 0)
			r = flight_fill(f, c, place, n, &more);
		filled.waiting += more;
		filled.waiting -= n;
		filled.at = (filled.at + n) % filled.total;
		if (r >= 0)
			r = grow(f, c, &filled);
	}
	return r;
}

static int write_cpu(struct export *e, unsigned cpu)
{
	struct flight *f = e->flight;
	struct flight_cpu *c = &f->cpus[cpu];
	struct trace_file_region region;
	int r;

	trace_file_region(e->file, cpu, &region);
	r = preallocate(&region, (c->n + flight_left(f, c)) * f->subbuf_size);
	if (r >= 0)
		r = write_chunks(e, c, &region);
	if (r < 0)
		return flight_fault(f, r, "cannot write CPU %u's data", cpu);
	return 0;
}

/* Item 0: the task names, which wait for the kernel; the others are CPUs */
static int write_item(void *userdata, unsigned item)
{
	struct export *e = userdata;

	if (item > 0)
		return write_cpu(e, item - 1);
	e->names_error = file_plan_write_names(e->plan, e->file, true);
	return 0;
}

/* From when on all CPUs have all that was recorded, or that was asked for */
static uint64_t complete_from(const struct flight *f)
{
	uint64_t from = f->from_nsec;

	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++) {
		const struct flight_cpu *c = &f->cpus[cpu];

		if (c->written > 0 && c->has_stats && c->stats.overrun > 0)
			from = MAX(from, c->first_nsec);
	}
	return from;
}

static char *stats_text(const struct flight *f, unsigned cpu, uint64_t from_nsec)
{
	const struct flight_cpu *c = &f->cpus[cpu];
	_cleanup_free_ char *counted = kernel_text_of_stats(cpu, &c->stats);

	if (!counted)
		return NULL;
	return strf("%sflyrec method: %s\nflyrec subbufs: %" PRIu64 "\nflyrec bytes: %" PRIu64
		    "\nflyrec torn subbufs: %" PRIu64 "\n" TRACE_DAT_FROM "%" PRIu64
		    "\nflyrec final: yes\n",
		    counted, flight_method_name(f), c->written / f->subbuf_size, c->written,
		    c->copy.torn, from_nsec);
}

static int write_tables(struct export *e)
{
	struct flight *f = e->flight;
	const uint64_t from_nsec = complete_from(f);
	int r = 0;

	for (unsigned cpu = 0; cpu < f->n_cpus && r >= 0; cpu++) {
		_cleanup_free_ char *text = stats_text(f, cpu, from_nsec);

		r = text ? trace_file_write_cpustat(e->file, cpu, text) : -ENOMEM;
		if (r >= 0)
			r = trace_file_set_size(e->file, cpu, f->cpus[cpu].written);
	}
	return r;
}

static int fill(struct export *e)
{
	struct flight *f = e->flight;
	struct trace_file_region first;
	int r;

	/* The header on its way to the disk beside the data, and names beside both: they mostly
	 * wait */
	trace_file_region(e->file, 0, &first);
	if (!e->order->is_part)
		(void)sync_file_range(first.buffered_fd, 0, (off_t)first.offset,
				      SYNC_FILE_RANGE_WRITE);
	fault_point("flight-captured");
	r = parallel_run(f->n_cpus + 1, f->params.threads + 1, write_item, e);
	fault_point("flight-data");
	if (r >= 0 && e->names_error < 0)
		(void)fault_errno(&e->made->nameless, e->names_error,
				  "cannot write task names into a snapshot");
	if (r >= 0)
		r = write_tables(e);
	return r >= 0 && !e->order->is_part ? trace_file_complete(e->file) : r;
}

/* Room for the header is only known when it is there */
static int create(struct export *e, const char *note, struct fault *why)
{
	struct flight *f = e->flight;
	_cleanup_free_ uint64_t *rooms = calloc(f->n_cpus, sizeof(*rooms));
	struct trace_file_params params = e->plan->params;
	struct own_cause cause;
	uint64_t bytes = 0;
	int r;

	if (!rooms)
		return fault_errno(why, -ENOMEM, "cannot take a snapshot");
	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++) {
		rooms[cpu] = (f->cpus[cpu].n + flight_left(f, &f->cpus[cpu])) * f->subbuf_size;
		bytes += rooms[cpu];
	}
	r = snapshot_order_make_way(e->order, bytes, e->made, why);
	if (r < 0)
		return r;
	params.rooms = rooms;
	params.note = e->order->is_part ? NULL : note;
	if (!e->order->is_part)
		snapshot_order_cause(e->order, &cause, &params.own);
	if (e->order->is_part) /* read again at once, then gone: it need never come to the disk */
		params.direct = STORAGE_DIRECT_NO;
	params.names_room = MIN(params.names_room, (size_t)NAMES_ROOM_MAX);
	params.own.tasks_room = file_plan_tasks_room(e->plan, params.names_room, NULL);
	r = trace_file_create(e->made->dir_fd, e->made->name, &params, &e->file, why);
	if (r >= 0)
		r = snapshot_order_make_way(e->order, bytes, e->made, why);
	if (r < 0 && e->file)
		store_drop_new(e->made->dir_fd, e->made->name);
	return r;
}

/* A part has no name, and lives as long as it is open */
static int publish_part(struct export *e, struct fault *why)
{
	struct trace_file_region first;
	int fd;

	trace_file_region(e->file, 0, &first);
	fd = fcntl(first.buffered_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot keep a part");
	e->made->part_fd = fd;
	store_drop_new(e->made->dir_fd, e->made->name);
	return 0;
}

static int publish(struct export *e, struct fault *why)
{
	int r;

	if (e->order->is_part)
		return publish_part(e, why);
	fault_point("flight-rename");
	r = trace_file_publish(e->made->dir_fd, e->made->name, false, why);
	if (r >= 0 && fsync(e->made->dir_fd) < 0)
		return fault_errno(why, -errno, "cannot sync the directory");
	return r;
}

static void count(struct flight *f, struct snapshot_result *made)
{
	for (unsigned cpu = 0; cpu < f->n_cpus; cpu++) {
		struct flight_cpu *c = &f->cpus[cpu];

		c->counts = (struct ledger_moved){
			.subbufs = c->written / f->subbuf_size,
			.bytes = c->written,
			.torn = c->copy.torn,
		};
		made->report.bytes += c->written;
	}
}

int flight_export(struct flight *f, const struct file_plan *plan,
		  const struct snapshot_order *order, struct snapshot_result *made,
		  struct fault *why)
{
	struct export e = {.flight = f, .plan = plan, .order = order, .made = made};
	_cleanup_free_ char *note = NULL;
	int r;

	*why = (struct fault){0};
	f->why = why;
	r = snapshot_order_name(order, made, &note, why);
	if (r >= 0)
		r = create(&e, note, why);
	if (r >= 0) {
		r = fill(&e);
		if (r >= 0)
			r = publish(&e, why);
		if (r < 0)
			store_drop_new(made->dir_fd, made->name);
	}
	trace_file_free(e.file);
	f->why = NULL;
	if (r < 0 && why->error == 0)
		return fault_errno(why, r, "cannot write the snapshot");
	if (r < 0)
		return r;
	count(f, made);
	if (order->is_part)
		return 0;
	r = snapshot_order_retain(order, made, why);
	if (r >= 0)
		snapshot_order_label(order, made);
	return r;
}
