/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/drain.h"

#define NOTES_MAGIC 0x3165746f6e646166ULL /* "fadnote1" */

/* The memfd beside the pipes */
struct notes {
	uint64_t magic;
	uint64_t reserved;
	struct staging_note pipes[DRAIN_PIPES_MAX]; /* by their numbers */
};

struct drain {
	unsigned n_cpus;
	unsigned subbuf_size;
	struct drain_fds *fds;	  /* also the pumps', while it is open */
	struct pump *pumps;	  /* [n_cpus] */
	struct pump **order;	  /* [n_cpus], worker after worker */
	struct pump_target *next; /* [n_cpus], in the same order */
	struct staging *stagings; /* [n_workers_wanted], one each; then what earlier drains had */
	size_t n_stagings;
	unsigned n_workers_wanted;
	struct worker **workers; /* [n_workers] */
	unsigned n_workers;
	char *slots; /* n_cpus sub-buffers */
	struct notes *notes;
	bool *lost; /* [n_cpus] */
	uint64_t chunk_max;
	int file_fd;
	_Atomic int64_t bytes_left;
};

struct drain_fds *drain_fds_new(unsigned n_cpus)
{
	struct drain_fds *fds = calloc(1, sizeof(*fds) + n_cpus * sizeof(fds->traces[0]));

	if (!fds)
		return NULL;
	fds->n_cpus = n_cpus;
	fds->slots.fd = fds->notes.fd = -EBADF;
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		fds->traces[cpu].fd = -EBADF;
	return fds;
}

int drain_fds_add_pipe(struct drain_fds *fds, const struct drain_pipe *pipe)
{
	int r = array_grow(&fds->pipes, fds->n_pipes, sizeof(*pipe));

	if (r >= 0)
		fds->pipes[fds->n_pipes++] = *pipe;
	return r;
}

void drain_fds_free(struct drain_fds *fds)
{
	if (!fds)
		return;
	/* Pipes first: their pages are of what the trace fds keep */
	for (size_t i = 0; i < fds->n_pipes; i++)
		close_p(&fds->pipes[i].end.fd);
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++)
		close_p(&fds->traces[cpu].fd);
	close_p(&fds->slots.fd);
	close_p(&fds->notes.fd);
	free(fds->pipes);
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

static int map_memory(struct drain_fd *memory, const char *name, size_t size, void **ret)
{
	struct stat st;
	void *p;

	if (memory->fd >= 0 && (fstat(memory->fd, &st) < 0 || (size_t)st.st_size != size)) {
		close(memory->fd);
		memory->fd = -EBADF;
	}
	if (memory->fd < 0) {
		memory->old = false;
		memory->fd = memfd_create(name, MFD_CLOEXEC);
		if (memory->fd < 0 || ftruncate(memory->fd, (off_t)size) < 0)
			return -errno;
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

static int open_memory(struct drain *d, struct drain_fds *fds)
{
	void *slots, *notes;
	int r = map_memory(&fds->slots, "flyrec-slots", slots_size(d), &slots);

	if (r < 0)
		return r;
	d->slots = slots;
	r = map_memory(&fds->notes, "flyrec-notes", sizeof(struct notes), &notes);
	if (r < 0)
		return r;
	d->notes = notes;
	if (d->notes->magic != NOTES_MAGIC) {
		fds->notes.old = false; /* of no version that is known */
		*d->notes = (struct notes){.magic = NOTES_MAGIC};
	}
	return 0;
}

/* --- the pipes: which worker has which, and what was in them */

static unsigned first_cpu(const struct drain *d, unsigned worker)
{
	return (unsigned)((uint64_t)worker * d->n_cpus / d->n_workers_wanted);
}

static unsigned worker_of(const struct drain *d, unsigned cpu)
{
	unsigned worker = 0;

	while (cpu >= first_cpu(d, worker + 1))
		worker++;
	return worker;
}

/* NULL: there is none, as with an earlier version's, or its note was lost and is another's now */
static struct staging_note *note_of(const struct drain *d, const struct drain_pipe *pipe)
{
	struct staging_note *note = &d->notes->pipes[pipe->number];

	return !pipe->of_cpu && note->pipe == staging_inode(pipe->end.fd) ? note : NULL;
}

/* A note of the kept memory whose pipe was not: what its CPU had in there is lost */
static void find_lost(struct drain *d, const struct drain_fds *fds)
{
	bool there[DRAIN_PIPES_MAX] = {};

	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		d->lost[cpu] = !fds->notes.old;
	for (size_t i = 0; i < fds->n_pipes; i++)
		if (fds->pipes[i].of_cpu)
			d->lost[fds->pipes[i].number] = false;
		else
			there[fds->pipes[i].number] = note_of(d, &fds->pipes[i]);
	for (unsigned i = 0; i < DRAIN_PIPES_MAX; i++) {
		struct staging_note *note = &d->notes->pipes[i];
		unsigned cpu = atomic_load(&note->pipe_cpu);

		if (there[i] || note->pipe == 0)
			continue;
		if (cpu > 0 && cpu <= d->n_cpus)
			d->lost[cpu - 1] = true;
		else
			note->pipe = 0;
	}
}

/* Those pipes were lost, and that has been told */
static void forget_lost(struct drain *d)
{
	for (unsigned i = 0; i < DRAIN_PIPES_MAX; i++) {
		struct staging_note *note = &d->notes->pipes[i];
		unsigned cpu = atomic_load(&note->pipe_cpu);
		bool used = false;

		for (size_t k = 0; k < d->n_stagings; k++)
			used |= d->stagings[k].note == note;
		if (!used && cpu > 0)
			*note = (struct staging_note){};
	}
}

/* The CPU whose data is in an old pipe; n_cpus: nobody's that is wanted */
static unsigned cpu_of(const struct drain *d, const struct drain_pipe *pipe,
		       const struct staging *s)
{
	const struct staging_note *note = s->note;
	unsigned cpu = d->n_cpus;

	if (s->in_pipe == 0)
		return cpu;
	if (pipe->of_cpu)
		cpu = pipe->number;
	else if (note)
		cpu = atomic_load(&note->pipe_cpu) - 1U;
	return MIN(cpu, d->n_cpus);
}

/*
 * A pipe with data goes on as that of its CPU's worker, if it is a worker's and that has none yet;
 * else it is kept beside it until it is empty
 */
static int adopt_pipe(struct drain *d, const struct drain_pipe *pipe)
{
	struct staging s, *place = &d->stagings[d->n_stagings];
	unsigned cpu;
	int r = staging_adopt(&s, note_of(d, pipe), pipe->end.fd);

	if (r < 0)
		return r;
	cpu = cpu_of(d, pipe, &s);
	if (cpu < d->n_cpus && s.note && d->pumps[cpu].staging->pipe_read < 0)
		place = d->pumps[cpu].staging;
	else
		d->n_stagings++;
	*place = s;
	if (cpu < d->n_cpus)
		pump_adopt(&d->pumps[cpu], place);
	return 0;
}

static bool number_is_free(const struct drain *d, const struct drain_fds *fds, unsigned number)
{
	for (size_t i = 0; i < fds->n_pipes; i++)
		if (!fds->pipes[i].of_cpu && fds->pipes[i].number == number)
			return false;
	return d->notes->pipes[number].pipe == 0;
}

static int make_pipe(struct drain *d, struct drain_fds *fds, struct staging *place)
{
	struct drain_pipe pipe = {.number = 0};
	int r;

	while (!number_is_free(d, fds, pipe.number))
		if (++pipe.number == DRAIN_PIPES_MAX)
			return -ENOSPC;
	r = staging_make(place, &d->notes->pipes[pipe.number]);
	if (r < 0)
		return r;
	pipe.end.fd = place->pipe_read;
	r = drain_fds_add_pipe(fds, &pipe);
	if (r < 0)
		close_p(&pipe.end.fd);
	return r;
}

/* An empty one of an earlier worker, or a new one */
static int give_pipe(struct drain *d, struct drain_fds *fds, struct staging *place)
{
	for (size_t i = d->n_workers_wanted; i < d->n_stagings; i++) {
		struct staging *s = &d->stagings[i];

		if (s->pipe_read < 0 || s->holder || !s->note)
			continue;
		*place = *s;
		s->pipe_read = s->pipe_write = -EBADF;
		return 0;
	}
	return make_pipe(d, fds, place);
}

static int open_pipes(struct drain *d, struct drain_fds *fds)
{
	int r = 0;

	d->stagings = calloc(d->n_workers_wanted + fds->n_pipes, sizeof(*d->stagings));
	d->lost = calloc(d->n_cpus, sizeof(*d->lost));
	if (!d->stagings || !d->lost)
		return -ENOMEM;
	d->n_stagings = d->n_workers_wanted;
	for (size_t i = 0; i < d->n_workers_wanted; i++)
		d->stagings[i].pipe_read = d->stagings[i].pipe_write = -EBADF;
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		d->pumps[cpu].staging = &d->stagings[worker_of(d, cpu)];
	find_lost(d, fds);
	for (size_t i = 0; i < fds->n_pipes && r >= 0; i++)
		r = adopt_pipe(d, &fds->pipes[i]);
	for (size_t i = 0; i < d->n_workers_wanted && r >= 0; i++)
		if (d->stagings[i].pipe_read < 0)
			r = give_pipe(d, fds, &d->stagings[i]);
	for (size_t i = d->n_workers_wanted; i < d->n_stagings; i++)
		if (!d->stagings[i].holder)
			atomic_store(&d->stagings[i].emptied, true);
	return r;
}

bool drain_pop_pipe(struct drain *d, struct drain_pipe *ret)
{
	for (size_t i = d->n_workers_wanted; i < d->n_stagings; i++) {
		struct staging *s = &d->stagings[i];
		size_t k = 0;

		if (s->pipe_read < 0 || !atomic_load(&s->emptied))
			continue;
		while (d->fds->pipes[k].end.fd != s->pipe_read)
			k++;
		*ret = d->fds->pipes[k];
		d->fds->pipes[k] = d->fds->pipes[--d->fds->n_pipes];
		if (s->note)
			*s->note = (struct staging_note){};
		staging_done(s);
		return true;
	}
	return false;
}

bool drain_lost(const struct drain *d, unsigned cpu)
{
	return d->lost[cpu];
}

static int open_pump(struct drain *d, unsigned cpu, struct instance *instance,
		     struct drain_fd *trace, struct fault *why)
{
	int r = 0;

	if (trace->fd < 0)
		r = instance_open_cpu(instance, cpu, &trace->fd, why);
	if (r < 0)
		return r;
	pump_init(&d->pumps[cpu], cpu, d->subbuf_size, trace->fd,
		  instance_open_stats(instance, cpu), NULL,
		  d->slots + (size_t)cpu * d->subbuf_size);
	d->order[cpu] = &d->pumps[cpu];
	return 0;
}

/* d->fds, or those of the caller, have what the pumps and stagings work with */
static void release(struct drain *d)
{
	for (unsigned cpu = 0; d->pumps && cpu < d->n_cpus; cpu++) {
		d->pumps[cpu].trace_fd = -EBADF;
		pump_done(&d->pumps[cpu]);
	}
	for (size_t i = 0; i < d->n_stagings; i++) {
		d->stagings[i].pipe_read = -EBADF;
		staging_done(&d->stagings[i]);
	}
	if (d->slots)
		(void)munmap(d->slots, slots_size(d));
	if (d->notes)
		(void)munmap(d->notes, sizeof(*d->notes));
	free(d->pumps);
	free(d->order);
	free(d->next);
	free(d->stagings);
	free(d->lost);
	*d = (struct drain){.file_fd = -EBADF};
}

int drain_open(struct drain *d, struct instance *instance, struct drain_fds *fds,
	       unsigned n_workers, struct fault *why)
{
	unsigned n_cpus = instance_n_cpus(instance);
	int r = 0;

	d->subbuf_size = instance_subbuf_size(instance);
	d->n_cpus = n_cpus;
	d->n_workers_wanted = MIN(MAX(n_workers, 1U), n_cpus);
	d->pumps = calloc(n_cpus, sizeof(*d->pumps));
	d->order = calloc(n_cpus, sizeof(struct pump *));
	d->next = calloc(n_cpus, sizeof(*d->next));
	if (!d->pumps || !d->order || !d->next)
		r = fault_errno(why, -ENOMEM, "cannot start draining");
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		d->pumps[cpu].trace_fd = d->pumps[cpu].stats_fd = -EBADF;
	if (r >= 0) {
		r = open_memory(d, fds);
		if (r < 0)
			(void)fault_errno(why, r, "cannot make memory for partial sub-buffers");
	}
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		r = open_pump(d, cpu, instance, &fds->traces[cpu], why);
	if (r >= 0) {
		r = open_pipes(d, fds);
		if (r < 0)
			(void)fault_errno(why, r, "cannot make pipes");
	}
	if (r < 0)
		release(d);
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

int drain_run(struct drain *d, struct trace_file *file, uint64_t max_bytes, uint64_t chunk_max,
	      int notify_fd, struct fault *why)
{
	uint64_t there = 0;

	d->chunk_max = chunk_max;
	d->workers = calloc(d->n_workers_wanted, sizeof(struct worker *));
	if (!d->workers)
		return fault_errno(why, -ENOMEM, "cannot start draining");
	forget_lost(d);
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++) {
		struct pump_target target;

		target_of(d, file, cpu, &target);
		pump_set_target(&d->pumps[cpu], &target);
		d->file_fd = target.buffered_fd;
		there += target.size;
	}
	atomic_store(&d->bytes_left, (int64_t)max_bytes - (int64_t)there);
	for (unsigned i = 0; i < d->n_workers_wanted; i++) {
		unsigned first = first_cpu(d, i);
		int r = worker_new(&d->order[first], &d->next[first], first_cpu(d, i + 1) - first,
				   notify_fd, &d->bytes_left, &d->workers[i]);

		if (r < 0)
			return fault_errno(why, r, "cannot start a worker thread");
		d->n_workers++;
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
		.pipe_capacity = pump_capacity(p),
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

	if (fds)
		fds->unused = d->n_workers == 0;
	for (unsigned i = 0; i < d->n_workers; i++)
		worker_free(d->workers[i]);
	free(d->workers);
	release(d);
	if (ret_fds && fds)
		*ret_fds = fds;
	else
		drain_fds_free(fds);
}
