/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/drain.h"

/*
 * Unprivileged processes get 16384 pages of pipe in all (pipe-user-pages-soft), and we keep below
 * it so that one session does not take it from the next.
 */
#define PIPE_SIZE_MAX	MIB
#define PIPE_SIZE_TOTAL (16 * MIB)

struct drain {
	unsigned n_cpus;
	unsigned subbuf_size;
	struct drain_fds *fds;	  /* also the pumps', while it is open */
	struct pump *pumps;	  /* [n_cpus] */
	struct pump **order;	  /* [n_cpus], worker after worker */
	struct pump_target *next; /* [n_cpus], in the same order */
	struct worker **workers;  /* [n_workers] */
	unsigned n_workers;
	char *slots; /* n_cpus sub-buffers */
	uint64_t chunk_max;
	int file_fd;
	_Atomic int64_t bytes_left;
};

struct drain_fds *drain_fds_new(unsigned n_cpus)
{
	struct drain_fds *fds = calloc(1, sizeof(*fds) + n_cpus * sizeof(fds->cpus[0]));

	if (!fds)
		return NULL;
	fds->n_cpus = n_cpus;
	fds->slots = -EBADF;
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		fds->cpus[cpu] = (struct drain_cpu_fds){.trace = -EBADF, .pipe = -EBADF};
	return fds;
}

void drain_fds_free(struct drain_fds *fds)
{
	if (!fds)
		return;
	/* Pipes first: their pages are of what the trace fds keep */
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++)
		close_p(&fds->cpus[cpu].pipe);
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++)
		close_p(&fds->cpus[cpu].trace);
	close_p(&fds->slots);
	free(fds);
}

int drain_new(struct drain **ret)
{
	struct drain *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->file_fd = -EBADF;
	*ret = d;
	return 0;
}

void drain_free(struct drain *d)
{
	free(d);
}

static size_t slots_size(const struct drain *d)
{
	return round_up((uint64_t)d->n_cpus * d->subbuf_size, (uint64_t)sysconf(_SC_PAGESIZE));
}

static int open_slots(struct drain *d, struct drain_fds *fds)
{
	struct stat st;
	void *p;

	if (fds->slots >= 0 &&
	    (fstat(fds->slots, &st) < 0 || (size_t)st.st_size != slots_size(d))) {
		close(fds->slots);
		fds->slots = -EBADF;
	}
	if (fds->slots < 0) {
		fds->old_slots = false;
		fds->slots = memfd_create("flyrec-slots", MFD_CLOEXEC);
		if (fds->slots < 0 || ftruncate(fds->slots, (off_t)slots_size(d)) < 0)
			return -errno;
	}
	p = mmap(NULL, slots_size(d), PROT_READ | PROT_WRITE, MAP_SHARED, fds->slots, 0);
	if (p == MAP_FAILED)
		return -errno;
	d->slots = p;
	return 0;
}

static int open_pump(struct drain *d, unsigned cpu, struct instance *instance,
		     struct drain_cpu_fds *fds, struct fault *why)
{
	_cleanup_close_ int new_fd = -EBADF, stats_fd = -EBADF;
	uint64_t pipe_size = MIN(PIPE_SIZE_MAX, PIPE_SIZE_TOTAL / d->n_cpus);
	int r;

	if (fds->trace < 0) {
		r = instance_open_cpu(instance, cpu, &new_fd, why);
		if (r < 0)
			return r;
	}
	stats_fd = instance_open_stats(instance, cpu);
	r = pump_init(&d->pumps[cpu], cpu, d->subbuf_size, fds->trace >= 0 ? fds->trace : new_fd,
		      stats_fd, fds->pipe, pipe_size, d->slots + (size_t)cpu * d->subbuf_size);
	if (r < 0)
		return fault_errno(why, r, "cannot make a pipe for CPU %u", cpu);
	TAKE_FD(new_fd);
	TAKE_FD(stats_fd);
	fds->trace = d->pumps[cpu].trace_fd;
	fds->pipe = d->pumps[cpu].pipe_read;
	return 0;
}

static void free_pumps(struct drain *d)
{
	for (unsigned cpu = 0; d->pumps && cpu < d->n_cpus; cpu++) {
		d->pumps[cpu].trace_fd = d->pumps[cpu].pipe_read = -EBADF; /* d->fds has them */
		pump_done(&d->pumps[cpu]);
	}
	if (d->slots)
		(void)munmap(d->slots, slots_size(d));
	free(d->pumps);
	free(d->order);
	free(d->next);
	*d = (struct drain){.file_fd = -EBADF};
}

int drain_open(struct drain *d, struct instance *instance, struct drain_fds *fds, struct fault *why)
{
	unsigned n_cpus = instance_n_cpus(instance);
	int r = 0;

	d->subbuf_size = instance_subbuf_size(instance);
	d->n_cpus = n_cpus;
	d->pumps = calloc(n_cpus, sizeof(*d->pumps));
	d->order = calloc(n_cpus, sizeof(struct pump *));
	d->next = calloc(n_cpus, sizeof(*d->next));
	if (!d->pumps || !d->order || !d->next)
		r = fault_errno(why, -ENOMEM, "cannot start draining");
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		d->pumps[cpu].trace_fd = d->pumps[cpu].pipe_read = d->pumps[cpu].pipe_write =
			d->pumps[cpu].stats_fd = -EBADF;
	if (r >= 0) {
		r = open_slots(d, fds);
		if (r < 0)
			(void)fault_errno(why, r, "cannot make memory for partial sub-buffers");
	}
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		r = open_pump(d, cpu, instance, &fds->cpus[cpu], why);
	if (r < 0)
		free_pumps(d);
	else
		d->fds = fds;
	return r;
}

const struct drain_fds *drain_fds(const struct drain *d)
{
	return d->fds;
}

static void target_of(const struct drain *d, const struct trace_file *file, unsigned cpu,
		      struct pump_target *ret)
{
	struct trace_file_region region;

	trace_file_region(file, cpu, &region);
	*ret = (struct pump_target){
		.data_fd = region.data_fd,
		.buffered_fd = region.buffered_fd,
		.region = region.offset,
		.room = region.room,
		.size = region.size,
		.size_at = region.size_at,
		.chunk_max = d->chunk_max,
	};
}

int drain_run(struct drain *d, struct trace_file *file, unsigned n_workers, uint64_t max_bytes,
	      uint64_t chunk_max, int notify_fd, struct fault *why)
{
	uint64_t there = 0;
	unsigned first = 0;

	d->chunk_max = chunk_max;
	n_workers = MIN(MAX(n_workers, 1U), d->n_cpus);
	d->workers = calloc(n_workers, sizeof(struct worker *));
	if (!d->workers)
		return fault_errno(why, -ENOMEM, "cannot start draining");
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++) {
		struct pump_target target;

		target_of(d, file, cpu, &target);
		pump_set_target(&d->pumps[cpu], &target);
		d->file_fd = target.buffered_fd;
		d->order[cpu] = &d->pumps[cpu];
		there += target.size;
	}
	atomic_store(&d->bytes_left, (int64_t)max_bytes - (int64_t)there);
	for (unsigned i = 0; i < n_workers; i++) {
		unsigned n = (d->n_cpus - first) / (n_workers - i);
		int r = worker_new(&d->order[first], &d->next[first], n, notify_fd, &d->bytes_left,
				   &d->workers[i]);

		if (r < 0)
			return fault_errno(why, r, "cannot start a worker thread");
		d->n_workers++;
		first += n;
	}
	return 0;
}

int drain_post(struct drain *d, enum worker_request request)
{
	for (unsigned i = 0; i < d->n_workers; i++) {
		int r = worker_post(d->workers[i], request);

		if (r < 0)
			return r;
	}
	return 0;
}

int drain_retarget(struct drain *d, struct trace_file *file, uint64_t max_bytes)
{
	for (unsigned i = 0; i < d->n_cpus; i++)
		target_of(d, file, d->order[i]->cpu, &d->next[i]);
	atomic_store(&d->bytes_left, (int64_t)max_bytes);
	return drain_post(d, WORKER_RETARGET);
}

void drain_retargeted(struct drain *d)
{
	d->file_fd = d->next[0].buffered_fd;
}

bool drain_idle(const struct drain *d)
{
	for (unsigned i = 0; i < d->n_workers; i++)
		if (!worker_done(d->workers[i]))
			return false;
	return true;
}

void drain_tell(struct drain *d)
{
	for (unsigned i = 0; i < d->n_workers; i++)
		worker_tell(d->workers[i]);
}

void drain_hold(struct drain *d)
{
	for (unsigned i = 0; i < d->n_workers; i++)
		worker_hold(d->workers[i]);
}

void drain_flush(struct drain *d)
{
	for (unsigned i = 0; i < d->n_workers; i++)
		worker_flush(d->workers[i]);
}

void drain_tell_flushes(struct drain *d, bool on)
{
	for (unsigned i = 0; i < d->n_workers; i++)
		worker_tell_flushes(d->workers[i], on);
}

bool drain_flushed(const struct drain *d)
{
	for (unsigned i = 0; i < d->n_workers; i++)
		if (!worker_flushed(d->workers[i]))
			return false;
	return true;
}

unsigned drain_n_cpus(const struct drain *d)
{
	return d->n_cpus;
}

unsigned drain_subbuf_size(const struct drain *d)
{
	return d->subbuf_size;
}

char *drain_slots(const struct drain *d)
{
	return d->slots;
}

int drain_file_fd(const struct drain *d)
{
	return d->file_fd;
}

void drain_cpu(const struct drain *d, unsigned cpu, struct drain_counts *ret)
{
	const struct pump *p = &d->pumps[cpu];

	*ret = (struct drain_counts){
		.published = atomic_load(&p->published),
		.total_bytes = atomic_load(&p->total_bytes),
		.subbufs = atomic_load(&p->subbufs),
		.dropped_bytes = atomic_load(&p->dropped_bytes),
		.pipe_capacity = p->pipe_capacity,
		.behind = atomic_load(&p->behind),
		.stats = p->stats,
	};
}

uint64_t drain_written(const struct drain *d, unsigned cpu)
{
	return pump_written(&d->pumps[cpu]);
}

void drain_add_dropped(struct drain *d, unsigned cpu, uint64_t bytes)
{
	atomic_fetch_add(&d->pumps[cpu].dropped_bytes, bytes);
}

int64_t drain_bytes_left(const struct drain *d)
{
	return atomic_load(&d->bytes_left);
}

uint64_t drain_pending(const struct drain *d)
{
	uint64_t pending = 0;

	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		pending += pump_pending(&d->pumps[cpu]);
	return pending;
}

void drain_drop_pending(struct drain *d)
{
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		atomic_fetch_add(&d->pumps[cpu].dropped_bytes, pump_pending(&d->pumps[cpu]));
}

uint64_t drain_total_bytes(const struct drain *d)
{
	uint64_t total = 0;

	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		total += atomic_load(&d->pumps[cpu].total_bytes);
	return total;
}

int drain_trouble(const struct drain *d)
{
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++) {
		int trouble = atomic_load(&d->pumps[cpu].trouble);

		if (trouble < 0)
			return trouble;
	}
	return 0;
}

bool drain_full(const struct drain *d)
{
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		if (atomic_load(&d->pumps[cpu].full))
			return true;
	return false;
}

bool drain_mapped(const struct drain *d)
{
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		if (atomic_load(&d->pumps[cpu].mapped_elsewhere))
			return true;
	return false;
}

void drain_close(struct drain *d, struct drain_fds **ret_fds)
{
	struct drain_fds *fds = TAKE_PTR(d->fds);

	for (unsigned cpu = 0; fds && cpu < d->n_cpus; cpu++)
		fds->cpus[cpu].empty = d->n_workers == 0;
	for (unsigned i = 0; i < d->n_workers; i++)
		worker_free(d->workers[i]);
	free(d->workers);
	free_pumps(d);
	if (ret_fds && fds)
		*ret_fds = fds;
	else
		drain_fds_free(fds);
}
