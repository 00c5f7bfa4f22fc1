/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/worker-fixture.h"

#define SIZE_AT	  64
#define REGION_AT (64 * KIB)

struct world world;

static _Atomic unsigned wakeups; /* of all workers */

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
ssize_t __real_splice(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags);
ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	int r = __real_epoll_wait(fd, events, n, timeout);

	atomic_fetch_add(&wakeups, 1);
	return r;
}

static int fail_with(int error)
{
	errno = error;
	return -1;
}

static ssize_t endless(int out)
{
	char page[SUBBUF] = {1};

	page[8] = 64;
	(void)usleep(100);
	return write(out, page, sizeof(page));
}

ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags)
{
	int waiting = 0;

	if (out_at) /* into the file */
		return atomic_load(&world.disk_error)
			       ? fail_with(atomic_load(&world.disk_error))
			       : __real_splice(in, in_at, out, out_at, size, flags);
	if (atomic_load(&world.slow_pulls))
		return endless(out);
	if (atomic_load(&world.splice_empty) || ioctl(in, FIONREAD, &waiting) < 0 ||
	    waiting < SUBBUF)
		return fail_with(EAGAIN);
	return __real_splice(in, in_at, out, out_at, MIN(size, (size_t)waiting / SUBBUF * SUBBUF),
			     flags);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset)
{
	if (size == SUBBUF && atomic_load(&world.disk_error))
		return fail_with(atomic_load(&world.disk_error));
	return __real_pwrite(fd, data, size, offset);
}

static struct pump_target target(const struct fixture *f, unsigned file, unsigned cpu)
{
	return (struct pump_target){
		.data_fd = f->file,
		.buffered_fd = f->file,
		.region = REGION_AT + (file * N_CPUS + cpu) * ROOM,
		.room = ROOM,
		.size_at = SIZE_AT + (file * N_CPUS + cpu) * 16,
		.chunk_max = MIB,
	};
}

void fixture_begin(struct fixture *f, int64_t bytes_left)
{
	int fds[2];

	atomic_store(&world.splice_empty, false);
	atomic_store(&world.disk_error, 0);
	atomic_store(&world.slow_pulls, false);
	memset(f, 0, sizeof(*f));
	f->file = memfd_create("worker-fixture", MFD_CLOEXEC);
	f->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(f->file >= 0 && f->notify >= 0);
	assert_int_equal(ftruncate(f->file, (off_t)(REGION_AT + 2 * N_CPUS * ROOM)), 0);
	f->slots = calloc(N_CPUS, SUBBUF);
	assert_non_null(f->slots);
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(staging_adopt(&f->staging, &f->note, fds[0]), 0);
	close(fds[1]);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		struct pump_target first = target(f, 0, cpu);

		assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
		assert_true(fcntl(fds[1], F_SETPIPE_SZ, MIB) >= 0);
		f->ring[cpu] = fds[1];
		f->ring_read[cpu] = fds[0];
		pump_init(&f->pumps[cpu], cpu, SUBBUF, fds[0], -1, &f->staging,
			  f->slots + cpu * SUBBUF);
		pump_set_target(&f->pumps[cpu], &first);
		f->order[cpu] = &f->pumps[cpu];
		f->next[cpu] = target(f, 1, cpu);
	}
	atomic_store(&f->bytes_left, bytes_left);
	assert_int_equal(
		worker_new(f->order, f->next, N_CPUS, f->notify, &f->bytes_left, &f->worker), 0);
}

void fixture_end(struct fixture *f)
{
	worker_free(f->worker);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		pump_done(&f->pumps[cpu]);
		close(f->ring[cpu]);
	}
	staging_done(&f->staging);
	free(f->slots);
	close(f->file);
	close(f->notify);
}

void fixture_put(struct fixture *f, unsigned cpu, unsigned n, uint32_t commit)
{
	char page[SUBBUF];
	uint64_t words[2] = {7, commit}; /* a timestamp is never 0 */

	memset(page, 0x5a, sizeof(page));
	memcpy(page, words, sizeof(words));
	while (n--)
		assert_int_equal(write(f->ring[cpu], page, SUBBUF), SUBBUF);
}

unsigned fixture_in_ring(struct fixture *f, unsigned cpu)
{
	int waiting;

	assert_int_equal(ioctl(f->ring_read[cpu], FIONREAD, &waiting), 0);
	return (unsigned)waiting;
}

uint64_t fixture_total(struct fixture *f)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		sum += atomic_load(&f->pumps[cpu].total_bytes);
	return sum;
}

void fixture_wait_total(struct fixture *f, uint64_t subbufs)
{
	for (unsigned i = 0; i < DEADLINE_MS && fixture_total(f) < subbufs * SUBBUF; i++)
		(void)usleep(1000);
	assert_int_equal(fixture_total(f), subbufs * SUBBUF);
}

uint64_t fixture_notified(struct fixture *f, int ms)
{
	struct pollfd p = {.fd = f->notify, .events = POLLIN};
	uint64_t n = 0;

	if (poll(&p, 1, ms) > 0)
		assert_int_equal(read(f->notify, &n, sizeof(n)), sizeof(n));
	return n;
}

void fixture_request(struct fixture *f, enum worker_request what)
{
	assert_int_equal(worker_post(f->worker, what), 0);
	for (unsigned i = 0; i < DEADLINE_MS && !worker_done(f->worker); i++)
		(void)usleep(1000);
	assert_true(worker_done(f->worker));
	assert_true(fixture_notified(f, DEADLINE_MS) > 0);
}

uint64_t fixture_size_in_file(struct fixture *f, unsigned file, unsigned cpu)
{
	uint64_t size;

	assert_int_equal(io_pread_all(f->file, &size, sizeof(size), target(f, file, cpu).size_at),
			 0);
	return size;
}

void fixture_assert_idle(unsigned at_most)
{
	unsigned before, seen = UINT_MAX;

	/* What was under way may come late; one that spins never stops */
	for (unsigned i = 0; i < 20 && seen > at_most; i++) {
		(void)usleep(50 * 1000);
		before = atomic_load(&wakeups);
		(void)usleep(200 * 1000);
		seen = atomic_load(&wakeups) - before;
	}
	assert_in_range(seen, 0, at_most);
}
