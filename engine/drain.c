/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/drain.h"

#define NOTES_MAGIC 0x3165746f6e646166ULL /* "fadnote1" */

/* The memfd beside the pipes; by their numbers. What nobody reads into takes no memory. */
struct notes {
	uint64_t magic;
	uint64_t reserved;
	struct staging_note pipes[DRAIN_PIPES_MAX];
	/* from NOTES_SIZE on DRAIN_PIPES_MAX times STAGING_MEMORY */
};

#define NOTES_SIZE (64 * KIB)
_Static_assert(sizeof(struct notes) <= NOTES_SIZE, "a multiple of any page size");

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
	struct recover_batch *batches; /* what an earlier drain has read */
	size_t n_batches;
	bool *lost; /* [n_cpus] */
	uint64_t chunk_max;
	int file_fd;
	_Atomic int64_t bytes_left;
	uint64_t ended_nsec; /* CPU time of workers that have ended */
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

/* Of so many bytes, the first @map of them mapped */
static int open_memory(struct drain_fd *memory, const char *name, size_t size, size_t map,
		       void **ret)
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
	p = mmap(NULL, map, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

static int open_memories(struct drain *d, struct drain_fds *fds)
{
	void *slots, *notes;
	int r = open_memory(&fds->slots, "flyrec-slots", slots_size(d), slots_size(d), &slots);

	if (r < 0)
		return r;
	d->slots = slots;
	r = open_memory(&fds->notes, "flyrec-notes", NOTES_SIZE + DRAIN_PIPES_MAX * STAGING_MEMORY,
			NOTES_SIZE, &notes);
	if (r < 0)
		return r;
	d->notes = notes;
	if (d->notes->magic != NOTES_MAGIC) {
		fds->notes.old = false; /* of no version that is known */
		*d->notes = (struct notes){.magic = NOTES_MAGIC};
	}
	return 0;
}

static int map_memory(const struct drain *d, const struct drain_fds *fds, struct staging *s)
{
	size_t number = (size_t)(s->note - d->notes->pipes);
	void *p = mmap(NULL, STAGING_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fds->notes.fd,
		       (off_t)(NOTES_SIZE + number * STAGING_MEMORY));

	if (p == MAP_FAILED)
		return -errno;
	staging_use_memory(s, p, d->subbuf_size);
	return 0;
}

static void unmap_memory(struct staging *s)
{
	if (s->memory)
		(void)munmap(s->memory, STAGING_MEMORY);
	s->memory = NULL;
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

static bool is_used(const struct drain *d, const struct staging_note *note)
{
	for (size_t i = 0; i < d->n_stagings; i++)
		if (d->stagings[i].note == note)
			return true;
	return false;
}

/* Those pipes were lost, and that has been told */
static void forget_lost(struct drain *d)
{
	for (unsigned i = 0; i < DRAIN_PIPES_MAX; i++)
		if (!is_used(d, &d->notes->pipes[i]))
			d->notes->pipes[i] = (struct staging_note){};
}

/* The CPU that a note names; n_cpus: none */
static unsigned noted_cpu(const struct drain *d, const struct staging_note *note)
{
	return MIN(atomic_load(&note->cpu) - 1U, d->n_cpus);
}

/*
 * What holds data of a CPU goes on as that of its worker, if it is a worker's and that has none
 * yet; else it is kept beside it until it is empty
 * @cpu: n_cpus: nobody's that is wanted
 */
static void place(struct drain *d, const struct staging *s, unsigned cpu)
{
	struct staging *at = &d->stagings[d->n_stagings];

	if (cpu < d->n_cpus && s->note && d->pumps[cpu].staging->pipe_read < 0)
		at = d->pumps[cpu].staging;
	else
		d->n_stagings++;
	*at = *s;
	if (cpu == d->n_cpus)
		return;
	pump_adopt(&d->pumps[cpu], at);
	if (at->in_memory > 0)
		d->batches[d->n_batches++] =
			(struct recover_batch){cpu, at->memory + at->memory_at, at->in_memory};
}

static int adopt_pipe(struct drain *d, const struct drain_fds *fds, const struct drain_pipe *pipe)
{
	unsigned cpu = pipe->of_cpu ? pipe->number : d->n_cpus;
	struct staging s;
	int r = staging_adopt(&s, note_of(d, pipe), pipe->end.fd);

	if (r >= 0 && s.note) {
		cpu = noted_cpu(d, s.note);
		r = map_memory(d, fds, &s);
	}
	if (r < 0)
		return r;
	if (staging_bytes(&s) == 0) {
		staging_release(&s); /* killed before there was anything, or after */
		cpu = d->n_cpus;
	}
	place(d, &s, cpu);
	return 0;
}

static int add_pipe(struct drain *d, struct drain_fds *fds, unsigned number, struct staging *s)
{
	struct drain_pipe pipe = {.number = number};
	int r = staging_make(s, &d->notes->pipes[number]);

	if (r < 0)
		return r;
	pipe.end.fd = s->pipe_read;
	r = drain_fds_add_pipe(fds, &pipe);
	if (r < 0) {
		staging_done(s);
		return r;
	}
	return map_memory(d, fds, s);
}

static bool name_is_free(const struct drain_fds *fds, unsigned number)
{
	for (size_t i = 0; i < fds->n_pipes; i++)
		if (!fds->pipes[i].of_cpu && fds->pipes[i].number == number)
			return false;
	return true;
}

/* A note whose pipe was not kept: what its CPU had in there is lost, unless it was in the memory */
static int find_lost(struct drain *d, struct drain_fds *fds, unsigned number)
{
	struct staging_note *note = &d->notes->pipes[number];
	unsigned cpu = noted_cpu(d, note);
	struct staging s = {.note = note};
	bool lost;
	int r;

	if (note->pipe == 0 || is_used(d, note))
		return 0;
	if (cpu == d->n_cpus) {
		*note = (struct staging_note){};
		return 0;
	}
	r = map_memory(d, fds, &s);
	if (r < 0)
		return r;
	lost = s.in_memory == 0 || !name_is_free(fds, number);
	unmap_memory(&s);
	if (lost) {
		d->lost[cpu] = true; /* its note stays until that has been told */
		return 0;
	}
	r = add_pipe(d, fds, number, &s);
	if (r >= 0)
		place(d, &s, cpu);
	return r;
}

static int make_pipe(struct drain *d, struct drain_fds *fds, struct staging *place)
{
	unsigned number = 0;

	while (d->notes->pipes[number].pipe != 0 || !name_is_free(fds, number))
		if (++number == DRAIN_PIPES_MAX)
			return -ENOSPC;
	return add_pipe(d, fds, number, place);
}

/* An empty one of an earlier worker, or a new one */
static int give_pipe(struct drain *d, struct drain_fds *fds, struct staging *place)
{
	for (size_t i = d->n_workers_wanted; i < d->n_stagings; i++) {
		struct staging *s = &d->stagings[i];

		if (s->pipe_read < 0 || staging_bytes(s) > 0 || !s->note)
			continue;
		*place = *s;
		*s = (struct staging){.pipe_read = -EBADF, .pipe_write = -EBADF};
		return 0;
	}
	return make_pipe(d, fds, place);
}

static int open_pipes(struct drain *d, struct drain_fds *fds)
{
	size_t n_old = fds->n_pipes;
	int r = 0;

	d->stagings = calloc(d->n_workers_wanted + n_old + DRAIN_PIPES_MAX, sizeof(*d->stagings));
	d->lost = calloc(d->n_cpus, sizeof(*d->lost));
	d->batches = calloc(n_old + DRAIN_PIPES_MAX, sizeof(*d->batches));
	if (!d->stagings || !d->batches || !d->lost)
		return -ENOMEM;
	d->n_stagings = d->n_workers_wanted;
	for (size_t i = 0; i < d->n_workers_wanted; i++)
		d->stagings[i].pipe_read = d->stagings[i].pipe_write = -EBADF;
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		d->pumps[cpu].staging = &d->stagings[worker_of(d, cpu)];
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		d->lost[cpu] = !fds->notes.old;
	for (size_t i = 0; i < n_old && r >= 0; i++) {
		if (fds->pipes[i].of_cpu)
			d->lost[fds->pipes[i].number] = false;
		r = adopt_pipe(d, fds, &fds->pipes[i]);
	}
	for (unsigned i = 0; i < DRAIN_PIPES_MAX && r >= 0; i++)
		r = find_lost(d, fds, i);
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
		unmap_memory(s);
		staging_done(s);
		s->note = NULL;
		return true;
	}
	return false;
}

void drain_read(struct drain *d, unsigned quota)
{
	for (unsigned cpu = 0; cpu < d->n_cpus; cpu++)
		atomic_store(&d->pumps[cpu].quota, quota);
}

bool drain_reads(const struct drain *d)
{
	return d->n_cpus > 0 && atomic_load(&d->pumps[0].quota) > 0;
}

void drain_hand(const struct drain *d, struct recover_hand *ret)
{
	*ret = (struct recover_hand){d->slots, d->batches, d->n_batches};
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
		unmap_memory(&d->stagings[i]);
	}
	if (d->slots)
		(void)munmap(d->slots, slots_size(d));
	if (d->notes)
		(void)munmap(d->notes, NOTES_SIZE);
	free(d->pumps);
	free(d->order);
	free(d->next);
	free(d->stagings);
	free(d->batches);
	free(d->lost);
	*d = (struct drain){.file_fd = -EBADF, .ended_nsec = d->ended_nsec};
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
		r = open_memories(d, fds);
		if (r < 0)
			(void)fault_errno(why, r, "cannot make memory for sub-buffers");
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
		.capacity = pump_capacity(p),
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

uint64_t drain_cpu_nsec(const struct drain *d)
{
	uint64_t nsec = d->ended_nsec;

	for (unsigned i = 0; i < d->n_workers; i++)
		nsec += worker_cpu_nsec(d->workers[i]);
	return nsec;
}

void drain_close(struct drain *d, struct drain_fds **ret_fds)
{
	struct drain_fds *fds = TAKE_PTR(d->fds);

	if (fds)
		fds->unused = d->n_workers == 0;
	d->ended_nsec = drain_cpu_nsec(d);
	for (unsigned i = 0; i < d->n_workers; i++)
		worker_free(d->workers[i]);
	free(d->workers);
	release(d);
	if (ret_fds && fds)
		*ret_fds = fds;
	else
		drain_fds_free(fds);
}
