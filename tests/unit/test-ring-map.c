/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A memfd stands in for a mapped trace_pipe_raw: a first page as the kernel has it, and sub-buffers
 * that this test writes like the kernel: header emptied, timestamp, events, commit.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/subbuf.h"
#include "recorder/ring-copy.h"

#define PAGE  4096U
#define LARGE (16U * 1024)
#define DATA  (8 + sizeof(long))

struct ring {
	int fd;
	unsigned subbuf, n;
	struct ring_meta *meta;
	char *data;
};

static void ring_make(struct ring *r, unsigned subbuf, unsigned n)
{
	size_t size = PAGE + (size_t)subbuf * n;
	char *p;

	r->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_true(r->fd >= 0);
	assert_int_equal(ftruncate(r->fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	assert_true(p != MAP_FAILED);
	r->subbuf = subbuf;
	r->n = n;
	r->meta = (struct ring_meta *)(void *)p;
	r->data = p + PAGE;
	*r->meta = (struct ring_meta){
		.meta_page_size = PAGE,
		.meta_struct_len = sizeof(*r->meta),
		.subbuf_size = subbuf,
		.nr_subbufs = n,
	};
}

static void ring_done(struct ring *r)
{
	(void)munmap(r->meta, PAGE + (size_t)r->subbuf * r->n);
	close(r->fd);
}

static uint64_t *timestamp_of(const struct ring *r, unsigned id)
{
	return (uint64_t *)(void *)(r->data + (size_t)id * r->subbuf);
}

static unsigned long *commit_of(const struct ring *r, unsigned id)
{
	return (unsigned long *)(void *)(r->data + (size_t)id * r->subbuf + 8);
}

/* @size bytes of events, all of them the timestamp: whoever copies can tell whose they are */
static void write_subbuf(const struct ring *r, unsigned id, uint64_t timestamp, size_t size)
{
	uint64_t *at = (uint64_t *)(void *)(r->data + (size_t)id * r->subbuf + DATA);

	__atomic_store_n(commit_of(r, id), 0, __ATOMIC_RELEASE);
	__atomic_store_n(timestamp_of(r, id), timestamp, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (size_t i = 0; i < size / sizeof(*at); i++)
		__atomic_store_n(&at[i], timestamp, __ATOMIC_RELAXED);
	__atomic_store_n(commit_of(r, id), size, __ATOMIC_RELEASE);
}

static size_t full(const struct ring *r)
{
	return r->subbuf - DATA;
}

/* Ids 1 … n-1 are the ring, 0 is the reader's; @newest holds time @newest_time, time steps by 10 */
static void wrap_at(const struct ring *r, unsigned newest, uint64_t newest_time)
{
	unsigned id = newest;

	for (uint64_t t = newest_time; t > newest_time - (r->n - 1) * 10; t -= 10) {
		write_subbuf(r, id, t, full(r));
		id = id > 1 ? id - 1 : r->n - 1;
	}
}

static void assert_times(const struct ring_list *list, uint64_t first, size_t n)
{
	assert_int_equal(list->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(list->slots[i].timestamp, first + i * 10);
}

static void open_copy(const struct ring *r, bool overrun, struct ring_copy *ret)
{
	assert_int_equal(ring_copy_open(r->fd, r->subbuf, ret), 0);
	assert_int_equal(ring_copy_map(ret, r->fd, SIZE_MAX), 0);
	assert_int_equal(ring_copy_list(ret, overrun), 0);
}

static void test_probe_and_refusals(void **state)
{
	struct ring_map map;
	struct ring r;
	int pipes[2];

	ring_make(&r, PAGE, 4);
	assert_int_equal(ring_map_probe(r.fd), 0);
	assert_int_equal(ring_map_open(r.fd, LARGE, &map), -EBADMSG);
	r.meta->nr_subbufs = 0;
	assert_int_equal(ring_map_open(r.fd, PAGE, &map), -EBADMSG);
	r.meta->nr_subbufs = 4;
	r.meta->meta_page_size = 12;
	assert_int_equal(ring_map_open(r.fd, PAGE, &map), -EBADMSG);
	ring_done(&r);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(ring_map_probe(pipes[0]), -ENODEV); /* as kernels before 6.10 say */
	close(pipes[0]);
	close(pipes[1]);
}

static void test_empty(void **state)
{
	struct ring_copy copy;
	struct ring r;
	char to[PAGE];

	ring_make(&r, PAGE, 4);
	open_copy(&r, false, &copy);
	assert_int_equal(copy.list.n, 0);
	assert_int_equal(ring_copy_fill(&copy, to, 1), 0);
	ring_copy_close(&copy);
	/* Begun anew at this moment: the old timestamp is there still, no event is */
	write_subbuf(&r, 2, 50, 0);
	open_copy(&r, false, &copy);
	assert_int_equal(copy.list.n, 0);
	ring_copy_close(&copy);
	ring_done(&r);
}

/* Wherever the oldest is, and whatever the size */
static void test_wrap(void **state)
{
	const unsigned sizes[] = {PAGE, LARGE};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (unsigned newest = 1; newest < 8; newest++) {
			struct ring_copy copy;
			struct ring r;

			ring_make(&r, sizes[i], 8);
			wrap_at(&r, newest, 1000);
			open_copy(&r, true, &copy);
			assert_times(&copy.list, 940, 7);
			ring_copy_close(&copy);
			ring_done(&r);
		}
}

static void test_not_wrapped_yet(void **state)
{
	struct ring_copy copy;
	struct ring r;

	ring_make(&r, PAGE, 8);
	for (unsigned id = 1; id < 4; id++)
		write_subbuf(&r, id, 100 + id * 10, full(&r));
	open_copy(&r, false, &copy);
	assert_times(&copy.list, 110, 3);
	ring_copy_close(&copy);
	ring_done(&r);
}

/* With a coarse clock many begin at the same time: the ring tells their order */
static void test_equal_timestamps(void **state)
{
	const uint64_t times[] = {0, 7, 7, 7, 3, 5, 5, 7};
	struct ring_copy copy;
	struct ring r;

	ring_make(&r, PAGE, 8);
	for (unsigned id = 1; id < 8; id++)
		write_subbuf(&r, id, times[id], full(&r));
	open_copy(&r, true, &copy);
	assert_int_equal(copy.list.n, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(copy.list.slots[i].id, (i + 3) % 7 + 1);
	ring_copy_close(&copy);
	ring_done(&r);
}

/* A kernel that numbers otherwise */
static void test_any_order(void **state)
{
	const uint64_t times[] = {0, 130, 110, 150, 120, 140};
	struct ring_copy copy;
	struct ring r;

	ring_make(&r, PAGE, 6);
	for (unsigned id = 1; id < 6; id++)
		write_subbuf(&r, id, times[id], full(&r));
	open_copy(&r, true, &copy);
	assert_times(&copy.list, 110, 5);
	ring_copy_close(&copy);
	ring_done(&r);
}

static void reader_gives(const struct ring *r, bool overrun, uint64_t first, size_t n)
{
	struct ring_copy copy;

	open_copy(r, overrun, &copy);
	assert_times(&copy.list, first, n);
	ring_copy_close(&copy);
}

static void test_reader(void **state)
{
	struct ring_copy copy;
	struct ring r;

	ring_make(&r, PAGE, 5);
	wrap_at(&r, 2, 1000); /* 970 … 1000 */
	r.meta->reader.id = 0;
	reader_gives(&r, true, 970, 4); /* empty */
	/* The writer is in it */
	write_subbuf(&r, 0, 1010, 64);
	reader_gives(&r, true, 970, 5);
	/* Left from an earlier read: the oldest, with a hole behind it if anything was overwritten
	 */
	write_subbuf(&r, 0, 960, full(&r));
	reader_gives(&r, true, 970, 4);
	reader_gives(&r, false, 960, 5);
	/* It need not be the first one; another sub-buffer's place is the ring's then */
	r.meta->reader.id = 2;
	write_subbuf(&r, 2, 500, full(&r));
	write_subbuf(&r, 0, 1000, full(&r));
	reader_gives(&r, true, 970, 4);
	/* Nonsense is no sub-buffer */
	r.meta->reader.id = 77;
	open_copy(&r, true, &copy);
	assert_int_equal(copy.list.n, 5);
	ring_copy_close(&copy);
	ring_done(&r);
}

static void test_copy_is_exact(void **state)
{
	const struct subbuf_layout layout = {LARGE, DATA, sizeof(long), false};
	struct subbuf_header header;
	struct ring_copy copy;
	struct ring r;
	char *to = malloc(LARGE);

	ring_make(&r, LARGE, 3);
	write_subbuf(&r, 1, 10, full(&r)); /* older events, behind the newer */
	write_subbuf(&r, 1, 20, 64);
	open_copy(&r, false, &copy);
	assert_int_equal(ring_copy_fill(&copy, to, 1), 1);
	assert_int_equal(subbuf_header(&layout, to, &header, NULL), 0);
	assert_int_equal(header.timestamp, 20);
	assert_int_equal(header.commit, 64);
	assert_false(header.missed);
	for (size_t i = DATA; i < LARGE; i += 8) {
		uint64_t word;

		memcpy(&word, to + i, sizeof(word));
		assert_int_equal(word, i < DATA + 64 ? 20 : 0);
	}
	assert_int_equal(ring_copy_fill(&copy, to, 1), 0);
	free(to);
	ring_done(&r);
}

/* Events that come after the first look are not half in the copy */
static void test_newest_grows(void **state)
{
	struct ring_copy copy;
	struct ring r;
	char to[PAGE];

	ring_make(&r, PAGE, 3);
	write_subbuf(&r, 1, 10, 64);
	open_copy(&r, false, &copy);
	*commit_of(&r, 1) = 128;
	assert_int_equal(ring_copy_fill(&copy, to, 1), 1);
	assert_int_equal(*(unsigned long *)(void *)(to + 8), 128);
	assert_int_equal(copy.torn, 0);
	ring_copy_close(&copy);
	ring_done(&r);
}

/* What the kernel says of lost events stays, with their number */
static void test_missed_flags(void **state)
{
	const struct subbuf_layout layout = {PAGE, DATA, sizeof(long), false};
	const unsigned long lost = 77;
	struct subbuf_header header;
	struct ring_copy copy;
	struct ring r;
	char to[PAGE];

	ring_make(&r, PAGE, 3);
	write_subbuf(&r, 1, 10, 64);
	memcpy(r.data + PAGE + DATA + 64, &lost, sizeof(lost));
	*commit_of(&r, 1) |= 3UL << 30;
	open_copy(&r, false, &copy);
	assert_int_equal(ring_copy_fill(&copy, to, 1), 1);
	assert_int_equal(subbuf_header(&layout, to, &header, NULL), 0);
	assert_true(header.missed_stored);
	assert_int_equal(header.missed_events, lost);
	assert_int_equal(header.commit, 64);
	ring_copy_close(&copy);
	ring_done(&r);
}

static uint64_t time_in(const char *to, size_t i)
{
	uint64_t t;

	memcpy(&t, to + i * PAGE, sizeof(t));
	return t;
}

static bool missed_in(const char *to, size_t i)
{
	const struct subbuf_layout layout = {PAGE, DATA, sizeof(long), false};
	struct subbuf_header header;

	assert_int_equal(subbuf_header(&layout, to + i * PAGE, &header, NULL), 0);
	return header.missed;
}

/* Overtaken at once: the copy begins later, and has no hole */
static void test_torn_at_first(void **state)
{
	struct ring_copy copy;
	struct ring r;
	char to[8 * PAGE];

	ring_make(&r, PAGE, 8);
	wrap_at(&r, 7, 1000); /* id 1: 940 … id 7: 1000 */
	open_copy(&r, true, &copy);
	write_subbuf(&r, 1, 1010, full(&r));
	write_subbuf(&r, 2, 1020, full(&r));
	assert_int_equal(ring_copy_fill(&copy, to, 8), 5);
	assert_int_equal(copy.torn, 2);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(time_in(to, i), 960 + i * 10);
		assert_false(missed_in(to, i));
	}
	ring_copy_close(&copy);
	/* The writer came from behind: what is older than the hole is left out too */
	wrap_at(&r, 7, 1000);
	open_copy(&r, true, &copy);
	*commit_of(&r, 3) = 8; /* shrunk: begun anew, its timestamp not written yet */
	*timestamp_of(&r, 3) = 1030;
	assert_int_equal(ring_copy_fill(&copy, to, 8), 4);
	assert_int_equal(copy.torn, 3);
	assert_int_equal(time_in(to, 0), 970);
	ring_copy_close(&copy);
	ring_done(&r);
}

/* Overtaken when older ones are on the disk already: the next one says so */
static void test_torn_later(void **state)
{
	struct ring_copy copy;
	struct ring r;
	char to[8 * PAGE];

	ring_make(&r, PAGE, 8);
	wrap_at(&r, 7, 1000);
	open_copy(&r, true, &copy);
	assert_int_equal(ring_copy_fill(&copy, to, 2), 2);
	for (unsigned id = 1; id < 5; id++)
		write_subbuf(&r, id, 1000 + id * 10, full(&r));
	assert_int_equal(ring_copy_left(&copy), 5);
	assert_int_equal(ring_copy_fill(&copy, to, 8), 3);
	assert_int_equal(copy.torn, 2);
	assert_int_equal(time_in(to, 0), 980);
	assert_true(missed_in(to, 0));
	assert_false(missed_in(to, 1));
	ring_copy_close(&copy);
	ring_done(&r);
}

static void range_gives(const struct ring *r, uint64_t from, uint64_t to_nsec, uint64_t first,
			size_t n)
{
	struct ring_copy copy;
	char to[8 * PAGE];

	open_copy(r, true, &copy);
	ring_copy_range(&copy, from, to_nsec);
	assert_int_equal(ring_copy_fill(&copy, to, 8), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(time_in(to, i), first + i * 10);
	ring_copy_close(&copy);
}

static void test_range(void **state)
{
	struct ring r;

	ring_make(&r, PAGE, 8);
	wrap_at(&r, 3, 1000); /* 940 … 1000 */
	range_gives(&r, 0, UINT64_MAX, 940, 7);
	range_gives(&r, 965, UINT64_MAX, 960, 5); /* the one that begins before */
	range_gives(&r, 970, 980, 970, 2);
	range_gives(&r, 2000, UINT64_MAX, 1000, 1); /* it may go on until then */
	range_gives(&r, 0, 939, 0, 0);
	range_gives(&r, 961, 962, 960, 1);
	ring_done(&r);
}

/* --- a writer that really writes meanwhile */

struct race {
	struct ring ring;
	_Atomic bool stop;
};

static void *race_writer(void *userdata)
{
	struct race *race = userdata;
	unsigned id = 1;

	for (uint64_t t = 10000; !atomic_load(&race->stop); t += 10) {
		write_subbuf(&race->ring, id, t, full(&race->ring));
		id = id + 1 < race->ring.n ? id + 1 : 1;
	}
	return NULL;
}

static void assert_untorn(const char *subbuf, unsigned size)
{
	uint64_t t;

	memcpy(&t, subbuf, sizeof(t));
	for (size_t i = DATA; i + 8 <= size; i += 8) {
		uint64_t word;

		memcpy(&word, subbuf + i, sizeof(word));
		assert_true(word == t);
	}
}

/*
 * The first three are copied, then the writer goes on for @overwritten sub-buffers. @newest: where
 * it was before; @n: of the three, how many count; @total: with the others.
 */
static void head_joins(unsigned newest, unsigned overwritten, uint64_t from, size_t n, size_t total)
{
	struct ring_copy copy;
	struct ring r;
	char to[16 * PAGE];
	size_t got = 0;

	ring_make(&r, PAGE, 8);
	wrap_at(&r, newest, 1000);
	assert_int_equal(ring_copy_open(r.fd, PAGE, &copy), 0);
	assert_int_equal(ring_copy_map(&copy, r.fd, 3), 0);
	ring_copy_head(&copy, to, 4, &got); /* of what is mapped, without the reader's */
	assert_int_equal(ring_copy_map(&copy, r.fd, SIZE_MAX), 0);
	ring_copy_head(&copy, to, 3, &got);
	for (unsigned i = 1; i <= overwritten; i++)
		write_subbuf(&r, (newest + i - 1) % 7 + 1, 1000 + i * 10, full(&r));
	assert_int_equal(ring_copy_list(&copy, true), 0);
	ring_copy_range(&copy, from, UINT64_MAX);
	ring_copy_join(&copy, &got);
	assert_int_equal(got, n);
	/* One piece, up to the newest, wherever it begins */
	ring_copy_begin(&copy, to, &got, 16);
	for (size_t i = 0; i < got; i++)
		assert_int_equal(time_in(to, i), 1000 + (overwritten + i + 1 - got) * 10);
	assert_int_equal(got, total);
	assert_int_equal(copy.torn, 0);
	ring_copy_close(&copy);
	ring_done(&r);
}

static void test_head(void **state)
{
	head_joins(7, 0, 0, 3, 7);
	head_joins(7, 1, 0, 3, 8);
	head_joins(7, 3, 0, 3, 10);  /* all of them, and none behind */
	head_joins(7, 4, 0, 0, 7);   /* a hole */
	head_joins(7, 7, 0, 0, 7);   /* nothing of what was there is left */
	head_joins(3, 0, 0, 0, 7);   /* id 1 is not the oldest */
	head_joins(5, 1, 0, 0, 7);   /* nor here */
	head_joins(5, 2, 0, 3, 7);   /* but now it is */
	head_joins(7, 0, 970, 0, 4); /* older than wanted */
}

/* Sub-buffers come nearer as they are overwritten */
static void test_lead(void **state)
{
	struct ring_copy copy;
	struct ring r;
	char to[8 * PAGE];

	ring_make(&r, PAGE, 8);
	wrap_at(&r, 7, 1000);
	open_copy(&r, true, &copy);
	assert_int_equal(ring_copy_lead(&copy), 0);
	assert_int_equal(ring_copy_fill(&copy, to, 4), 4);
	assert_int_equal(ring_copy_lead(&copy), 4);
	write_subbuf(&r, 1, 1010, full(&r));
	write_subbuf(&r, 2, 1020, full(&r));
	assert_int_equal(ring_copy_lead(&copy), 2);
	for (unsigned id = 3; id < 7; id++)
		write_subbuf(&r, id, 1000 + id * 10, full(&r));
	assert_int_equal(ring_copy_lead(&copy), 0);
	ring_copy_close(&copy);
	ring_done(&r);
}

static void test_race(void **state)
{
	const unsigned n = 64;
	char *to = malloc((size_t)n * LARGE);
	struct race race = {0};
	pthread_t thread;
	uint64_t copied = 0;

	ring_make(&race.ring, LARGE, n);
	wrap_at(&race.ring, n - 1, 9990);
	assert_int_equal(pthread_create(&thread, NULL, race_writer, &race), 0);
	for (unsigned round = 0; round < 300; round++) {
		struct ring_copy copy;
		uint64_t before = 0;
		size_t got;

		open_copy(&race.ring, true, &copy);
		while ((got = ring_copy_fill(&copy, to, n / 8)) > 0) {
			for (size_t i = 0; i < got; i++) {
				uint64_t t;

				memcpy(&t, to + i * LARGE, sizeof(t));
				assert_true(t > before);
				before = t;
				assert_untorn(to + i * LARGE, LARGE);
			}
			copied += got;
		}
		ring_copy_close(&copy);
	}
	atomic_store(&race.stop, true);
	(void)pthread_join(thread, NULL);
	assert_true(copied > 0);
	free(to);
	ring_done(&race.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_and_refusals),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_not_wrapped_yet),
		cmocka_unit_test(test_equal_timestamps),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_copy_is_exact),
		cmocka_unit_test(test_newest_grows),
		cmocka_unit_test(test_missed_flags),
		cmocka_unit_test(test_torn_at_first),
		cmocka_unit_test(test_torn_later),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_lead),
		cmocka_unit_test(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
