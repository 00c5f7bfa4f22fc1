/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is found in a mapped ring buffer: which sub-buffers, in which order, and what each of them
 * holds.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/subbuf.h"
#include "tests/unit/ring-map-fixture.h"

static void assert_times(const struct ring_list *list, uint64_t first, size_t n)
{
	assert_int_equal(list->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(list->slots[i].timestamp, first + i * 10);
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
	ring_open_copy(&r, false, &copy);
	assert_int_equal(copy.list.n, 0);
	assert_int_equal(ring_copy_fill(&copy, to, 1), 0);
	ring_copy_close(&copy);
	/* Begun anew at this moment: the old timestamp is there still, no event is */
	ring_write(&r, 2, 50, 0);
	ring_open_copy(&r, false, &copy);
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
			ring_wrap(&r, newest, 1000);
			ring_open_copy(&r, true, &copy);
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
		ring_write(&r, id, 100 + id * 10, ring_full(&r));
	ring_open_copy(&r, false, &copy);
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
		ring_write(&r, id, times[id], ring_full(&r));
	ring_open_copy(&r, true, &copy);
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
		ring_write(&r, id, times[id], ring_full(&r));
	ring_open_copy(&r, true, &copy);
	assert_times(&copy.list, 110, 5);
	ring_copy_close(&copy);
	ring_done(&r);
}

/* What is newer than any time, as ring_map_list() and ring_copy_range() have it */
static void newer_agrees(const struct ring *r, int wanted, uint64_t from)
{
	struct ring_list list = {};
	struct ring_copy all, some;
	struct ring_map map;
	char a[PAGE], b[PAGE];

	assert_int_equal(ring_map_open(r->fd, PAGE, &map), 0);
	assert_int_equal(ring_map_newer(&map, r->fd, from, &list), wanted);
	free(list.slots);
	ring_map_close(&map);
	ring_open_copy(r, true, &all);
	ring_copy_range(&all, from, UINT64_MAX);
	assert_int_equal(ring_copy_open(r->fd, PAGE, &some), 0);
	assert_int_equal(ring_copy_newer(&some, r->fd, true, from), 0);
	assert_int_equal(ring_copy_left(&some), ring_copy_left(&all));
	while (ring_copy_fill(&all, a, 1) == 1) {
		assert_int_equal(ring_copy_fill(&some, b, 1), 1);
		assert_memory_equal(a, b, PAGE);
	}
	assert_int_equal(ring_copy_fill(&some, b, 1), 0);
}

static void test_newer(void **state)
{
	const unsigned n = 40;

	for (unsigned filled = 1; filled < n; filled++) {
		struct ring r;

		ring_make(&r, PAGE, n);
		for (unsigned id = 1; id <= filled; id++)
			ring_write(&r, id, 100 + id * 10, 64);
		for (uint64_t from = 105; from <= 105 + n * 10; from += 5)
			newer_agrees(&r, from >= 110, from);
		/* the writer is in the reader's: that is not in order */
		ring_write(&r, 0, 1000, 64);
		newer_agrees(&r, 0, 125);
		ring_done(&r);
	}
	for (unsigned newest = 1; newest < n; newest++) {
		struct ring r;

		ring_make(&r, PAGE, n);
		ring_wrap(&r, newest, 1000);
		if (newest == n - 1)
			for (uint64_t from = 600; from < 1010; from += 5)
				newer_agrees(&r, from >= 620, from);
		r.meta->reader.id = newest;
		newer_agrees(&r, 0, 990);
		ring_done(&r);
	}
}

static void reader_gives(const struct ring *r, bool overrun, uint64_t first, size_t n)
{
	struct ring_copy copy;

	ring_open_copy(r, overrun, &copy);
	assert_times(&copy.list, first, n);
	ring_copy_close(&copy);
}

static void test_reader(void **state)
{
	struct ring_copy copy;
	struct ring r;

	ring_make(&r, PAGE, 5);
	ring_wrap(&r, 2, 1000); /* 970 … 1000 */
	r.meta->reader.id = 0;
	reader_gives(&r, true, 970, 4); /* empty */
	/* The writer is in it */
	ring_write(&r, 0, 1010, 64);
	reader_gives(&r, true, 970, 5);
	/* Left from an earlier read: the oldest, with a hole behind it if anything was overwritten
	 */
	ring_write(&r, 0, 960, ring_full(&r));
	reader_gives(&r, true, 970, 4);
	reader_gives(&r, false, 960, 5);
	/* It need not be the first one; another sub-buffer's place is the ring's then */
	r.meta->reader.id = 2;
	ring_write(&r, 2, 500, ring_full(&r));
	ring_write(&r, 0, 1000, ring_full(&r));
	reader_gives(&r, true, 970, 4);
	/* Nonsense is no sub-buffer */
	r.meta->reader.id = 77;
	ring_open_copy(&r, true, &copy);
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
	ring_write(&r, 1, 10, ring_full(&r)); /* older events, behind the newer */
	ring_write(&r, 1, 20, 64);
	ring_open_copy(&r, false, &copy);
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
	ring_write(&r, 1, 10, 64);
	ring_open_copy(&r, false, &copy);
	*ring_commit(&r, 1) = 128;
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
	ring_write(&r, 1, 10, 64);
	memcpy(r.data + PAGE + DATA + 64, &lost, sizeof(lost));
	*ring_commit(&r, 1) |= 3UL << 30;
	ring_open_copy(&r, false, &copy);
	assert_int_equal(ring_copy_fill(&copy, to, 1), 1);
	assert_int_equal(subbuf_header(&layout, to, &header, NULL), 0);
	assert_true(header.missed_stored);
	assert_int_equal(header.missed_events, lost);
	assert_int_equal(header.commit, 64);
	ring_copy_close(&copy);
	ring_done(&r);
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
		cmocka_unit_test(test_newer),
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_copy_is_exact),
		cmocka_unit_test(test_newest_grows),
		cmocka_unit_test(test_missed_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
