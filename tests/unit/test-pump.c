/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pipe stands in for trace_pipe_raw, a memfd for the file. splice, fallocate and pwrite are
 * wrapped so that disks can fill up, fail and be slow to order; without orders they do the real
 * thing.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "recorder/pump.h"

#define REGION	      (64 * KIB)
#define SIZE_AT	      1024
#define OTHER_SIZE_AT 2048
#define ROOM	      (8 * MIB)

/* What the wrapped calls do next: an errno, or a length to stop at; 0: the real thing */
struct order {
	int error;
	size_t most;
};

struct calls {
	struct order queue[16];
	unsigned n, next;
	unsigned calls;
};

static struct {
	int trace_fd, direct_fd;
	bool splice_empty;   /* of the trace fd: EAGAIN, as with a partial or mapped page */
	bool direct_refused; /* EINVAL for all that goes to direct_fd */
	unsigned direct_calls;
	struct calls pull, push, fallocate, pwrite_data, pwrite_size;
	off_t allocated_from, allocated_to;
} world;

static void order(struct calls *calls, int error, size_t most)
{
	assert_true(calls->n < ARRAY_SIZE(calls->queue));
	calls->queue[calls->n++] = (struct order){error, most};
}

static struct order next_order(struct calls *calls)
{
	calls->calls++;
	return calls->next < calls->n ? calls->queue[calls->next++] : (struct order){};
}

ssize_t __real_splice(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags);
ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags);
int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset);

static int refuse_direct(int fd)
{
	if (fd != world.direct_fd)
		return 0;
	world.direct_calls++;
	return world.direct_refused ? -EINVAL : 0;
}

ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags)
{
	bool pull = in == world.trace_fd;
	struct order o = next_order(pull ? &world.pull : &world.push);

	if (pull && world.splice_empty)
		o.error = EAGAIN;
	if (refuse_direct(out) < 0)
		o.error = EINVAL;
	if (o.error) {
		errno = o.error;
		return -1;
	}
	return __real_splice(in, in_at, out, out_at, o.most ? MIN(size, o.most) : size, flags);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
	struct order o = next_order(&world.fallocate);

	assert_int_equal(mode, FALLOC_FL_KEEP_SIZE);
	assert_true(size > 0);
	if (o.error || (o.most && (size_t)size > o.most)) {
		errno = o.error ? o.error : ENOSPC;
		return -1;
	}
	world.allocated_from = offset;
	world.allocated_to = offset + size;
	return __real_fallocate(fd, mode, offset, size);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset)
{
	struct order o = next_order(size == 8 ? &world.pwrite_size : &world.pwrite_data);

	if (refuse_direct(fd) < 0)
		o.error = EINVAL;
	if (o.error) {
		errno = o.error;
		return -1;
	}
	return __real_pwrite(fd, data, o.most ? MIN(size, o.most) : size, offset);
}

struct fixture {
	unsigned subbuf;
	int ring; /* the end of the fake ring buffer to write to */
	int file, direct;
	char *slot;
	struct pump pump;
	struct pump_target target;
	uint64_t made; /* sub-buffers */
};

/* Sub-buffer number @n: its timestamp is 1000 + n, every byte of its data n */
static void make_subbuf(char *bytes, unsigned size, uint64_t n, uint32_t commit)
{
	uint64_t timestamp = 1000 + n, word = commit;

	memset(bytes, (int)n & 0xff, size);
	memcpy(bytes, &timestamp, 8);
	memcpy(bytes + 8, &word, 8);
}

static void put_into(struct fixture *f, int fd, unsigned n, uint32_t commit)
{
	_cleanup_free_ char *bytes = malloc(f->subbuf);

	assert_non_null(bytes);
	while (n--) {
		make_subbuf(bytes, f->subbuf, f->made++, commit);
		assert_int_equal(write(fd, bytes, f->subbuf), f->subbuf);
	}
}

static void put(struct fixture *f, unsigned n)
{
	put_into(f, f->ring, n, f->subbuf - 16);
}

static void open_fixture(struct fixture *f, unsigned subbuf, int pipe_read, char *slot)
{
	int fds[2];

	memset(&world, 0, sizeof(world));
	*f = (struct fixture){.subbuf = subbuf, .slot = slot};
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, MIB) >= 0);
	f->ring = fds[1];
	world.trace_fd = fds[0];
	f->file = memfd_create("test-pump", MFD_CLOEXEC);
	f->direct = fcntl(f->file, F_DUPFD_CLOEXEC, 0);
	assert_true(f->file >= 0 && f->direct >= 0);
	world.direct_fd = f->direct;
	assert_int_equal(ftruncate(f->file, (off_t)(REGION + ROOM)), 0);
	assert_int_equal(pump_init(&f->pump, 3, subbuf, fds[0], -1, pipe_read, 64 * KIB, slot), 0);
	f->target = (struct pump_target){
		.data_fd = f->file,
		.buffered_fd = f->file,
		.region = REGION,
		.room = ROOM,
		.size_at = SIZE_AT,
		.chunk_max = 4 * MIB,
	};
}

static void begin(struct fixture *f, unsigned subbuf)
{
	open_fixture(f, subbuf, -1, calloc(1, subbuf));
	assert_non_null(f->slot);
	pump_set_target(&f->pump, &f->target);
}

static void end(struct fixture *f)
{
	pump_done(&f->pump);
	close(f->ring);
	close(f->file);
	close(f->direct);
	free(f->slot);
}

static uint64_t size_in_file(struct fixture *f, uint64_t at)
{
	uint64_t size;

	assert_int_equal(io_pread_all(f->file, &size, sizeof(size), at), 0);
	return size;
}

/* The file holds exactly sub-buffers @first … @first + @n - 1, and says so */
static void assert_data(struct fixture *f, uint64_t first, uint64_t n)
{
	_cleanup_free_ char *want = malloc(f->subbuf), *is = malloc(f->subbuf);
	const struct pump_target *t = &f->pump.target;

	assert_non_null(want);
	assert_non_null(is);
	assert_int_equal(size_in_file(f, t->size_at), n * f->subbuf);
	assert_int_equal(atomic_load(&f->pump.published), n * f->subbuf);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(io_pread_all(f->file, is, f->subbuf, t->region + i * f->subbuf),
				 0);
		make_subbuf(want, f->subbuf, first + i, 0);
		memcpy(want + 8, is + 8, 8);
		assert_memory_equal(is, want, f->subbuf);
	}
}

static unsigned in_ring(struct fixture *f)
{
	int waiting;

	assert_int_equal(ioctl(world.trace_fd, FIONREAD, &waiting), 0);
	return (unsigned)waiting / f->subbuf;
}

static bool slot_used(struct fixture *f)
{
	uint64_t timestamp;

	memcpy(&timestamp, f->slot, 8);
	return timestamp != 0;
}

static void test_moves_and_publishes(void **state)
{
	const unsigned sizes[] = {4096, 16384};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct fixture f;

		begin(&f, sizes[i]);
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		assert_int_equal(world.pwrite_size.calls, 0);
		put(&f, 10);
		assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
		assert_data(&f, 0, 10);
		put(&f, 3);
		assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
		assert_data(&f, 0, 13);
		assert_int_equal(atomic_load(&f.pump.subbufs), 13);
		assert_int_equal(atomic_load(&f.pump.total_bytes), 13 * f.subbuf);
		assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
		end(&f);
	}
}

static void test_goes_on_behind_what_is_there(void **state)
{
	struct fixture f;

	open_fixture(&f, 4096, -1, calloc(1, 4096));
	f.target.size = 8192;
	pump_set_target(&f.pump, &f.target);
	assert_int_equal(atomic_load(&f.pump.published), 8192);
	put(&f, 1);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(size_in_file(&f, SIZE_AT), 3 * 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 4096);
	end(&f);
}

static void test_budget(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 100); /* the pipe holds 16 */
	assert_int_equal(f.pump.pipe_capacity, 16 * 4096);
	assert_int_equal(pump_run(&f.pump, false, 0), PUMP_E_MORE);
	assert_int_equal(in_ring(&f), 100);
	assert_int_equal(pump_run(&f.pump, false, 2), PUMP_E_MORE);
	assert_data(&f, 0, 32);
	assert_int_equal(in_ring(&f), 68);
	assert_int_equal(pump_run(&f.pump, false, 100), PUMP_E_EMPTY);
	assert_data(&f, 0, 100);
	end(&f);
}

static void test_full_then_retarget(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	f.pump.target.room = 20 * 4096;
	put(&f, 40);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_FULL);
	assert_true(atomic_load(&f.pump.full));
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	assert_data(&f, 0, 16); /* the next pipe-full might not fit */
	assert_int_equal(in_ring(&f), 24);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_FULL);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	pump_retarget(&f.pump, &f.target);
	assert_false(atomic_load(&f.pump.full));
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 16, 24);
	assert_int_equal(size_in_file(&f, SIZE_AT), 16 * 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 40 * 4096);
	end(&f);
}

/* The old file gets what was taken for it, if it takes it at last */
static void test_retarget_pushes_first(void **state)
{
	_cleanup_close_ int stats = memfd_create("stats", MFD_CLOEXEC);
	struct fixture f;

	begin(&f, 4096);
	assert_int_equal(write(stats, "overrun: 7\n", 11), 11);
	f.pump.stats_fd = TAKE_FD(stats);
	put(&f, 3);
	order(&world.push, 0, 5000);
	order(&world.push, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(size_in_file(&f, SIZE_AT), 3 * 4096);
	assert_int_equal(size_in_file(&f, OTHER_SIZE_AT), 0);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 3 * 4096);
	assert_string_equal(f.pump.stats, "overrun: 7\n");
	put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 3, 2);
	end(&f);
}

/* What is in the pipe already goes to the next target when this one has no room for it */
static void test_full_with_data_in_hand(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 4);
	order(&world.push, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -ENOSPC);
	assert_int_equal(f.pump.in_pipe, 4 * 4096);
	f.pump.target.room = 3 * 4096;
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_FULL);
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	f.target.region += MIB;
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 4);
	end(&f);
}

static void test_fallocate_enospc_takes_nothing(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 5);
	/* 1 MiB, then less and less, at last what the pipe holds */
	for (unsigned i = 0; i < 3; i++)
		order(&world.fallocate, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -ENOSPC);
	assert_int_equal(world.fallocate.calls, 3);
	assert_int_equal(atomic_load(&f.pump.trouble), -ENOSPC);
	assert_int_equal(in_ring(&f), 5);
	assert_int_equal(world.pull.calls, 0);
	assert_int_equal(f.pump.in_pipe, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(atomic_load(&f.pump.trouble), 0);
	assert_data(&f, 0, 5);
	end(&f);
}

/* A quota is a disk that is full, too */
static void test_quota_is_a_full_disk(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 5);
	order(&world.fallocate, EDQUOT, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_true(world.allocated_to - world.allocated_from < (off_t)MIB);
	assert_data(&f, 0, 5);
	end(&f);
}

static void test_little_space_left(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 5);
	order(&world.fallocate, 0, 300 * KIB);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.allocated_from, REGION);
	assert_int_equal(world.allocated_to - world.allocated_from, 256 * KIB);
	assert_data(&f, 0, 5);
	end(&f);
}

static void test_fallocate_other_errors(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 5);
	order(&world.fallocate, EINTR, 0);
	order(&world.fallocate, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	assert_int_equal(in_ring(&f), 5);
	order(&world.fallocate, EOPNOTSUPP, 0); /* then never asked again */
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.fallocate.calls, 3);
	put(&f, 64);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.fallocate.calls, 3);
	assert_data(&f, 0, 69);
	end(&f);
}

static void test_chunks_grow_to_their_cap(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	assert_int_equal(pump_run(&f.pump, true, 1), PUMP_E_EMPTY);
	assert_int_equal(world.allocated_to - REGION, MIB);
	for (unsigned i = 0; i < 15; i++) {
		put(&f, 16);
		assert_int_equal(pump_run(&f.pump, false, 2), PUMP_E_EMPTY);
	}
	assert_int_equal(world.fallocate.calls, 1);
	put(&f, 32);
	assert_int_equal(pump_run(&f.pump, false, 4), PUMP_E_EMPTY);
	assert_int_equal(world.fallocate.calls, 2);
	assert_int_equal(world.allocated_from, REGION + MIB);
	assert_int_equal(world.allocated_to, REGION + 3 * MIB);
	assert_int_equal(f.pump.chunk, 4 * MIB);
	for (unsigned i = 0; i < 100; i++) {
		put(&f, 16);
		(void)pump_run(&f.pump, false, 1);
	}
	/* never beyond the region, and not larger than asked for */
	assert_int_equal(world.allocated_to, REGION + ROOM);
	assert_int_equal(f.pump.chunk, 4 * MIB);
	end(&f);
}

static void test_short_splices(void **state)
{
	const size_t lengths[] = {4096, 1, 511, 512, 4095, 4097, 12288, 10000};
	struct fixture f;

	begin(&f, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		order(&world.push, i % 3 == 2 ? EINTR : 0, lengths[i]);
	put(&f, 40);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 40);
	end(&f);
}

/* A size that splits a sub-buffer is never published */
static void test_torn_by_an_error(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 3);
	order(&world.push, 0, 5000);
	order(&world.push, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	assert_int_equal(size_in_file(&f, SIZE_AT), 4096);
	assert_int_equal(atomic_load(&f.pump.published), 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 4096);
	assert_int_equal(f.pump.size, 5000);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 3);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
	end(&f);
}

static void test_torn_then_retargeted(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 3);
	order(&world.push, 0, 5000);
	order(&world.push, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -ENOSPC);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	order(&world.push, ENOSPC, 0); /* the old file is asked once more */
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 4096);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 2, 1);
	assert_int_equal(size_in_file(&f, SIZE_AT), 4096);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 2 * 4096);
	end(&f);
}

static void test_direct_refused(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	f.target.data_fd = f.direct;
	pump_set_target(&f.pump, &f.target);
	put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 1);
	world.direct_refused = true;
	put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 2);
	put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 2); /* not asked again in this file */
	assert_data(&f, 0, 6);
	end(&f);

	begin(&f, 4096); /* by copy as well */
	f.target.data_fd = f.direct;
	pump_set_target(&f.pump, &f.target);
	world.direct_refused = world.splice_empty = true;
	put_into(&f, f.ring, 1, 100);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 1);
	order(&world.pwrite_data, EINVAL, 0); /* and buffered, EINVAL is an error */
	put_into(&f, f.ring, 1, 100);
	assert_int_equal(pump_run(&f.pump, true, 8), -EINVAL);
	end(&f);
}

/* An odd length on its way must not be continued with O_DIRECT */
static void test_odd_length_leaves_direct(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	f.target.data_fd = f.direct;
	pump_set_target(&f.pump, &f.target);
	put(&f, 4);
	order(&world.push, 0, 4096 + 512);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_int_equal(world.direct_calls, 1);
	assert_data(&f, 0, 4);
	end(&f);
}

static void test_pull_errors(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 2);
	order(&world.pull, EINTR, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 2);
	order(&world.pull, EIO, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EIO);
	assert_int_equal(atomic_load(&f.pump.trouble), -EIO);
	end(&f);
}

/* The size could not be written: the data waits in the file, nothing is written twice */
static void test_publish_fails(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	put(&f, 3);
	order(&world.pwrite_size, EDQUOT, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), -EDQUOT);
	assert_int_equal(size_in_file(&f, SIZE_AT), 0);
	assert_int_equal(atomic_load(&f.pump.total_bytes), 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 3);
	end(&f);
}

static void test_partial_subbuf(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	world.splice_empty = true; /* as the kernel does with a partial one */
	put_into(&f, f.ring, 1, 200);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 1);
	assert_false(slot_used(&f));
	/* Woken up, and splice gives nothing: read once */
	put_into(&f, f.ring, 2, 200);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 2);
	assert_int_equal(in_ring(&f), 1);
	assert_false(atomic_load(&f.pump.mapped_elsewhere));
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 3);
	/* No events in it: nothing there */
	put_into(&f, f.ring, 1, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 3);
	assert_false(slot_used(&f));
	end(&f);
}

static void test_missed_flags_are_kept(void **state)
{
	struct fixture f;
	uint64_t commit;

	begin(&f, 4096);
	world.splice_empty = true;
	put_into(&f, f.ring, 1, 3U << 30 | 200);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_int_equal(io_pread_all(f.file, &commit, 8, REGION + 8), 0);
	assert_int_equal(commit, 3U << 30 | 200);
	assert_data(&f, 0, 1);
	end(&f);
}

static void test_slot_is_kept_until_written(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	world.splice_empty = true;
	put_into(&f, f.ring, 1, 200);
	order(&world.pwrite_data, 0, 1000);
	order(&world.pwrite_data, ENOSPC, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -ENOSPC);
	assert_true(slot_used(&f));
	assert_int_equal(size_in_file(&f, SIZE_AT), 0);
	/* it goes before what has come since */
	world.splice_empty = false;
	put(&f, 2);
	order(&world.pwrite_data, EINTR, 0);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 3);
	assert_false(slot_used(&f));
	end(&f);
}

/* Cleared only once readers can see it in the file; and never in the file twice */
static void test_slot_publish_fails(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	world.splice_empty = true;
	put_into(&f, f.ring, 1, 200);
	order(&world.pwrite_size, EIO, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -EIO);
	assert_true(slot_used(&f));
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_false(slot_used(&f));
	assert_data(&f, 0, 1);
	put_into(&f, f.ring, 1, 200);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 2);
	end(&f);
}

static void test_slot_goes_to_the_next_target(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	world.splice_empty = true;
	put_into(&f, f.ring, 1, 200);
	order(&world.pwrite_data, EIO, 0);
	assert_int_equal(pump_run(&f.pump, true, 8), -EIO);
	f.target.region += MIB;
	f.target.size_at = OTHER_SIZE_AT;
	order(&world.pwrite_data, EIO, 0); /* the old file is asked once more */
	pump_retarget(&f.pump, &f.target);
	assert_int_equal(pump_run(&f.pump, false, 0), PUMP_E_MORE); /* a hand-over does just this */
	assert_data(&f, 0, 1);
	assert_int_equal(size_in_file(&f, SIZE_AT), 0);
	assert_false(slot_used(&f));
	end(&f);
}

static void test_mapped(void **state)
{
	struct fixture f;

	begin(&f, 4096);
	world.splice_empty = true;
	put(&f, 20);
	assert_int_equal(pump_run(&f.pump, true, 8), PUMP_E_MORE); /* bounded */
	assert_true(atomic_load(&f.pump.mapped_elsewhere));
	assert_data(&f, 0, 8);
	assert_int_equal(pump_run(&f.pump, false, 100), PUMP_E_EMPTY);
	assert_data(&f, 0, 20);
	/* unmapped */
	world.splice_empty = false;
	put(&f, 2);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_false(atomic_load(&f.pump.mapped_elsewhere));
	assert_data(&f, 0, 22);
	end(&f);
}

static int old_pipe(struct fixture *f, unsigned torn, unsigned n)
{
	char rest[4096];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	memset(rest, 0xee, sizeof(rest));
	if (torn)
		assert_int_equal(write(fds[1], rest, torn), torn);
	*f = (struct fixture){.subbuf = 4096};
	put_into(f, fds[1], n, 4080);
	close(fds[1]);
	return fds[0];
}

static void test_adopted_pipe(void **state)
{
	struct fixture f;
	uint64_t made;
	int fd = old_pipe(&f, 0, 5);

	made = f.made;
	open_fixture(&f, 4096, fd, calloc(1, 4096));
	f.made = made;
	assert_int_equal(f.pump.in_pipe, 5 * 4096);
	pump_set_target(&f.pump, &f.target);
	put(&f, 20);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 25);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 0);
	end(&f);
}

static void test_adopted_pipe_torn(void **state)
{
	struct fixture f;
	uint64_t made;
	int fd = old_pipe(&f, 1500, 3);

	made = f.made;
	open_fixture(&f, 4096, fd, calloc(1, 4096));
	f.made = made;
	pump_set_target(&f.pump, &f.target);
	assert_int_equal(f.pump.in_pipe, 3 * 4096);
	assert_int_equal(atomic_load(&f.pump.dropped_bytes), 4096);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 3);
	end(&f);
}

/* Pipe and slot of a killed process: both go into the file, in the order they were taken */
static void test_adopted_slot(void **state)
{
	struct fixture f;
	uint64_t made;
	char *slot = calloc(1, 4096);
	int fd = old_pipe(&f, 0, 2);

	made = f.made;
	make_subbuf(slot, 4096, made++, 300);
	open_fixture(&f, 4096, fd, slot);
	f.made = made;
	pump_set_target(&f.pump, &f.target);
	put(&f, 1);
	assert_int_equal(pump_run(&f.pump, false, 8), PUMP_E_EMPTY);
	assert_data(&f, 0, 4);
	assert_false(slot_used(&f));
	end(&f);
}

/* A failed pump_init() leaves the fds the caller's */
static void test_init_refused(void **state)
{
	_cleanup_close_ int file = memfd_create("no-pipe", MFD_CLOEXEC);
	_cleanup_close_ int trace = memfd_create("trace", MFD_CLOEXEC);
	char slot[4096] = {};
	struct pump pump;

	assert_true(pump_init(&pump, 0, 4096, trace, -1, file, MIB, slot) < 0);
	assert_true(fcntl(file, F_GETFD) >= 0);
	assert_true(fcntl(trace, F_GETFD) >= 0);
	assert_true(pump_init(&pump, 0, 4096, trace, -1, 1 << 20, MIB, slot) < 0);
	pump_done(&pump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves_and_publishes),
		cmocka_unit_test(test_goes_on_behind_what_is_there),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_full_then_retarget),
		cmocka_unit_test(test_retarget_pushes_first),
		cmocka_unit_test(test_full_with_data_in_hand),
		cmocka_unit_test(test_fallocate_enospc_takes_nothing),
		cmocka_unit_test(test_quota_is_a_full_disk),
		cmocka_unit_test(test_little_space_left),
		cmocka_unit_test(test_fallocate_other_errors),
		cmocka_unit_test(test_chunks_grow_to_their_cap),
		cmocka_unit_test(test_short_splices),
		cmocka_unit_test(test_torn_by_an_error),
		cmocka_unit_test(test_torn_then_retargeted),
		cmocka_unit_test(test_direct_refused),
		cmocka_unit_test(test_odd_length_leaves_direct),
		cmocka_unit_test(test_pull_errors),
		cmocka_unit_test(test_publish_fails),
		cmocka_unit_test(test_partial_subbuf),
		cmocka_unit_test(test_missed_flags_are_kept),
		cmocka_unit_test(test_slot_is_kept_until_written),
		cmocka_unit_test(test_slot_publish_fails),
		cmocka_unit_test(test_slot_goes_to_the_next_target),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_adopted_pipe),
		cmocka_unit_test(test_adopted_pipe_torn),
		cmocka_unit_test(test_adopted_slot),
		cmocka_unit_test(test_init_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
