/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copying a mapped ring buffer while the writer goes on: what it overtakes is left out, and said;
 * what is copied is whole.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "formats/subbuf.h"
#include "tests/unit/ring-map-fixture.h"

static uint64_t time_in(const char *to, size_t i)
{
	uint64_t t;

	memcpy(&t, to + i * PAGE, sizeof(t));
	return t;
}

static bool is_after_loss(const char *subbuf, unsigned size)
{
	const struct subbuf_layout layout = {size, DATA, sizeof(long), false};
	struct subbuf_header header;

	assert_int_equal(subbuf_header(&layout, subbuf, &header, NULL), 0);
	return header.missed;
}

static bool missed_in(const char *to, size_t i)
{
	return is_after_loss(to + i * PAGE, PAGE);
}

/* Overtaken at once: the copy begins later, and has no hole */
static void test_torn_at_first(void **state)
{
	struct ring_copy copy;
	struct ring r;
	char to[8 * PAGE];

	ring_make(&r, PAGE, 8);
	ring_wrap(&r, 7, 1000); /* id 1: 940 … id 7: 1000 */
	ring_open_copy(&r, true, &copy);
	ring_write(&r, 1, 1010, ring_full(&r));
	ring_write(&r, 2, 1020, ring_full(&r));
	assert_int_equal(ring_copy_fill(&copy, to, 8), 5);
	assert_int_equal(copy.torn, 2);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(time_in(to, i), 960 + i * 10);
		assert_false(missed_in(to, i));
	}
	ring_copy_close(&copy);
	/* The writer came from behind: what is older than the hole is left out too */
	ring_wrap(&r, 7, 1000);
	ring_open_copy(&r, true, &copy);
	*ring_commit(&r, 3) = 8; /* shrunk: begun anew, its timestamp not written yet */
	*ring_timestamp(&r, 3) = 1030;
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
	ring_wrap(&r, 7, 1000);
	ring_open_copy(&r, true, &copy);
	assert_int_equal(ring_copy_fill(&copy, to, 2), 2);
	for (unsigned id = 1; id < 5; id++)
		ring_write(&r, id, 1000 + id * 10, ring_full(&r));
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

	ring_open_copy(r, true, &copy);
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
	ring_wrap(&r, 3, 1000); /* 940 … 1000 */
	range_gives(&r, 0, UINT64_MAX, 940, 7);
	range_gives(&r, 965, UINT64_MAX, 960, 5); /* the one that begins before */
	range_gives(&r, 970, 980, 970, 2);
	range_gives(&r, 2000, UINT64_MAX, 1000, 1); /* it may go on until then */
	range_gives(&r, 0, 939, 0, 0);
	range_gives(&r, 961, 962, 960, 1);
	ring_done(&r);
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
	ring_wrap(&r, newest, 1000);
	assert_int_equal(ring_copy_open(r.fd, PAGE, &copy), 0);
	assert_int_equal(ring_copy_map(&copy, r.fd, 3), 0);
	ring_copy_head(&copy, to, 4, &got); /* of what is mapped, without the reader's */
	assert_int_equal(ring_copy_map(&copy, r.fd, SIZE_MAX), 0);
	ring_copy_head(&copy, to, 3, &got);
	for (unsigned i = 1; i <= overwritten; i++)
		ring_write(&r, (newest + i - 1) % 7 + 1, 1000 + i * 10, ring_full(&r));
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

/* --- a writer that goes on at the very moment when a certain sub-buffer is looked at */

static struct {
	const struct ring *ring;
	void *place;
	unsigned id;	/* the newest there is */
	uint64_t time;	/* its timestamp */
	unsigned count; /* how many it writes then */
} overtaking;

static char overtaken_copy[128 * PAGE];

static void overtake(int signal)
{
	if (mprotect(overtaking.place, PAGE, PROT_READ) < 0)
		abort();
	for (unsigned i = 0; i < overtaking.count; i++) {
		overtaking.id = overtaking.id % (overtaking.ring->n - 1) + 1;
		overtaking.time += 10;
		ring_write(overtaking.ring, overtaking.id, overtaking.time,
			   ring_full(overtaking.ring));
	}
}

/*
 * A ring that ends with @newest, of time 1000, mapped; @count more are written when the copy comes
 * to
 * @at. To be closed with overtaken_end().
 */
static void overtaken_begin(struct ring *r, struct ring_copy *copy, unsigned newest, unsigned at,
			    unsigned count)
{
	const struct sigaction action = {.sa_handler = overtake};

	ring_make(r, PAGE, 64);
	ring_wrap(r, newest, 1000);
	assert_int_equal(ring_copy_open(r->fd, PAGE, copy), 0);
	assert_int_equal(ring_copy_map(copy, r->fd, SIZE_MAX), 0);
	overtaking.ring = r;
	overtaking.place = (void *)(copy->map.data + (size_t)at * PAGE);
	overtaking.id = newest;
	overtaking.time = 1000;
	overtaking.count = count;
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(overtaking.place, PAGE, PROT_NONE), 0);
}

static void overtaken_end(struct ring *r, struct ring_copy *copy)
{
	ring_copy_close(copy);
	ring_done(r);
}

/* In one piece, from @first on */
static void assert_gapless(const char *to, size_t n, uint64_t first)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(time_in(to, i), first + i * 10);
		assert_false(missed_in(to, i));
	}
}

/*
 * After 1 … 29 the writer overtakes us up to 60, so that 21 … 29 of then are seen, and 30 … 60 of
 * now. @more are overwritten before they are copied: @n come out, up to the trigger, and @behind.
 */
static void overtaken_in_list(unsigned more, size_t n, size_t behind)
{
	char *to = overtaken_copy;
	struct ring_copy copy;
	struct ring r;

	overtaken_begin(&r, &copy, 20, 30, 40);
	assert_int_equal(ring_copy_list(&copy, true), 0);
	for (unsigned i = 0; i < more; i++)
		ring_write(&r, (60 + i) % 63 + 1, 1410 + i * 10UL, ring_full(&r));
	assert_int_equal(ring_copy_fill(&copy, to, 64), n + behind);
	assert_gapless(to, n, 1010 - n * 10);
	assert_int_equal(time_in(to, n), 1100);
	assert_true(missed_in(to, n) == (n > 0));
	assert_gapless(to + (n + 1) * PAGE, behind - 1, 1110);
	overtaken_end(&r, &copy);
}

static void test_overtaken_in_list(void **state)
{
	overtaken_in_list(1, 22, 31); /* 62, 63, 1 … 20, and 30 … 60 */
	overtaken_in_list(20, 3, 31); /* 18 … 20 */
	overtaken_in_list(23, 0, 31); /* nothing of then is left */
}

/* After 1 … 29 the writer comes to 34 */
static void test_overtaken_by_little(void **state)
{
	char *to = overtaken_copy;
	struct ring_copy copy;
	struct ring r;

	overtaken_begin(&r, &copy, 20, 30, 14);
	assert_int_equal(ring_copy_list(&copy, true), 0);
	assert_int_equal(ring_copy_fill(&copy, to, 64), 49); /* 35 … 63, 1 … 20 */
	assert_gapless(to, 49, 520);
	overtaken_end(&r, &copy);
}

/* A place that is just begun when we look at it, and then others behind it are written */
static void test_overtaken_at_an_empty_one(void **state)
{
	char *to = overtaken_copy;
	struct ring_copy copy;
	struct ring r;

	overtaken_begin(&r, &copy, 20, 22, 5);
	*ring_commit(&r, 21) = 0;
	assert_int_equal(ring_copy_list(&copy, true), 0);
	assert_int_equal(ring_copy_fill(&copy, to, 64), 58); /* 26 … 63, 1 … 20 */
	assert_gapless(to, 58, 430);
	overtaken_end(&r, &copy);
}

/* Once round the ring while its beginning is copied */
static void test_overtaken_in_head(void **state)
{
	char *to = overtaken_copy;
	struct ring_copy copy;
	struct ring r;
	size_t n = 0;

	overtaken_begin(&r, &copy, 63, 6, 63);
	ring_copy_head(&copy, to, 10, &n);
	assert_int_equal(ring_copy_list(&copy, true), 0);
	ring_copy_join(&copy, &n);
	ring_copy_begin(&copy, to, &n, 128);
	assert_true(n >= 50);
	assert_gapless(to, n, time_in(to, 0));
	overtaken_end(&r, &copy);
}

/* Sub-buffers come nearer as they are overwritten */
static void test_lead(void **state)
{
	struct ring_copy copy;
	struct ring r;
	char to[8 * PAGE];

	ring_make(&r, PAGE, 8);
	ring_wrap(&r, 7, 1000);
	ring_open_copy(&r, true, &copy);
	assert_int_equal(ring_copy_lead(&copy), 0);
	assert_int_equal(ring_copy_fill(&copy, to, 4), 4);
	assert_int_equal(ring_copy_lead(&copy), 4);
	ring_write(&r, 1, 1010, ring_full(&r));
	ring_write(&r, 2, 1020, ring_full(&r));
	assert_int_equal(ring_copy_lead(&copy), 2);
	for (unsigned id = 3; id < 7; id++)
		ring_write(&r, id, 1000 + id * 10, ring_full(&r));
	assert_int_equal(ring_copy_lead(&copy), 0);
	ring_copy_close(&copy);
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
		ring_write(&race->ring, id, t, ring_full(&race->ring));
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

static void test_race(void **state)
{
	const unsigned n = 64;
	char *to = malloc((size_t)n * LARGE);
	static struct race race; /* the writer goes on if the test fails */
	pthread_t thread;
	uint64_t copied = 0;

	ring_make(&race.ring, LARGE, n);
	ring_wrap(&race.ring, n - 1, 9990);
	assert_int_equal(pthread_create(&thread, NULL, race_writer, &race), 0);
	for (unsigned round = 0; round < 300; round++) {
		struct ring_copy copy;
		uint64_t before = 0;
		size_t got;

		ring_open_copy(&race.ring, true, &copy);
		while ((got = ring_copy_fill(&copy, to, n / 8)) > 0) {
			for (size_t i = 0; i < got; i++) {
				uint64_t t;

				memcpy(&t, to + i * LARGE, sizeof(t));
				/* A copy has no holes but those that it tells of */
				if (before && t != before + 10)
					assert_true(is_after_loss(to + i * LARGE, LARGE));
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
		cmocka_unit_test(test_torn_at_first),
		cmocka_unit_test(test_torn_later),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_lead),
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_overtaken_in_list),
		cmocka_unit_test(test_overtaken_by_little),
		cmocka_unit_test(test_overtaken_at_an_empty_one),
		cmocka_unit_test(test_overtaken_in_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
