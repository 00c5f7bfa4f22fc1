/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Workers with pipes for ring buffers and memfds for files. splice gives only whole sub-buffers
 * from a ring, as the kernel does; epoll_wait is counted. Deadlines are long, nothing waits for
 * them when all is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
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
#include "basic/macro.h"
#include "recorder/worker.h"

#define SUBBUF	    4096
#define N_CPUS	    3
#define ROOM	    (4 * MIB)
#define SIZE_AT	    64
#define REGION_AT   (64 * KIB)
#define DEADLINE_MS 20000

static _Atomic unsigned wakeups; /* of all workers */
static _Atomic bool splice_empty;
static _Atomic int disk_error;	/* errno of all data written to the file */
static _Atomic bool slow_pulls; /* a ring that never runs dry: see test_free_while_draining() */

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
		return atomic_load(&disk_error)
			       ? fail_with(atomic_load(&disk_error))
			       : __real_splice(in, in_at, out, out_at, size, flags);
	if (atomic_load(&slow_pulls))
		return endless(out);
	if (atomic_load(&splice_empty) || ioctl(in, FIONREAD, &waiting) < 0 || waiting < SUBBUF)
		return fail_with(EAGAIN);
	return __real_splice(in, in_at, out, out_at, MIN(size, (size_t)waiting / SUBBUF * SUBBUF),
			     flags);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset)
{
	if (size == SUBBUF && atomic_load(&disk_error))
		return fail_with(atomic_load(&disk_error));
	return __real_pwrite(fd, data, size, offset);
}

struct fixture {
	int ring[N_CPUS]; /* the ends to write to */
	int ring_read[N_CPUS];
	int file, notify;
	char *slots;
	struct pump pumps[N_CPUS];
	struct pump *order[N_CPUS];
	struct pump_target next[N_CPUS];
	_Atomic int64_t bytes_left;
	struct worker *worker;
};

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

static void begin(struct fixture *f, int64_t bytes_left)
{
	atomic_store(&splice_empty, false);
	atomic_store(&disk_error, 0);
	atomic_store(&slow_pulls, false);
	memset(f, 0, sizeof(*f));
	f->file = memfd_create("test-worker", MFD_CLOEXEC);
	f->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(f->file >= 0 && f->notify >= 0);
	assert_int_equal(ftruncate(f->file, (off_t)(REGION_AT + 2 * N_CPUS * ROOM)), 0);
	f->slots = calloc(N_CPUS, SUBBUF);
	assert_non_null(f->slots);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		struct pump_target first = target(f, 0, cpu);
		int fds[2];

		assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
		assert_true(fcntl(fds[1], F_SETPIPE_SZ, MIB) >= 0);
		f->ring[cpu] = fds[1];
		f->ring_read[cpu] = fds[0];
		assert_int_equal(pump_init(&f->pumps[cpu], cpu, SUBBUF, fds[0], -1, -1, 64 * KIB,
					   f->slots + cpu * SUBBUF),
				 0);
		pump_set_target(&f->pumps[cpu], &first);
		f->order[cpu] = &f->pumps[cpu];
		f->next[cpu] = target(f, 1, cpu);
	}
	atomic_store(&f->bytes_left, bytes_left);
	assert_int_equal(
		worker_new(f->order, f->next, N_CPUS, f->notify, &f->bytes_left, &f->worker), 0);
}

static void end(struct fixture *f)
{
	worker_free(f->worker);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		pump_done(&f->pumps[cpu]);
		close(f->ring[cpu]);
	}
	free(f->slots);
	close(f->file);
	close(f->notify);
}

/* @timestamp is never 0 */
static void put(struct fixture *f, unsigned cpu, unsigned n, uint32_t commit)
{
	char page[SUBBUF];
	uint64_t words[2] = {7, commit};

	memset(page, 0x5a, sizeof(page));
	memcpy(page, words, sizeof(words));
	while (n--)
		assert_int_equal(write(f->ring[cpu], page, SUBBUF), SUBBUF);
}

static unsigned in_ring(struct fixture *f, unsigned cpu)
{
	int waiting;

	assert_int_equal(ioctl(f->ring_read[cpu], FIONREAD, &waiting), 0);
	return (unsigned)waiting;
}

static uint64_t total(struct fixture *f)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		sum += atomic_load(&f->pumps[cpu].total_bytes);
	return sum;
}

static void wait_total(struct fixture *f, uint64_t subbufs)
{
	for (unsigned i = 0; i < DEADLINE_MS && total(f) < subbufs * SUBBUF; i++)
		(void)usleep(1000);
	assert_int_equal(total(f), subbufs * SUBBUF);
}

/* Has the worker written to the eventfd, within @ms? How often (in all since asked last) */
static uint64_t notified(struct fixture *f, int ms)
{
	struct pollfd p = {.fd = f->notify, .events = POLLIN};
	uint64_t n = 0;

	if (poll(&p, 1, ms) > 0)
		assert_int_equal(read(f->notify, &n, sizeof(n)), sizeof(n));
	return n;
}

static void request(struct fixture *f, enum worker_request what)
{
	assert_int_equal(worker_post(f->worker, what), 0);
	for (unsigned i = 0; i < DEADLINE_MS && !worker_done(f->worker); i++)
		(void)usleep(1000);
	assert_true(worker_done(f->worker));
	assert_true(notified(f, DEADLINE_MS) > 0);
}

static uint64_t size_in_file(struct fixture *f, unsigned file, unsigned cpu)
{
	uint64_t size;

	assert_int_equal(io_pread_all(f->file, &size, sizeof(size), target(f, file, cpu).size_at),
			 0);
	return size;
}

/* Long enough for a spinning thread to be caught */
static void assert_idle(unsigned at_most)
{
	unsigned before;

	(void)usleep(50 * 1000);
	before = atomic_load(&wakeups);
	(void)usleep(200 * 1000);
	assert_in_range(atomic_load(&wakeups) - before, 0, at_most);
}

static void test_moves(void **state)
{
	struct fixture f;

	begin(&f, INT64_MAX);
	for (unsigned i = 0; i < 20; i++) {
		put(&f, i % N_CPUS, 3, 4080);
		wait_total(&f, 3 * (i + 1));
	}
	assert_int_equal(size_in_file(&f, 0, 0) + size_in_file(&f, 0, 1) + size_in_file(&f, 0, 2),
			 60 * SUBBUF);
	assert_int_equal(notified(&f, 0), 0);
	assert_idle(0);
	end(&f);
}

static void test_partial_does_not_spin(void **state)
{
	struct fixture f;
	char half[100] = {1};

	begin(&f, INT64_MAX);
	atomic_store(&splice_empty, true);
	put(&f, 0, 1, 200); /* taken by the one read that a wake-up allows */
	wait_total(&f, 1);
	put(&f, 0, 2, 0); /* readable, nothing in it */
	assert_idle(0);
	assert_int_equal(total(&f), SUBBUF);
	put(&f, 1, 5, 4080);
	assert_int_equal(write(f.ring[2], half, sizeof(half)), sizeof(half));
	assert_idle(0);
	end(&f);
}

static void test_flush_takes_partial(void **state)
{
	struct fixture f;

	begin(&f, INT64_MAX);
	put(&f, 0, 1, 4080);
	wait_total(&f, 1);
	atomic_store(&splice_empty, true);
	put(&f, 0, 1, 0); /* spends the wake-up */
	assert_idle(0);
	put(&f, 0, 1, 200);
	assert_idle(0);
	assert_int_equal(total(&f), SUBBUF);
	worker_flush(f.worker);
	wait_total(&f, 2);
	/* and after a flush it wakes by itself again */
	assert_idle(0);
	atomic_store(&splice_empty, false);
	put(&f, 0, 4, 4080);
	wait_total(&f, 6);
	assert_idle(0);
	end(&f);
}

/* Told when all CPUs were asked for all they had; who had more says so */
static void test_flush_tells(void **state)
{
	struct fixture f;

	begin(&f, INT64_MAX);
	assert_true(worker_flushed(f.worker));
	atomic_store(&splice_empty, true);
	put(&f, 0, 1, 200);
	wait_total(&f, 1); /* its wake-up takes it, and is spent */
	put(&f, 0, 1, 200);
	worker_tell_flushes(f.worker, true);
	worker_flush(f.worker);
	assert_int_equal(notified(&f, DEADLINE_MS), 1);
	assert_true(worker_flushed(f.worker));
	wait_total(&f, 2);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		assert_false(atomic_load(&f.pumps[cpu].behind));
	worker_tell_flushes(f.worker, false);
	worker_flush(f.worker); /* nobody wants to know */
	assert_int_equal(notified(&f, 50), 0);
	assert_true(worker_flushed(f.worker));
	atomic_store(&splice_empty, false);
	atomic_store(&disk_error, ENOSPC);
	put(&f, 1, 2, 4080);
	assert_true(notified(&f, DEADLINE_MS) > 0);
	worker_tell_flushes(f.worker, true);
	worker_flush(f.worker);
	assert_int_equal(notified(&f, DEADLINE_MS), 1);
	assert_true(worker_flushed(f.worker));
	assert_true(atomic_load(&f.pumps[1].behind));
	assert_false(atomic_load(&f.pumps[0].behind));
	atomic_store(&disk_error, 0);
	end(&f);
}

/* Who waits for a flush is told in the end, also when others ask for theirs at any time */
static void test_flush_beside_flush(void **state)
{
	struct fixture f;

	begin(&f, INT64_MAX);
	worker_tell_flushes(f.worker, true);
	for (unsigned round = 0; round < 2000; round++) {
		worker_flush(f.worker);
		if (round % 3 == 1)
			(void)sched_yield();
		worker_flush(f.worker);
		while (!worker_flushed(f.worker))
			assert_true(notified(&f, DEADLINE_MS) > 0);
	}
	end(&f);
}

static void test_retarget(void **state)
{
	struct fixture f;

	begin(&f, INT64_MAX);
	put(&f, 0, 3, 4080);
	wait_total(&f, 3);
	request(&f, WORKER_RETARGET);
	put(&f, 0, 2, 4080);
	put(&f, 2, 1, 4080);
	wait_total(&f, 6);
	assert_int_equal(size_in_file(&f, 0, 0), 3 * SUBBUF);
	assert_int_equal(size_in_file(&f, 1, 0), 2 * SUBBUF);
	assert_int_equal(size_in_file(&f, 1, 2), SUBBUF);
	end(&f);
}

static void test_full_notifies_and_goes_on(void **state)
{
	uint64_t in_first;
	struct fixture f;

	begin(&f, INT64_MAX);
	for (unsigned i = 0; i < ROOM / SUBBUF / 64 - 1; i++) {
		put(&f, 1, 64, 4080);
		wait_total(&f, 64 * (i + 1));
	}
	assert_int_equal(notified(&f, 0), 0);
	put(&f, 1, 64 + 5, 4080);
	assert_true(notified(&f, DEADLINE_MS) > 0);
	assert_true(atomic_load(&f.pumps[1].full));
	assert_idle(0); /* readable, but there is no place to put it */
	assert_int_equal(in_ring(&f, 1) + total(&f), ROOM + 5 * SUBBUF);
	assert_in_range(in_ring(&f, 1), 5 * SUBBUF, (5 + 15) * SUBBUF);
	in_first = total(&f) / SUBBUF;
	put(&f, 0, 1, 4080); /* the other CPUs go on */
	wait_total(&f, in_first + 1);
	request(&f, WORKER_RETARGET);
	wait_total(&f, ROOM / SUBBUF + 6);
	assert_int_equal(size_in_file(&f, 0, 1), in_first * SUBBUF);
	assert_int_equal(size_in_file(&f, 1, 1), ROOM + (5 - in_first) * SUBBUF);
	end(&f);
}

static void test_finish(void **state)
{
	struct fixture f;

	begin(&f, INT64_MAX);
	/* Mapped, so that one wake-up takes one: the drain has to go round many times */
	atomic_store(&splice_empty, true);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		put(&f, cpu, 40, 200);
	request(&f, WORKER_FINISH);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++) {
		assert_int_equal(in_ring(&f, cpu), 0);
		assert_int_equal(size_in_file(&f, 0, cpu), 40 * SUBBUF);
	}
	end(&f);
}

static void test_leave(void **state)
{
	struct fixture f;
	unsigned held;

	begin(&f, INT64_MAX);
	atomic_store(&disk_error, EIO);
	put(&f, 0, 4, 4080);
	assert_true(notified(&f, DEADLINE_MS) > 0);
	put(&f, 0, 2, 4080);
	held = 6 * SUBBUF - in_ring(&f, 0); /* some of the first four, as they came */
	assert_in_range(held, SUBBUF, 4 * SUBBUF);
	atomic_store(&disk_error, 0);
	request(&f, WORKER_LEAVE);
	assert_int_equal(size_in_file(&f, 0, 0), held); /* what was in hand */
	put(&f, 1, 3, 4080);
	worker_flush(f.worker);
	assert_idle(2);
	assert_int_equal(total(&f), held);
	assert_int_equal(in_ring(&f, 0), 6 * SUBBUF - held);
	assert_int_equal(in_ring(&f, 1), 3 * SUBBUF);
	end(&f);
}

static void test_bytes_left_notifies_once(void **state)
{
	struct fixture f;

	begin(&f, 10 * SUBBUF);
	put(&f, 0, 9, 4080);
	wait_total(&f, 9);
	assert_int_equal(notified(&f, 50), 0);
	put(&f, 1, 1, 4080);
	assert_int_equal(notified(&f, DEADLINE_MS), 1);
	for (unsigned i = 0; i < 5; i++) {
		put(&f, i % N_CPUS, 1, 4080);
		wait_total(&f, 11 + i);
	}
	assert_int_equal(notified(&f, 50), 0);
	assert_int_equal(atomic_load(&f.bytes_left), -5 * SUBBUF);
	end(&f);
}

static void test_trouble_notifies(void **state)
{
	struct fixture f;

	begin(&f, INT64_MAX);
	atomic_store(&disk_error, ENOSPC);
	put(&f, 0, 4, 4080);
	assert_int_equal(notified(&f, DEADLINE_MS), 1);
	assert_int_equal(atomic_load(&f.pumps[0].trouble), -ENOSPC);
	assert_idle(0);
	worker_flush(f.worker); /* the same trouble: nothing new to tell */
	assert_int_equal(notified(&f, 100), 0);
	atomic_store(&disk_error, EIO);
	worker_flush(f.worker);
	assert_int_equal(notified(&f, DEADLINE_MS), 1);
	assert_int_equal(atomic_load(&f.pumps[0].trouble), -EIO);
	atomic_store(&disk_error, 0);
	worker_flush(f.worker);
	assert_int_equal(notified(&f, DEADLINE_MS), 1);
	assert_int_equal(atomic_load(&f.pumps[0].trouble), 0);
	wait_total(&f, 4);
	put(&f, 0, 2, 4080); /* wakes by itself again */
	wait_total(&f, 6);
	end(&f);
}

static void test_one_request_at_a_time(void **state)
{
	struct fixture f;
	unsigned busy = 0;

	begin(&f, INT64_MAX);
	for (unsigned i = 0; i < 1000; i++) {
		int r = worker_post(f.worker, WORKER_FINISH);

		assert_true(r == 0 || r == -EBUSY);
		busy += r == -EBUSY;
		worker_flush(f.worker);
	}
	for (unsigned i = 0; i < DEADLINE_MS && !worker_done(f.worker); i++)
		(void)usleep(1000);
	assert_true(worker_done(f.worker));
	assert_true(notified(&f, DEADLINE_MS) >= 1000 - busy);
	end(&f);
}

/* A thread that is in the middle of a request must end, too */
static void test_free_while_draining(void **state)
{
	struct fixture f;

	(void)alarm(60); /* a join that never returns would hang the whole run */
	begin(&f, INT64_MAX);
	atomic_store(&slow_pulls, true);
	assert_int_equal(worker_post(f.worker, WORKER_FINISH), 0);
	for (unsigned i = 0; i < DEADLINE_MS && total(&f) == 0; i++)
		(void)usleep(1000);
	assert_true(total(&f) > 0);
	end(&f);
	(void)alarm(0);
}

static void test_free_at_any_moment(void **state)
{
	(void)alarm(60);
	for (unsigned i = 0; i < 200; i++) {
		struct fixture f;

		begin(&f, INT64_MAX);
		if (i % 2)
			put(&f, 0, 20, 4080);
		if (i % 3)
			assert_int_equal(worker_post(f.worker, WORKER_FINISH), 0);
		if (i % 5)
			(void)usleep(i % 7 * 20);
		end(&f);
	}
	(void)alarm(0);
	worker_free(NULL);
}

static void test_new_refused(void **state)
{
	_cleanup_close_ int file = memfd_create("no-epoll", MFD_CLOEXEC);
	struct pump pump = {.trace_fd = file}, *pumps[] = {&pump};
	_Atomic int64_t left = 0;
	struct worker *worker = NULL;

	assert_int_equal(worker_new(pumps, NULL, 1, -1, &left, &worker), -EPERM);
	assert_null(worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_partial_does_not_spin),
		cmocka_unit_test(test_flush_takes_partial),
		cmocka_unit_test(test_flush_tells),
		cmocka_unit_test(test_flush_beside_flush),
		cmocka_unit_test(test_retarget),
		cmocka_unit_test(test_full_notifies_and_goes_on),
		cmocka_unit_test(test_finish),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_bytes_left_notifies_once),
		cmocka_unit_test(test_trouble_notifies),
		cmocka_unit_test(test_one_request_at_a_time),
		cmocka_unit_test(test_free_while_draining),
		cmocka_unit_test(test_free_at_any_moment),
		cmocka_unit_test(test_new_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
