/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "recorder/ring-header.h"
#include "tests/unit/pump-fixture.h"

struct world world;

void world_order(struct calls *calls, int error, size_t most)
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
ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __real_readv(int fd, const struct iovec *iov, int n);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int n);
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

	if (pull)
		world.noted = atomic_load(&world.note->cpu);
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

ssize_t __wrap_read(int fd, void *data, size_t size)
{
	if (fd != world.trace_fd || !world.read_error)
		return __real_read(fd, data, size);
	errno = world.read_error;
	return -1;
}

ssize_t __wrap_readv(int fd, const struct iovec *iov, int n)
{
	if (fd != world.trace_fd || !world.read_error)
		return __real_readv(fd, iov, n);
	errno = world.read_error;
	return -1;
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

void fixture_make_subbuf(char *bytes, unsigned size, uint64_t n, uint32_t commit)
{
	uint64_t timestamp = 1000 + n, word = commit;

	memset(bytes, (int)n & 0xff, size);
	memcpy(bytes, &timestamp, 8);
	memcpy(bytes + 8, &word, 8);
}

void fixture_put_into(struct fixture *f, int fd, unsigned n, uint32_t commit)
{
	_cleanup_free_ char *bytes = malloc(f->subbuf);

	assert_non_null(bytes);
	while (n--) {
		fixture_make_subbuf(bytes, f->subbuf, f->made++, commit);
		assert_int_equal(write(fd, bytes, f->subbuf), f->subbuf);
	}
}

void fixture_put(struct fixture *f, unsigned n)
{
	fixture_put_into(f, f->ring, n, f->subbuf - 16);
}

/* With a pipe of 64 KiB */
static void open_staging(struct fixture *f, int pipe_read)
{
	int fds[2] = {-1, -1};

	if (pipe_read < 0) {
		assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
		pipe_read = fds[0];
	}
	assert_int_equal(staging_adopt(&f->staging, &f->note, pipe_read), 0);
	close_p(&fds[1]);
}

void fixture_open(struct fixture *f, unsigned subbuf, int pipe_read, char *slot)
{
	int fds[2];

	memset(&world, 0, sizeof(world));
	*f = (struct fixture){.subbuf = subbuf, .slot = slot};
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, MIB) >= 0);
	f->ring = fds[1];
	world.trace_fd = fds[0];
	world.note = &f->note;
	f->file = memfd_create("pump-fixture", MFD_CLOEXEC);
	f->direct = fcntl(f->file, F_DUPFD_CLOEXEC, 0);
	assert_true(f->file >= 0 && f->direct >= 0);
	world.direct_fd = f->direct;
	assert_int_equal(ftruncate(f->file, (off_t)(REGION + ROOM)), 0);
	open_staging(f, pipe_read);
	pump_init(&f->pump, 3, subbuf, fds[0], -1, &f->staging, slot);
	if (f->staging.in_pipe > 0)
		pump_adopt(&f->pump, &f->staging);
	f->target = (struct pump_target){
		.data_fd = f->file,
		.buffered_fd = f->file,
		.region = REGION,
		.room = ROOM,
		.size_at = SIZE_AT,
		.chunk_max = 4 * MIB,
	};
}

void fixture_begin(struct fixture *f, unsigned subbuf)
{
	fixture_open(f, subbuf, -1, calloc(1, subbuf));
	assert_non_null(f->slot);
	pump_set_target(&f->pump, &f->target);
}

void fixture_begin_read(struct fixture *f, unsigned subbuf, unsigned quota)
{
	fixture_begin(f, subbuf);
	f->memory = mmap(NULL, STAGING_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	assert_true(f->memory != MAP_FAILED);
	staging_use_memory(&f->staging, f->memory, subbuf);
	atomic_store(&f->pump.quota, quota);
}

void fixture_assert_no_memory_used(struct fixture *f)
{
	assert_int_equal(f->staging.in_memory, 0);
	assert_int_equal(atomic_load(&f->note.cpu), 0);
	for (size_t at = 0; at < STAGING_MEMORY; at += f->subbuf)
		assert_int_equal(ring_header_time(f->memory + at), 0);
}

void fixture_end(struct fixture *f)
{
	pump_done(&f->pump);
	staging_done(&f->staging);
	close(f->ring);
	close(f->file);
	close(f->direct);
	free(f->slot);
	if (f->memory)
		(void)munmap(f->memory, STAGING_MEMORY);
}

uint64_t fixture_size_in_file(struct fixture *f, uint64_t at)
{
	uint64_t size;

	assert_int_equal(io_pread_all(f->file, &size, sizeof(size), at), 0);
	return size;
}

void fixture_assert_data(struct fixture *f, uint64_t first, uint64_t n)
{
	_cleanup_free_ char *want = malloc(f->subbuf), *is = malloc(f->subbuf);
	const struct pump_target *t = &f->pump.target;

	assert_non_null(want);
	assert_non_null(is);
	assert_int_equal(fixture_size_in_file(f, t->size_at), n * f->subbuf);
	assert_int_equal(atomic_load(&f->pump.published), n * f->subbuf);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(io_pread_all(f->file, is, f->subbuf, t->region + i * f->subbuf),
				 0);
		fixture_make_subbuf(want, f->subbuf, first + i, 0);
		memcpy(want + 8, is + 8, 8);
		assert_memory_equal(is, want, f->subbuf);
	}
}

unsigned fixture_in_ring(struct fixture *f)
{
	int waiting;

	assert_int_equal(ioctl(world.trace_fd, FIONREAD, &waiting), 0);
	return (unsigned)waiting / f->subbuf;
}

bool fixture_slot_used(struct fixture *f)
{
	uint64_t timestamp;

	memcpy(&timestamp, f->slot, 8);
	return timestamp != 0;
}
