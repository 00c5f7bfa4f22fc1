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

void drain_init(struct drain *d)
{
	*d = (struct drain){.slots_fd = -EBADF, .file_fd = -EBADF};
}

static size_t slots_size(const struct drain *d)
{
	return round_up((uint64_t)d->n_cpus * d->subbuf_size, (uint64_t)sysconf(_SC_PAGESIZE));
}

static int open_slots(struct drain *d, const char *session, struct fdstore *store)
{
	struct stat st;
	void *p;
	int fd;

	fd = fdstore_take(store, session, "slots");
	if (fd >= 0 && (fstat(fd, &st) < 0 || (size_t)st.st_size != slots_size(d))) {
		close_p(&fd);
		fdstore_drop(store, session, "slots");
		fd = -ENOENT;
	}
	if (fd < 0) {
		fd = memfd_create("flyrec-slots", MFD_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (ftruncate(fd, (off_t)slots_size(d)) < 0) {
			int r = -errno;

			close(fd);
			return r;
		}
		fdstore_put(store, session, "slots", fd);
	}
	d->slots_fd = fd;
	p = mmap(NULL, slots_size(d), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	d->slots = p;
	return 0;
}

static int open_pump(struct drain *d, unsigned cpu, struct instance *instance, const char *session,
		     struct fdstore *store, struct fault *why)
{
	_cleanup_close_ int trace_fd = -EBADF, pipe_fd = -EBADF, stats_fd = -EBADF;
	uint64_t pipe_size = MIN(PIPE_SIZE_MAX, PIPE_SIZE_TOTAL / d->n_cpus);
	char trace_name[32], pipe_name[32];
	bool old_trace, old_pipe;
	int r;

	(void)snprintf(trace_name, sizeof(trace_name), "cpu%u.trace", cpu);
	(void)snprintf(pipe_name, sizeof(pipe_name), "cpu%u.pipe", cpu);
	trace_fd = fdstore_take(store, session, trace_name);
	old_trace = trace_fd >= 0;
	if (!old_trace) {
		r = instance_open_cpu(instance, cpu, &trace_fd, why);
		if (r < 0)
			return r;
	}
	stats_fd = instance_open_stats(instance, cpu);
	pipe_fd = fdstore_take(store, session, pipe_name);
	old_pipe = pipe_fd >= 0;
	r = pump_init(&d->pumps[cpu], cpu, d->subbuf_size, trace_fd, stats_fd, pipe_fd, pipe_size,
		      d->slots + (size_t)cpu * d->subbuf_size);
	if (r < 0) {
		if (old_trace)
			fdstore_keep(store, session, trace_name, TAKE_FD(trace_fd));
		if (old_pipe)
			fdstore_keep(store, session, pipe_name, TAKE_FD(pipe_fd));
		return fault_errno(why, r, "cannot make a pipe for CPU %u", cpu);
	}
	TAKE_FD(trace_fd);
	TAKE_FD(pipe_fd);
	TAKE_FD(stats_fd);
	if (!old_trace)
		fdstore_put(store, session, trace_name, d->pumps[cpu].trace_fd);
	if (old_pipe)
		return 0;
	cpu_list_add(&d->new_pipes, cpu);
	fdstore_put(store, session, pipe_name, d->pumps[cpu].pipe_read);
	return 0;
}

int drain_open(struct drain *d, struct instance *instance, const char *session,
	       struct fdstore *store, struct fault *why)
{
	unsigned n_cpus = instance_n_cpus(instance);
	int r;

	d->subbuf_size = instance_subbuf_size(instance);
	d->pumps = calloc(n_cpus, sizeof(*d->pumps));
	d->order = calloc(n_cpus, sizeof(struct pump *));
	d->next = calloc(n_cpus, sizeof(*d->next));
	if (!d->pumps || !d->order || !d->next)
		return fault_errno(why, -ENOMEM, "cannot start draining");
	d->n_cpus = n_cpus;
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		d->pumps[cpu].trace_fd = d->pumps[cpu].pipe_read = d->pumps[cpu].pipe_write =
			-EBADF;
	r = open_slots(d, session, store);
	if (r < 0)
		return fault_errno(why, r, "cannot make memory for partial sub-buffers");
	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		r = open_pump(d, cpu, instance, session, store, why);
		if (r < 0)
			return r;
	}
	return 0;
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

static void drop_stored(struct drain *d, const char *session, struct fdstore *store)
{
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++) {
		const struct pump *p = &d->pumps[cpu];
		char name[32];

		(void)snprintf(name, sizeof(name), "cpu%u.pipe", cpu);
		if (p->pipe_read >= 0)
			fdstore_drop(store, session, name);
		(void)snprintf(name, sizeof(name), "cpu%u.trace", cpu);
		if (p->trace_fd >= 0)
			fdstore_drop(store, session, name);
	}
	if (d->slots_fd >= 0)
		fdstore_drop(store, session, "slots");
}

/*
 * For the next start, in this process or another. Pipes that nobody has used yet are not kept: with
 * them the next one would not know that others were lost.
 */
static void keep_stored(struct drain *d, const char *session, struct fdstore *store, bool used)
{
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++) {
		struct pump *p = &d->pumps[cpu];
		char name[32];

		(void)snprintf(name, sizeof(name), "cpu%u.pipe", cpu);
		if (p->pipe_read >= 0 && !used && cpu_list_has(&d->new_pipes, cpu))
			fdstore_drop(store, session, name);
		else if (p->pipe_read >= 0)
			fdstore_keep(store, session, name, TAKE_FD(p->pipe_read));
		(void)snprintf(name, sizeof(name), "cpu%u.trace", cpu);
		if (p->trace_fd >= 0)
			fdstore_keep(store, session, name, TAKE_FD(p->trace_fd));
	}
	if (d->slots_fd >= 0)
		fdstore_keep(store, session, "slots", TAKE_FD(d->slots_fd));
}

void drain_close(struct drain *d, const char *session, struct fdstore *store, bool keep)
{
	bool used = d->n_workers > 0;

	for (unsigned i = 0; i < d->n_workers; i++)
		worker_free(d->workers[i]);
	free(d->workers);
	if (keep)
		keep_stored(d, session, store, used);
	else
		drop_stored(d, session, store);
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		pump_done(&d->pumps[cpu]);
	if (d->slots)
		(void)munmap(d->slots, slots_size(d));
	close_p(&d->slots_fd);
	free(d->pumps);
	free(d->order);
	free(d->next);
	drain_init(d);
	fdstore_flush(store);
}
