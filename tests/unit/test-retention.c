/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What retention chooses to remove, as a pure function over a list of files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "writer/retention.h"

#define NOW   (1000000 * USEC_PER_SEC)
#define N_MAX 16

/* A choice among files "a", "b", …; what is left is compared as a string of their letters */
struct choice {
	struct retention_item items[N_MAX];
	char names[N_MAX][2];
	size_t n;
	struct retention_limits limits;
	uint64_t free_bytes;
};

static const struct choice plain = {.limits = {.max_use = UINT64_MAX}, .free_bytes = GIB};

static struct retention_item *add(struct choice *c, uint64_t begin_sec, uint64_t bytes)
{
	struct retention_item *item = &c->items[c->n];

	c->names[c->n][0] = (char)('a' + c->n);
	*item = (struct retention_item){
		.begin_usec = begin_sec * USEC_PER_SEC,
		.end_usec = (begin_sec + 5) * USEC_PER_SEC,
		.bytes = bytes,
		.rank = RETENTION_RANK_LAST,
	};
	c->n++;
	return item;
}

/* As if nothing had been chosen yet */
static void take_back(struct choice *c)
{
	for (size_t i = 0; i < c->n; i++)
		c->items[i].evict = false;
}

static void assert_left(struct choice *c, const char *expected)
{
	char left[N_MAX + 1] = "";
	size_t n = 0;

	/* Only now: the object may have been copied */
	for (size_t i = 0; i < c->n; i++)
		c->items[i].name = c->names[i];
	retention_choose(c->items, c->n, &c->limits, c->free_bytes, NOW);
	for (char letter = 'a'; letter < 'a' + N_MAX; letter++)
		for (size_t i = 0; i < c->n; i++)
			if (c->items[i].name[0] == letter && !c->items[i].evict)
				left[n++] = letter;
	assert_string_equal(left, expected);
}

static void test_nothing(void **state)
{
	struct choice c = plain;

	c.limits = (struct retention_limits){.max_use = 0, .keep_free = UINT64_MAX, .max_files = 1};
	assert_left(&c, "");
	c = plain;
	add(&c, 1, 100);
	add(&c, 2, 100);
	assert_left(&c, "ab");
}

static void test_max_use(void **state)
{
	struct choice c = plain;

	for (unsigned i = 0; i < 4; i++)
		add(&c, i + 1, 100);
	c.limits.max_use = 400;
	assert_left(&c, "abcd");
	c.limits.max_use = 399;
	assert_left(&c, "bcd");
	take_back(&c);
	c.limits.max_use = 0;
	assert_left(&c, "");
}

/* Oldest first by the time of the data, wherever they stand in the list */
static void test_order(void **state)
{
	struct choice c = plain;

	add(&c, 30, 100);
	add(&c, 10, 100);
	add(&c, 40, 100);
	add(&c, 20, 100);
	c.limits.max_use = 200;
	assert_left(&c, "ac");
}

/* Of the same time: by name, so that two runs choose the same */
static void test_ties(void **state)
{
	struct choice c = plain, d;

	add(&c, 10, 100);
	add(&c, 10, 100);
	add(&c, 10, 100);
	d = c;
	c.limits.max_use = 100;
	assert_left(&c, "c");
	d.limits.max_use = 100;
	d.names[0][0] = 'c';
	d.names[2][0] = 'a';
	assert_left(&d, "c");
	assert_int_equal(d.items[2].bytes, 100);
}

/* Of snapshots: no live file is counted, and the one just asked for is not taken away for room */
static void test_keep_newest(void **state)
{
	struct choice c = plain;

	for (unsigned i = 0; i < 3; i++)
		add(&c, i + 1, 100);
	c.limits.keep_newest = true;
	c.limits.max_files = 3;
	assert_left(&c, "abc");
	c.limits.max_files = 1;
	assert_left(&c, "c");
	take_back(&c);
	c.limits.max_use = 50;
	assert_left(&c, "c");
	c.limits.max_age_usec = 1;
	assert_left(&c, "");
}

/* A large one goes, and what follows may stay */
static void test_no_more_than_needed(void **state)
{
	struct choice c = plain;

	add(&c, 1, 1000);
	add(&c, 2, 10);
	add(&c, 3, 10);
	c.limits.max_use = 500;
	assert_left(&c, "bc");
}

static void test_live_reserve(void **state)
{
	struct choice c = plain;

	add(&c, 1, 100);
	add(&c, 2, 100);
	add(&c, 3, 100);
	c.limits.max_use = 300;
	c.limits.live_reserve = 1;
	assert_left(&c, "bc");
	c = plain;
	add(&c, 1, 100);
	c.limits.max_use = 300;
	c.limits.live_reserve = 301; /* the live file alone is too much: all others go */
	assert_left(&c, "");
}

/* Of both limits, but a file system that nobody wants to keep free */
static void test_spare(void **state)
{
	struct choice c = plain;

	add(&c, 1, 100);
	add(&c, 2, 100);
	add(&c, 3, 100);
	c.limits.max_use = 310;
	c.limits.spare = 10;
	assert_left(&c, "abc");
	c.limits.spare = 11;
	assert_left(&c, "bc");
	take_back(&c);
	c.limits.max_use = UINT64_MAX;
	c.free_bytes = 1000;
	c.limits.keep_free = 989;
	assert_left(&c, "abc");
	c.limits.keep_free = 990;
	assert_left(&c, "bc");
	take_back(&c);
	c.limits.keep_free = 0;
	c.free_bytes = 0;
	assert_left(&c, "abc");
}

static void test_keep_free(void **state)
{
	struct choice c = plain;

	for (unsigned i = 0; i < 4; i++)
		add(&c, i + 1, 100);
	c.free_bytes = 1000;
	c.limits.keep_free = 1000;
	assert_left(&c, "abcd");
	c.limits.keep_free = 1001;
	assert_left(&c, "bcd");
	take_back(&c);
	c.limits.keep_free = 1250;
	assert_left(&c, "d");
}

/* MaxFiles counts the live one */
static void test_max_files(void **state)
{
	struct choice c = plain;

	for (unsigned i = 0; i < 4; i++)
		add(&c, i + 1, 100);
	c.limits.max_files = 5;
	assert_left(&c, "abcd");
	c.limits.max_files = 3;
	assert_left(&c, "cd");
	take_back(&c);
	c.limits.max_files = 1;
	assert_left(&c, "");
	take_back(&c);
	c.limits.max_files = 0;
	assert_left(&c, "abcd");
}

/* Age is that of the last data, and a limit longer than the clock's time reaches nobody */
static void test_max_age(void **state)
{
	struct choice c = plain;
	uint64_t age = 100 * USEC_PER_SEC;

	add(&c, 1, 100)->end_usec = NOW - age - 1;
	add(&c, 2, 100)->end_usec = NOW - age;
	add(&c, 3, 100)->end_usec = NOW + 1; /* of a clock that went back */
	c.limits.max_age_usec = age;
	assert_left(&c, "bc");
	c.items[0].evict = false;
	c.limits.max_age_usec = NOW;
	assert_left(&c, "abc");
	c.limits.max_age_usec = UINT64_MAX;
	assert_left(&c, "abc");
}

/* The oldest by time of data was written to last: it is not too old, the other one is */
static void test_max_age_out_of_order(void **state)
{
	struct choice c = plain;

	add(&c, 1, 100)->end_usec = NOW;
	add(&c, 2, 100)->end_usec = 7 * USEC_PER_SEC;
	c.limits.max_age_usec = USEC_PER_SEC;
	assert_left(&c, "a");
}

/* Pinned files are never chosen, but what they take is taken */
static void test_pinned(void **state)
{
	struct choice c = plain;

	add(&c, 1, 1000)->pinned = true;
	add(&c, 2, 100);
	add(&c, 3, 100);
	c.limits.max_use = 1100;
	assert_left(&c, "ac");
	take_back(&c);
	c.limits.max_use = 10;
	c.limits.max_files = 1;
	c.limits.max_age_usec = 1;
	c.limits.keep_free = UINT64_MAX;
	assert_left(&c, "a");
}

/* Damaged files: a quarter of max_use together, the oldest go; and they count with the rest */
static void test_damaged(void **state)
{
	struct choice c = plain;

	for (unsigned i = 0; i < 3; i++)
		add(&c, i + 1, 100)->damaged = true;
	add(&c, 4, 100);
	c.limits.max_use = 1200;
	assert_left(&c, "abcd");
	c.limits.max_use = 1199;
	assert_left(&c, "bcd");

	take_back(&c);
	c.items[1].pinned = true;
	c.limits.max_use = 799; /* no cap for b, nor for c, being the newest */
	assert_left(&c, "bcd");
	take_back(&c);
	c.limits.max_use = 399;
	c.items[1].pinned = false;
	assert_left(&c, "cd");

	c = plain;
	add(&c, 5, 100)->damaged = true;
	add(&c, 1, 100);
	add(&c, 2, 300);
	c.limits.max_use = 400; /* just the quarter; the oldest others make room */
	assert_left(&c, "ac");
}

/* What the cap of damaged files frees is free: no segment has to go for it a second time */
static void test_damaged_frees(void **state)
{
	struct choice c = plain;

	add(&c, 1, 100);
	add(&c, 2, 500)->damaged = true;
	add(&c, 3, 50)->damaged = true;
	c.limits.max_use = 1000;
	c.limits.keep_free = 600;
	c.free_bytes = 100;
	assert_left(&c, "ac");
}

/* How long what may be used lasts */
static uint64_t lasts(const struct retention_past *past, uint64_t bytes, uint64_t usec,
		      uint64_t max_use)
{
	const struct retention_live live = {.bytes = bytes, .usec = usec};

	return retention_lasts(past, &live, max_use, NOW);
}

static void test_lasts(void **state)
{
	const uint64_t day = 86400 * USEC_PER_SEC;
	const struct retention_past half_a_day = {.oldest_usec = NOW - 9 * day,
						  .recent_usec = NOW - day / 2,
						  .recent_bytes = 90,
						  .recent_plain = 90};
	const struct retention_past none = {};

	/* 100 bytes in half a day */
	assert_int_equal(lasts(&half_a_day, 10, NOW - day, 1000), 5 * day);
	/* only the live one */
	assert_int_equal(lasts(&none, 100, NOW - day / 4, 1000), 5 * day / 2);
	/* too early to tell, nothing recorded, a clock that was set back */
	assert_int_equal(lasts(&none, 100, NOW - USEC_PER_SEC, 1000), 0);
	assert_int_equal(lasts(&none, 0, NOW - day, 1000), 0);
	assert_int_equal(lasts(&none, 100, 0, 1000), 0);
	assert_int_equal(lasts(&none, 100, NOW + day, 1000), 0);
	/* hardly anything: bounded */
	assert_int_equal(lasts(&none, 1, NOW - day, UINT64_MAX), 3650 * day);
}

/* What is not yet compressed will take as little as what is */
static void test_lasts_compressed(void **state)
{
	const uint64_t day = 86400 * USEC_PER_SEC;
	struct retention_past past = {
		.recent_usec = NOW - day / 2, .recent_bytes = 10 + 80, .recent_plain = 80};
	struct retention_live live = {
		.bytes = 10, .usec = NOW - day / 10, .raw_bytes = 900, .packed_bytes = 100};

	/* 10 bytes that are, 90 that will be 10 */
	assert_int_equal(retention_lasts(&past, &live, 1000, NOW), 25 * day);
	live.packed_bytes = 0; /* not known */
	assert_int_equal(retention_lasts(&past, &live, 1000, NOW), 5 * day);
	past.recent_plain = live.bytes = 0;
	assert_int_equal(retention_lasts(&past, &live, 900, NOW), 5 * day);
}

static struct retention_item *add_members(struct choice *c, uint64_t begin_sec, uint64_t bytes)
{
	struct retention_item *item = add(c, begin_sec, bytes);

	item->by_member = true;
	return item;
}

/* Others' snapshots: what members asked for goes before what is older */
static void test_members_first(void **state)
{
	struct choice c = plain;

	c.limits.keep_newest = true;
	add(&c, 1, 100);
	add_members(&c, 2, 100);
	add(&c, 3, 100);
	add_members(&c, 4, 100);
	add(&c, 5, 100);
	c.limits.max_use = 400;
	assert_left(&c, "acde");
	c.limits.max_use = 300;
	assert_left(&c, "ace");
	c.limits.max_use = 200;
	assert_left(&c, "ce");
	take_back(&c);
	c.limits.max_use = UINT64_MAX;
	c.limits.max_files = 4;
	assert_left(&c, "acde");
	take_back(&c);
	c.limits.max_files = 0;
	c.limits.keep_free = c.free_bytes + 250;
	assert_left(&c, "ce");
}

/* Age asks nobody */
static void test_members_age(void **state)
{
	struct choice c = plain;

	add(&c, NOW / USEC_PER_SEC - 100, 100);
	add_members(&c, NOW / USEC_PER_SEC - 50, 100);
	c.limits.max_age_usec = 60 * USEC_PER_SEC;
	c.limits.max_use = 100;
	assert_left(&c, "b");
}

/* A part of the room, and of the files, whoever the retention is for */
static void test_members_budget(void **state)
{
	struct choice c = plain;

	c.limits.keep_newest = true;
	add(&c, 1, 1000);
	add_members(&c, 2, 100);
	add_members(&c, 3, 100)->pinned = true; /* somebody else's by now */
	add_members(&c, 4, 100);
	add_members(&c, 5, 100);
	add(&c, 6, 1000);
	c.limits.member_use = 300;
	assert_left(&c, "abcdef");
	c.limits.member_use = 299;
	assert_left(&c, "acdef");
	take_back(&c);
	c.limits.member_use = 0;
	c.limits.member_files = 1;
	assert_left(&c, "acef");
}

/* For a member's nothing else goes, for whatever limit, and itself it stays */
static void test_members_only(void **state)
{
	struct choice c = plain;

	add(&c, 1, 100)->damaged = true;
	add(&c, 2, 100)->damaged = true;
	add(&c, 3, 100);
	add_members(&c, 4, 100);
	add_members(&c, 5, 100)->pinned = true;
	add(&c, 6, 100);
	add_members(&c, 7, 100);
	c.limits = (struct retention_limits){
		.max_use = 1,
		.keep_free = UINT64_MAX,
		.max_files = 1,
		.keep_newest = true,
		.member_use = 1,
		.member_files = 1,
		.members_only = true,
	};
	assert_left(&c, "abcefg");
	take_back(&c);
	c.limits.max_age_usec = 1;
	assert_left(&c, "abcef");
}

/* Pressure first, the first one of its storm behind the others; then what is about somebody,
 * likewise */
static void test_rank(void **state)
{
	struct choice c = plain;

	c.limits.keep_newest = true;
	add(&c, 1, 100)->rank = retention_rank(false, false); /* a kill, long ago */
	add(&c, 2, 100)->rank = retention_rank(true, false);
	add(&c, 3, 100)->rank = retention_rank(true, true);
	add(&c, 4, 100)->rank = retention_rank(false, true);
	add(&c, 5, 100); /* asked for */
	add(&c, 6, 100)->rank = retention_rank(true, true);
	add(&c, 7, 100)->rank = retention_rank(true, true);
	c.limits.max_use = 600;
	assert_left(&c, "abdefg");
	c.limits.max_use = 500;
	assert_left(&c, "abdeg");
	c.limits.max_use = 400;
	assert_left(&c, "adeg");
	c.limits.max_use = 300;
	assert_left(&c, "aeg");
	c.limits.max_use = 200;
	assert_left(&c, "eg");
	take_back(&c);
	/* age is above all that */
	c.limits.max_use = UINT64_MAX;
	c.limits.max_age_usec = NOW - 10 * USEC_PER_SEC;
	assert_left(&c, "efg");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_max_use),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_no_more_than_needed),
		cmocka_unit_test(test_live_reserve),
		cmocka_unit_test(test_keep_newest),
		cmocka_unit_test(test_spare),
		cmocka_unit_test(test_keep_free),
		cmocka_unit_test(test_max_files),
		cmocka_unit_test(test_max_age),
		cmocka_unit_test(test_max_age_out_of_order),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_damaged_frees),
		cmocka_unit_test(test_lasts),
		cmocka_unit_test(test_lasts_compressed),
		cmocka_unit_test(test_members_first),
		cmocka_unit_test(test_members_age),
		cmocka_unit_test(test_members_budget),
		cmocka_unit_test(test_members_only),
		cmocka_unit_test(test_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
