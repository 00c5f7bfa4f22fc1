/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "basic/io.h"
#include "recorder/pump.h"
#include "recorder/ring-header.h"

#define CHUNK_MIN MIB

/* iovec of one readv, on the worker's stack */
#define READ_MAX 512U

/* Less than this part of a pipe-full is not worth chasing what comes meanwhile */
#define TAIL_PART 4

/* So many well-filled sub-buffers in a row that only read(2) would give: the CPU is mapped */
#define COPIES_MEAN_MAPPED 4

static bool slot_in_use(const struct pump *p)
{
	return ring_header_time(p->slot) != 0;
}

static void slot_clear(struct pump *p)
{
	memset(p->slot, 0, DATA_AT);
}

/* Far from full: the last there is, or the rest of one that had been read before */
static bool is_partial(const struct pump *p, const char *subbuf)
{
	return ring_header_commit(subbuf) + DATA_AT <= p->subbuf_size / 4 * 3;
}

void pump_init(struct pump *p, unsigned cpu, unsigned subbuf_size, int trace_fd, int stats_fd,
	       struct staging *staging, char *slot)
{
	*p = (struct pump){
		.cpu = cpu,
		.subbuf_size = subbuf_size,
		.trace_fd = trace_fd,
		.stats_fd = stats_fd,
		.staging = staging,
		.slot = slot,
		.target = {.data_fd = -EBADF, .buffered_fd = -EBADF},
	};
}

void pump_adopt(struct pump *p, struct staging *left)
{
	staging_hold(left, p);
	if (left != p->staging)
		p->left = left;
}

static uint64_t pipe_capacity(const struct pump *p)
{
	return (uint64_t)p->staging->pipe_subbufs * p->subbuf_size;
}

uint64_t pump_capacity(const struct pump *p)
{
	return MAX(pipe_capacity(p), p->staging->memory ? STAGING_MEMORY : 0);
}

/* Where data of this CPU is, apart from the slot; NULL: nowhere */
static struct staging *in_hand(const struct pump *p)
{
	if (p->left)
		return p->left;
	return p->staging->holder == p ? p->staging : NULL;
}

static bool is_held(const struct pump *p)
{
	return p->staging->holder && p->staging->holder != p;
}

/* Nothing is left in it */
static void let_go(struct pump *p, struct staging *s)
{
	staging_release(s);
	if (s != p->left)
		return;
	p->left = NULL;
	atomic_store(&s->emptied, true); /* from here on the main thread's */
}

void pump_done(struct pump *p)
{
	close_p(&p->trace_fd);
	close_p(&p->stats_fd);
	p->trace_fd = p->stats_fd = -EBADF;
}

static void use_target(struct pump *p, const struct pump_target *target)
{
	p->target = *target;
	p->size = target->size;
	p->allocated = target->size;
	p->chunk = CHUNK_MIN;
	p->no_prealloc = false;
	atomic_store(&p->published, target->size);
	atomic_store(&p->full, false);
	atomic_store(&p->trouble, 0);
}

/* The rest of a sub-buffer whose head is elsewhere, or lost, is of no use. @done: bytes of it that
 * are */
static void drop_torn(struct pump *p, uint64_t done)
{
	struct staging *s = in_hand(p);
	uint64_t rest = s ? MIN(p->subbuf_size - done, s->in_pipe) : 0;
	char scratch[512];

	atomic_fetch_add(&p->dropped_bytes, p->subbuf_size);
	while (rest > 0) {
		ssize_t n = read(s->pipe_read, scratch, MIN(rest, sizeof(scratch)));

		if (n <= 0)
			break;
		rest -= (uint64_t)n;
		s->in_pipe -= (uint64_t)n;
	}
	if (s && staging_bytes(s) == 0)
		let_go(p, s);
}

void pump_set_target(struct pump *p, const struct pump_target *target)
{
	struct staging *s = in_hand(p);
	uint64_t rest = s ? s->in_pipe % p->subbuf_size : 0;

	if (rest > 0)
		drop_torn(p, p->subbuf_size - rest);
	use_target(p, target);
}

/* Disk blocks ahead of the data: faster for O_DIRECT, and ENOSPC shows before anything is taken */
static int preallocate(struct pump *p, uint64_t bytes)
{
	uint64_t chunk;

	if (p->no_prealloc || p->size + bytes <= p->allocated)
		return 0;
	chunk = MAX(p->chunk, bytes);
	for (;;) {
		uint64_t end = MIN(MAX(p->allocated, p->size) + chunk, p->target.room);

		if (fallocate(p->target.buffered_fd, FALLOC_FL_KEEP_SIZE,
			      (off_t)(p->target.region + p->allocated),
			      (off_t)(end - p->allocated)) >= 0) {
			p->allocated = end;
			p->chunk = MIN(p->chunk * 2, MAX(p->target.chunk_max, CHUNK_MIN));
			return 0;
		}
		if (errno == EOPNOTSUPP) {
			p->no_prealloc = true;
			return 0;
		}
		if (errno == EINTR)
			continue;
		if ((errno != ENOSPC && errno != EDQUOT) || chunk <= bytes)
			return -errno;
		chunk = MAX(chunk / 4, bytes); /* what little is left */
	}
}

uint64_t pump_written(const struct pump *p)
{
	return p->size - p->size % p->subbuf_size;
}

/* Tell readers. The table is 8-byte aligned, so they never see half a number. */
static int publish(struct pump *p)
{
	uint64_t size = pump_written(p);
	uint64_t before = atomic_load_explicit(&p->published, memory_order_relaxed);
	int r;

	if (size == before)
		return 0;
	r = io_pwrite_all(p->target.buffered_fd, &size, sizeof(size), p->target.size_at);
	if (r < 0)
		return r;
	atomic_store(&p->published, size);
	if (size > before) {
		atomic_fetch_add(&p->total_bytes, size - before);
		atomic_fetch_add(&p->subbufs, (size - before) / p->subbuf_size);
	}
	return 0;
}

/* Some file systems take O_DIRECT at open and refuse it later: go on through the page cache */
static bool leave_direct(struct pump *p)
{
	if (p->target.data_fd == p->target.buffered_fd)
		return false;
	p->target.data_fd = p->target.buffered_fd;
	return true;
}

static int push_pipe(struct pump *p, struct staging *s)
{
	while (s->in_pipe > 0) {
		off_t at = (off_t)(p->target.region + p->size);
		ssize_t n = splice(s->pipe_read, NULL, p->target.data_fd, &at, s->in_pipe,
				   SPLICE_F_MOVE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EINVAL && leave_direct(p))
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		p->size += (uint64_t)n;
		s->in_pipe -= (uint64_t)n;
		/* An odd length (a nearly full disk) is no longer one that O_DIRECT takes */
		if (p->size % p->subbuf_size != 0 && s->in_pipe > 0)
			(void)leave_direct(p);
	}
	return 0;
}

/* Those that end by @to are in the file */
static void forget_read(struct pump *p, struct staging *s, uint64_t to)
{
	uint64_t at = s->memory_at - s->memory_at % p->subbuf_size;

	for (; at + p->subbuf_size <= to; at += p->subbuf_size)
		memset(s->memory + at, 0, DATA_AT);
	s->in_memory -= to - s->memory_at;
	s->memory_at = to;
}

static int push_memory(struct pump *p, struct staging *s)
{
	while (s->in_memory > 0) {
		ssize_t n = pwrite(p->target.data_fd, s->memory + s->memory_at, s->in_memory,
				   (off_t)(p->target.region + p->size));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EINVAL && leave_direct(p))
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		p->size += (uint64_t)n;
		forget_read(p, s, s->memory_at + (uint64_t)n);
		if (p->size % p->subbuf_size != 0)
			(void)leave_direct(p);
	}
	return 0;
}

static int push_slot(struct pump *p)
{
	int r;

	for (;;) {
		r = io_pwrite_all(p->target.data_fd, p->slot, p->subbuf_size,
				  p->target.region + p->size);
		if (r != -EINVAL || !leave_direct(p))
			break;
	}
	if (r < 0)
		return r;
	p->size += p->subbuf_size;
	r = publish(p);
	if (r < 0) {
		p->size -=
			p->subbuf_size; /* it stays in the slot, and goes to the same place again */
		return r;
	}
	slot_clear(p);
	return 0;
}

uint64_t pump_pending(const struct pump *p)
{
	uint64_t pending = slot_in_use(p) ? p->subbuf_size : 0;

	if (p->left)
		pending += staging_bytes(p->left);
	if (p->staging->holder == p)
		pending += staging_bytes(p->staging);
	return pending;
}

/* What is in hand already: it goes before anything new is taken out of the ring buffer */
static int push_pending(struct pump *p)
{
	uint64_t pending = pump_pending(p);
	struct staging *s;
	int r;

	if (pending == 0)
		return 0;
	if (p->size + pending > p->target.room)
		return PUMP_E_FULL;
	r = preallocate(p, pending);
	if (r < 0)
		return r;
	while ((s = in_hand(p))) {
		r = push_pipe(p, s);
		if (r >= 0)
			r = push_memory(p, s);
		if (r < 0)
			return r;
		let_go(p, s);
	}
	return slot_in_use(p) ? push_slot(p) : 0;
}

/* Full sub-buffers, by reference. 0: moved some; PUMP_E_EMPTY: none there */
static int pull_pipe(struct pump *p)
{
	struct staging *s = p->staging;
	ssize_t n;

	staging_hold(s, p);
	n = TEMP_FAILURE_RETRY(splice(p->trace_fd, NULL, s->pipe_write, NULL, pipe_capacity(p),
				      SPLICE_F_MOVE | SPLICE_F_NONBLOCK));
	if (n > 0) {
		s->in_pipe += (uint64_t)n;
		return 0;
	}
	staging_release(s); /* leaves errno alone */
	return n == 0 || errno == EAGAIN ? PUMP_E_EMPTY : -errno;
}

/* At most @n, full or not, by copy, as many as there are. Return: how many, or negative errno. */
static int pull_memory(struct pump *p, unsigned n)
{
	struct staging *s = p->staging;
	struct iovec iov[READ_MAX];
	ssize_t got;

	for (unsigned i = 0; i < n; i++)
		iov[i] = (struct iovec){s->memory + (size_t)i * p->subbuf_size, p->subbuf_size};
	staging_hold(s, p);
	got = TEMP_FAILURE_RETRY(readv(p->trace_fd, iov, (int)n));
	s->memory_at = 0;
	s->in_memory = got > 0 ? (uint64_t)got - (uint64_t)got % p->subbuf_size : 0;
	if (got > 0 && (uint64_t)got > s->in_memory) { /* a page of the memory could not be had */
		memset(s->memory + s->in_memory, 0, DATA_AT);
		atomic_fetch_add(&p->dropped_bytes, p->subbuf_size);
	}
	/* As with one: the last may have nothing in it */
	while (s->in_memory > 0 &&
	       ring_header_commit(s->memory + s->in_memory - p->subbuf_size) == 0) {
		s->in_memory -= p->subbuf_size;
		memset(s->memory + s->in_memory, 0, DATA_AT);
	}
	if (s->in_memory > 0)
		return (int)(s->in_memory / p->subbuf_size);
	staging_release(s); /* leaves errno alone */
	return got >= 0 || errno == EAGAIN || errno == ENODEV ? 0 : -errno;
}

/* One sub-buffer, full or not, by copy */
static int pull_slot(struct pump *p)
{
	ssize_t n;

	n = TEMP_FAILURE_RETRY(read(p->trace_fd, p->slot, p->subbuf_size));
	/* ENODEV: a possible CPU that has never been there has no ring buffer yet */
	if (n < 0 && errno != EAGAIN && errno != ENODEV)
		return -errno;
	/* 0 and EAGAIN both mean: nothing now */
	if (n <= 0 || !slot_in_use(p) || ring_header_commit(p->slot) == 0) {
		slot_clear(p);
		return PUMP_E_EMPTY;
	}
	return 0;
}

/*
 * The next data into the hand: by reference, else by copy where that is wanted.
 * @copies: sub-buffers taken by copy in a row
 */
static int pull(struct pump *p, bool flush, unsigned *copies)
{
	int r = pull_pipe(p);

	/* The kernel allocates each sub-buffer for splice, in one piece; read has one of its own */
	if (r == -ENOMEM)
		return pull_slot(p);
	if (r == 0) {
		*copies = 0;
		atomic_store_explicit(&p->mapped_elsewhere, false, memory_order_relaxed);
	}
	/* Readable, and splice gives nothing: a partial sub-buffer, or somebody has mapped the CPU
	 */
	if (r != PUMP_E_EMPTY || (!flush && atomic_load(&p->mapped_elsewhere) == false))
		return r;
	r = pull_slot(p);
	if (r == 0 && !is_partial(p, p->slot) && ++*copies >= COPIES_MEAN_MAPPED)
		atomic_store_explicit(&p->mapped_elsewhere, true, memory_order_relaxed);
	return r;
}

/* Until there is no more, or the budget is used up, or something is in the way */
static int move(struct pump *p, bool flush, unsigned budget)
{
	bool partial = false, tail = false;
	unsigned copies = 0;
	int r;

	for (bool first = true;; first = false) {
		r = push_pending(p);
		if (r != 0)
			return r;
		if (tail || (partial && atomic_load(&p->mapped_elsewhere)))
			return PUMP_E_EMPTY;
		if (budget-- == 0)
			return partial ? PUMP_E_EMPTY : PUMP_E_MORE;
		if (p->size + pipe_capacity(p) > p->target.room)
			return PUMP_E_FULL;
		r = preallocate(p, pipe_capacity(p));
		if (r < 0)
			return r;
		r = pull(p, (flush || first) && !partial, &copies);
		if (r != 0)
			return r;
		/*
		 * What little has come while the last was being written: more would come while this
		 * is, a small write after the other, each as dear as a large one.
		 */
		tail = !flush && in_hand(p) && p->staging->in_pipe < pipe_capacity(p) / TAIL_PART;
		/*
		 * One that is far from full was the last there is, and the next is the next
		 * flush's; or it was the rest of one that had been read before, with full ones
		 * behind it.
		 */
		partial = slot_in_use(p) && is_partial(p, p->slot);
	}
}

/* What a wake-up says is full, by copy, and no more: what comes meanwhile is not full yet.
 * @most: at a time */
static int move_read(struct pump *p, unsigned quota, unsigned most)
{
	bool empty = false;

	for (;;) {
		unsigned n = MIN(quota, most);
		int r = push_pending(p);

		if (r != 0)
			return r;
		if (n == 0 || empty)
			return empty ? PUMP_E_EMPTY : PUMP_E_MORE;
		if (p->size + (uint64_t)n * p->subbuf_size > p->target.room)
			return PUMP_E_FULL;
		r = preallocate(p, (uint64_t)n * p->subbuf_size);
		if (r >= 0)
			r = pull_memory(p, n);
		if (r < 0)
			return r;
		empty = (unsigned)r < n;
		quota -= n;
	}
}

static int move_one_way(struct pump *p, bool flush, unsigned budget)
{
	unsigned quota = atomic_load_explicit(&p->quota, memory_order_relaxed);
	unsigned most = MIN(quota, MIN(STAGING_MEMORY / p->subbuf_size, READ_MAX));

	if (most == 0 || flush || budget == 0 ||
	    !staging_populate(p->staging, (uint64_t)most * p->subbuf_size))
		return move(p, flush, budget);
	return move_read(p, quota, most);
}

int pump_run(struct pump *p, bool flush, unsigned budget)
{
	int r, published;

	if (is_held(p))
		return PUMP_E_HELD;
	r = move_one_way(p, flush, budget);
	/*
	 * Once a run, not once a pipe-full: the small buffered write waits for the file's lock,
	 * which the other CPUs' direct writes hold, and keeps them waiting in turn.
	 */
	published = publish(p);
	if (r >= 0 && published < 0)
		r = published;
	atomic_store(&p->full, r == PUMP_E_FULL);
	atomic_store(&p->trouble, r < 0 ? r : 0);
	return r;
}

void pump_note_stats(struct pump *p)
{
	ssize_t n = pread(p->stats_fd, p->stats, sizeof(p->stats) - 1, 0);

	p->stats[MAX(n, 0)] = '\0';
}

void pump_retarget(struct pump *p, const struct pump_target *target)
{
	struct staging *s;
	uint64_t torn;

	(void)push_pending(p);
	/* What the old file does not tell of is cut off with what is preallocated */
	if (publish(p) < 0)
		atomic_fetch_add(&p->dropped_bytes, pump_written(p) - atomic_load(&p->published));
	pump_note_stats(p);
	/* The old disk took a part of a sub-buffer and no more */
	torn = p->size % p->subbuf_size;
	s = in_hand(p);
	if (torn > 0 && s && s->in_memory > 0) { /* there it is whole */
		s->memory_at -= torn;
		s->in_memory += torn;
	} else if (torn > 0) {
		drop_torn(p, torn);
	}
	use_target(p, target);
}
