/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "formats/subbuf.h"
#include "tests/unit/craft.h"

#define PAGE 4096

static struct subbuf_layout layout_of(const struct craft *c, uint32_t size)
{
	return (struct subbuf_layout){size, 8 + c->commit_size, (uint8_t)c->commit_size,
				      c->big_endian};
}

/* On a heap block of just this size, so that a sanitizer sees each byte read too far */
static int check(const struct craft *c, const uint32_t *least, struct subbuf_info *info,
		 struct subbuf_fault *fault)
{
	struct subbuf_layout layout = layout_of(c, (uint32_t)c->size);
	uint8_t *exact = malloc(c->size);
	int r;

	assert_non_null(exact);
	assert_true(subbuf_layout_valid(&layout));
	memcpy(exact, c->bytes, c->size);
	r = subbuf_check(&layout, exact, least, info, fault);
	free(exact);
	return r;
}

static void assert_fault(const struct craft *c, enum subbuf_reason reason, uint32_t offset,
			 uint32_t value)
{
	struct subbuf_fault fault = {};
	struct subbuf_info info;

	assert_int_equal(check(c, NULL, &info, &fault), -EBADMSG);
	assert_int_equal(fault.reason, reason);
	assert_int_equal(fault.offset, offset);
	assert_int_equal(fault.value, value);
}

static void test_every_event_type(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct subbuf_fault fault;
		struct subbuf_info info;

		craft_page_begin(&c, 1000);
		craft_event(&c, 1, 5, 1);
		craft_event(&c, 28, 5, 2);
		craft_time(&c, 30, 1ULL << 40);
		craft_event(&c, 2, 1, 3);
		craft_discarded(&c, 12, 4);
		craft_long_event(&c, 200, 0, 4);
		craft_long_event(&c, 4, 0, 4);
		craft_time(&c, 31, 1ULL << 50);
		craft_event(&c, 4, 6, 5);
		craft_head(&c, 29, 0); /* to the end */
		craft_fill(&c, 0xff, 64);
		craft_page_end(&c, 0, PAGE, 0);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_int_equal(info.events, 6);
		assert_int_equal(info.header.timestamp, 1000);
		assert_int_equal(info.first_ts, 1005);
		assert_int_equal(info.last_ts, (1ULL << 50) + 6);
		assert_false(info.header.missed);
	}
}

static void test_iterator_gives_data(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct subbuf_layout layout = layout_of(&c, PAGE);
		struct subbuf_event event;
		struct subbuf_fault fault;
		struct subbuf_iter it;
		unsigned head = 8 + c.commit_size;

		craft_page_begin(&c, 7);
		craft_event(&c, 3, 1, 0x1234);
		craft_long_event(&c, 120, 2, 0x4321);
		craft_page_end(&c, 0, PAGE, 0);
		assert_int_equal(subbuf_iter_init(&layout, c.bytes, &it, &fault), 0);
		assert_int_equal(subbuf_iter_next(&it, &event, &fault), 1);
		assert_int_equal(event.ts, 8);
		assert_int_equal(event.size, 12);
		assert_int_equal(event.offset, head);
		assert_ptr_equal(event.data, c.bytes + head + 4);
		assert_int_equal(subbuf_iter_next(&it, &event, &fault), 1);
		assert_int_equal(event.ts, 10);
		assert_int_equal(event.size, 120);
		assert_int_equal(event.offset, head + 16);
		assert_ptr_equal(event.data, c.bytes + head + 24);
		assert_int_equal(subbuf_iter_next(&it, &event, &fault), 0);
		assert_int_equal(subbuf_iter_next(&it, &event, &fault), 0);
	}
}

/* All before a fault first, and the fault each time from then on */
static void test_iterator_gives_some(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct subbuf_layout layout = layout_of(&c, PAGE);
		struct subbuf_event events[3];
		struct subbuf_fault fault;
		struct subbuf_iter it;

		craft_page_begin(&c, 7);
		for (unsigned i = 0; i < 5; i++)
			craft_event(&c, 3, 1, 0x1234);
		craft_head(&c, 0, 1); /* a length, which is missing */
		craft_page_end(&c, 0, PAGE, 0);
		assert_int_equal(subbuf_iter_init(&layout, c.bytes, &it, &fault), 0);
		assert_int_equal(subbuf_iter_some(&it, events, 3, &fault), 3);
		assert_int_equal(events[0].ts, 8);
		assert_int_equal(events[2].ts, 10);
		assert_int_equal(events[2].size, 12);
		assert_ptr_equal(events[2].data, events[0].data + 32);
		assert_int_equal(subbuf_iter_some(&it, events, 3, &fault), 2);
		assert_int_equal(events[1].ts, 12);
		for (unsigned i = 0; i < 2; i++) {
			fault = (struct subbuf_fault){};
			assert_int_equal(subbuf_iter_some(&it, events, 3, &fault), -EBADMSG);
			assert_int_equal(fault.reason, SUBBUF_EVENT_CUT);
		}
	}
}

/* Nobody wants 1; of 2 those with the numbers 7 and, by its size, 5000 */
static void test_iterator_picks(void **state)
{
	static struct subbuf_pick pick = {
		.ids = {[2] = SUBBUF_PICK_BY_NUMBER, [3] = SUBBUF_PICK_ALL},
		.number_at = 4,
		.numbers = {[7] = 1},
	};
	static const struct {
		uint16_t id;
		uint32_t number;
	} events[] = {{1, 7}, {2, 7}, {1, 0}, {2, 8}, {3, 9}, {2, 5000}, {2, 0}, {1, 1}};

	for (unsigned missed = 0; missed < 2; missed++)
		FOR_EACH_CRAFT(c)
		{
			const uint64_t wanted[] = {8, 9, 12, 13};
			struct subbuf_layout layout = layout_of(&c, PAGE);
			struct subbuf_event got[3];
			struct subbuf_fault fault;
			struct subbuf_iter it;
			unsigned n = missed ? 0 : 1; /* the first one is there behind a loss */
			int r;

			craft_page_begin(&c, 7);
			for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
				craft_head(&c, 2, 1);
				craft_number(&c, 2, events[i].id);
				craft_number(&c, 2, 0);
				craft_number(&c, 4, events[i].number);
			}
			craft_page_end(&c, 0, PAGE, missed ? 1U << 31 : 0);
			assert_int_equal(subbuf_iter_init(&layout, c.bytes, &it, &fault), 0);
			assert_int_equal(it.header.missed, missed);
			while ((r = subbuf_iter_pick(&it, &pick, got, ARRAY_SIZE(got), &fault)) > 0)
				for (int i = 0; i < r; i++)
					assert_int_equal(got[i].ts, wanted[n++]);
			assert_int_equal(r, 0);
			assert_int_equal(n, ARRAY_SIZE(wanted));
		}
}

static void test_absolute_time_keeps_top_bits(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct subbuf_fault fault;
		struct subbuf_info info;
		uint64_t top = 3ULL << 60;

		craft_page_begin(&c, top + 1000);
		craft_time(&c, 31, 2000);
		craft_event(&c, 4, 0, 5);
		craft_page_end(&c, 0, PAGE, 0);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_int_equal(info.last_ts, top + 2000);
	}
}

static void test_missed_events(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct subbuf_fault fault;
		struct subbuf_info info;

		craft_page_begin(&c, 1000);
		craft_event(&c, 1, 5, 1);
		craft_page_end_missed(&c, 0, PAGE, 123456);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_true(info.header.missed);
		assert_true(info.header.missed_stored);
		assert_int_equal(info.header.missed_events, 123456);
		assert_int_equal(info.header.commit, 8);
		assert_int_equal(info.events, 1);

		/* without the ones in the upper half */
		craft_set(&c, 8, c.commit_size, 8 | 3ULL << 30);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_int_equal(info.header.missed_events, 123456);
		assert_int_equal(info.header.commit, 8);

		/* no number stored: some */
		craft_set(&c, 8, c.commit_size, 8 | 1ULL << 31);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_true(info.header.missed);
		assert_false(info.header.missed_stored);
		assert_int_equal(info.header.missed_events, 0);
	}
}

static void test_full_and_empty(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		unsigned room = PAGE - 8 - c.commit_size;
		struct subbuf_fault fault;
		struct subbuf_info info;

		craft_page_begin(&c, 1000);
		while (c.size + 8 <= PAGE)
			craft_event(&c, 1, 1, 1);
		if (c.size < PAGE)
			craft_head(&c, 29, 0); /* the last 4 bytes: padding without a length */
		craft_page_end(&c, 0, PAGE, 0);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_int_equal(info.events, room / 8);

		/* nothing in it, but a time: the kernel may hand out such a one */
		craft_set(&c, 8, c.commit_size, 0);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_int_equal(info.events, 0);
		assert_int_equal(info.last_ts, 1000);

		craft_set(&c, 0, 8, 0);
		assert_int_equal(check(&c, NULL, &info, &fault), SUBBUF_E_EMPTY);
	}
}

static void test_large_subbuf(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct subbuf_fault fault;
		struct subbuf_info info;
		unsigned n = 0;

		craft_page_begin(&c, 1000);
		for (; c.size + 108 <= 262144; n++)
			craft_long_event(&c, 100, 1, 1);
		craft_page_end(&c, 0, 262144, 0);
		assert_int_equal(check(&c, NULL, &info, &fault), 0);
		assert_int_equal(info.events, n);
	}
}

static void test_bad_headers(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		unsigned room = PAGE - 8 - c.commit_size;

		craft_page_begin(&c, 1000);
		craft_event(&c, 1, 5, 1);
		craft_page_end(&c, 0, PAGE, 0);
		craft_set(&c, 8, c.commit_size, room + 1);
		assert_fault(&c, SUBBUF_COMMIT_TOO_LONG, 8, room + 1);
		craft_set(&c, 8, c.commit_size, 1 << 20);
		assert_fault(&c, SUBBUF_COMMIT_TOO_LONG, 8, 1 << 20);
		/* the number of missed events would lie outside */
		craft_set(&c, 8, c.commit_size, (room - 3) | 3ULL << 30);
		assert_fault(&c, SUBBUF_COMMIT_TOO_LONG, 8, room - 3);
		if (c.commit_size == 8) {
			craft_set(&c, 8, 8, 8 | 1ULL << 40);
			assert_fault(&c, SUBBUF_COMMIT_TOO_LONG, 8, UINT32_MAX);
			craft_set(&c, 8, 8, 8 | UINT64_MAX << 32);
			assert_fault(&c, SUBBUF_COMMIT_TOO_LONG, 8, UINT32_MAX);
			craft_set(&c, 8, 8, 8 | 1ULL << 40 | 1ULL << 31);
			assert_fault(&c, SUBBUF_COMMIT_TOO_LONG, 8, UINT32_MAX);
		}
		craft_set(&c, 8, c.commit_size, 8);
		craft_set(&c, 0, 8, 0);
		assert_fault(&c, SUBBUF_NO_TIMESTAMP, 0, 0);
	}
}

static void test_bad_events(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		unsigned head = 8 + c.commit_size, second = head + 8;

		craft_page_begin(&c, 1000);
		craft_event(&c, 1, 5, 1);
		craft_long_event(&c, 16, 5, 1);
		craft_page_end(&c, 0, PAGE, 0);

		craft_set(&c, second + 4, 4, 24); /* 4 more than there are */
		assert_fault(&c, SUBBUF_EVENT_TOO_LONG, second, 20);
		craft_set(&c, second + 4, 4, UINT32_MAX);
		assert_fault(&c, SUBBUF_EVENT_TOO_LONG, second, UINT32_MAX - 4);
		craft_set(&c, second + 4, 4, 0);
		assert_fault(&c, SUBBUF_EVENT_TOO_SHORT, second, 0);
		craft_set(&c, second + 4, 4, 4);
		assert_fault(&c, SUBBUF_EVENT_TOO_SHORT, second, 4);
		craft_set(&c, second + 4, 4, 18);
		assert_fault(&c, SUBBUF_EVENT_UNALIGNED, second, 14);
		craft_set(&c, second + 4, 4, 20);

		for (unsigned cut = 1; cut < 4; cut++) { /* inside the first word */
			craft_set(&c, 8, c.commit_size, 8 + cut);
			assert_fault(&c, SUBBUF_EVENT_CUT, second, cut);
		}
		craft_set(&c, 8, c.commit_size, 8 + 4); /* the length word is missing */
		assert_fault(&c, SUBBUF_EVENT_CUT, second, 4);
		craft_set(&c, 8, c.commit_size, 8 + 20); /* some data is missing */
		assert_fault(&c, SUBBUF_EVENT_TOO_LONG, second, 16);
		craft_set(&c, 8, c.commit_size, 4); /* short event's data is missing */
		assert_fault(&c, SUBBUF_EVENT_TOO_LONG, head, 4);
	}
}

static void test_bad_padding_and_time(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		unsigned head = 8 + c.commit_size;

		craft_page_begin(&c, 1000);
		craft_discarded(&c, 12, 1);
		craft_page_end(&c, 0, PAGE, 0);
		craft_set(&c, head + 4, 4, 16);
		assert_fault(&c, SUBBUF_EVENT_TOO_LONG, head, 16);
		craft_set(&c, head + 4, 4, 10);
		assert_fault(&c, SUBBUF_EVENT_UNALIGNED, head, 10);
		craft_done(&c);

		for (unsigned type = 30; type <= 31; type++) { /* half a time event at the end */
			craft_page_begin(&c, 1000);
			craft_head(&c, type, 1);
			craft_page_end(&c, 0, PAGE, 0);
			assert_fault(&c, SUBBUF_EVENT_CUT, head, 4);
			craft_done(&c);
		}

		craft_page_begin(&c, 1000);
		craft_event(&c, 1, 5, 1);
		craft_time(&c, 31, 1004);
		craft_event(&c, 1, 5, 1);
		craft_page_end(&c, 0, PAGE, 0);
		assert_fault(&c, SUBBUF_TIME_BACKWARDS, head + 8, 0);
		craft_done(&c);

		craft_page_begin(&c, UINT64_MAX - 2); /* time overflows */
		craft_event(&c, 1, 5, 1);
		craft_page_end(&c, 0, PAGE, 0);
		assert_fault(&c, SUBBUF_TIME_BACKWARDS, head, 0);
	}
}

static void test_event_ids(void **state)
{
	uint32_t *least = malloc(SUBBUF_EVENT_IDS * sizeof(*least));

	assert_non_null(least);
	for (size_t i = 0; i < SUBBUF_EVENT_IDS; i++)
		least[i] = SUBBUF_UNKNOWN_ID;
	least[7] = 12;
	FOR_EACH_CRAFT(c)
	{
		unsigned head = 8 + c.commit_size;
		struct subbuf_fault fault;
		struct subbuf_info info;

		craft_page_begin(&c, 1000);
		craft_event(&c, 3, 5, 7);
		craft_event(&c, 2, 5, 7);
		craft_event(&c, 3, 5, 0x107);
		craft_page_end(&c, 0, PAGE, 0);
		assert_int_equal(check(&c, least, &info, &fault), -EBADMSG);
		assert_int_equal(fault.reason, SUBBUF_EVENT_SMALLER_THAN_FORMAT);
		assert_int_equal(fault.offset, head + 16);
		assert_int_equal(fault.value, 7);
		least[7] = 8;
		assert_int_equal(check(&c, least, &info, &fault), -EBADMSG);
		assert_int_equal(fault.reason, SUBBUF_EVENT_UNKNOWN);
		assert_int_equal(fault.offset, head + 28);
		assert_int_equal(fault.value, 0x107);
		least[7] = 12;
	}
	free(least);
}

/* Any bytes: no read outside (the sanitizer build sees it), an answer each time */
static void test_noise(void **state)
{
	unsigned seed = 1, faults = 0;

	for (unsigned round = 0; round < 20000; round++) {
		struct craft c = craft_kinds[round % CRAFT_KINDS];
		struct subbuf_fault fault = {};
		struct subbuf_info info;
		char text[160];
		int r;

		craft_page_begin(&c, 1000);
		for (unsigned i = 0; i < 40; i++) {
			seed = seed * 1103515245 + 12345;
			craft_number(&c, 4, round & 4 ? seed : seed >> (seed >> 28));
		}
		craft_page_end(&c, 0, 184, 0);
		r = check(&c, NULL, &info, &fault);
		assert_true(r == 0 || r == -EBADMSG);
		if (r < 0) {
			faults++;
			assert_true(fault.offset < 184);
			assert_true(strlen(subbuf_fault_text(&fault, text, sizeof(text))) > 10);
		}
		craft_done(&c);
	}
	assert_true(faults > 1000);
}

static void test_layouts(void **state)
{
	struct subbuf_layout good = {4096, 16, 8, false}, l;

	assert_true(subbuf_layout_valid(&good));
	l = good, l.commit_size = 2;
	assert_false(subbuf_layout_valid(&l));
	l = good, l.data_offset = 12;
	assert_false(subbuf_layout_valid(&l));
	l = good, l.size = 16;
	assert_false(subbuf_layout_valid(&l));
	l = good, l.size = 4095;
	assert_false(subbuf_layout_valid(&l));
}

#define TOP (UINT64_C(3) << 60) /* an absolute time comes without it */
#define BY  UINT64_C(0x123456789abcd)

/* A sub-buffer with all kinds of events that tell a time */
static void put_times(struct craft *c)
{
	size_t page = craft_page_begin(c, TOP + 1000);

	craft_event(c, 2, 5, 1);
	craft_time(c, 30, UINT64_C(1) << 30);
	craft_long_event(c, 200, 5, 2);
	craft_discarded(c, 16, 5);
	craft_time(c, 31, UINT64_C(1) << 40);
	craft_event(c, 2, 7, 3);
	craft_page_end(c, page, PAGE, 0);
}

static void test_move(void **state)
{
	(void)state;
	FOR_EACH_CRAFT(c)
	{
		uint16_t *ids = calloc(SUBBUF_EVENT_IDS, sizeof(*ids));
		uint8_t *pids = calloc(1, SUBBUF_MOVE_PIDS / 8);
		const struct subbuf_move move = {.by = BY, .ids = ids, .pid_at = 4, .pids = pids};
		struct subbuf_layout layout;
		struct subbuf_event before, after;
		struct subbuf_iter it, moved;
		struct subbuf_info info;
		uint8_t *bytes = malloc(PAGE);

		assert_true(ids && pids && bytes);
		ids[1] = 300;
		ids[2] = 1;
		put_times(&c);
		layout = layout_of(&c, PAGE);
		memcpy(bytes, c.bytes, PAGE);
		assert_int_equal(subbuf_move(&layout, bytes, &move, &info, NULL), 0);
		assert_int_equal(info.events, 3);
		assert_int_equal(info.last_ts, TOP + (UINT64_C(1) << 40) + 7);
		assert_int_equal(subbuf_iter_init(&layout, c.bytes, &it, NULL), 0);
		assert_int_equal(subbuf_iter_init(&layout, bytes, &moved, NULL), 0);
		for (unsigned i = 0; i < 3; i++) {
			static const uint16_t expected[] = {300, 1, 0};
			uint16_t id;

			assert_int_equal(subbuf_iter_next(&it, &before, NULL), 1);
			assert_int_equal(subbuf_iter_next(&moved, &after, NULL), 1);
			assert_int_equal(after.ts, before.ts + BY);
			assert_int_equal(after.size, before.size);
			id = (uint16_t)(after.data[c.big_endian] | after.data[!c.big_endian] << 8);
			assert_int_equal(id, expected[i]);
			assert_memory_equal(after.data + 2, before.data + 2, after.size - 2);
		}
		assert_int_equal(subbuf_iter_next(&moved, &after, NULL), 0);
		free(bytes);
		free(pids);
		free(ids);
	}
}

/* Each time by itself, so that nothing adds up; what was discarded still is no end */
static void test_move_rate(void **state)
{
	const struct time_rate rate = {
		.on = true, .scaling = 3, .fraction = 2, .offset = 12345, .mult = 2, .shift = 2};
	const struct subbuf_move move = {.rate = &rate, .by = BY};

	(void)state;
	FOR_EACH_CRAFT(c)
	{
		struct subbuf_layout layout;
		struct subbuf_event before, after;
		struct subbuf_iter it, moved;
		uint8_t *bytes = malloc(PAGE);
		size_t page = craft_page_begin(&c, 1000001);
		uint64_t last = 0;
		unsigned n = 0;

		assert_non_null(bytes);
		for (unsigned i = 0; i < 20; i++)
			craft_event(&c, 2, i, 3);
		craft_time(&c, 30, UINT64_C(1) << 40);
		craft_event(&c, 2, (1U << 27) - 1, 3);
		craft_discarded(&c, 16, 1);
		craft_event(&c, 2, 1, 3);
		craft_time(&c, 31, UINT64_C(1) << 58);
		craft_long_event(&c, 200, 5, 3);
		craft_page_end(&c, page, PAGE, 0);
		layout = layout_of(&c, PAGE);
		memcpy(bytes, c.bytes, PAGE);
		assert_int_equal(subbuf_move(&layout, bytes, &move, NULL, NULL), 0);
		assert_int_equal(subbuf_iter_init(&layout, c.bytes, &it, NULL), 0);
		assert_int_equal(subbuf_iter_init(&layout, bytes, &moved, NULL), 0);
		for (; subbuf_iter_next(&it, &before, NULL) == 1; n++) {
			/* 3/4 of it, and a half of that */
			const uint64_t expected = (before.ts * 3 / 4 + 12345) * 2 / 4 + BY;

			assert_int_equal(subbuf_iter_next(&moved, &after, NULL), 1);
			assert_in_range(after.ts, expected, expected + (n == 21));
			assert_true(after.ts >= last);
			last = after.ts;
		}
		assert_int_equal(n, 23);
		assert_int_equal(subbuf_iter_next(&moved, &after, NULL), 0);
		free(bytes);
	}
}

/* Whoever had events; a sub-buffer that makes no sense stays as it is */
static void test_move_pids(void **state)
{
	struct craft c = craft_kinds[0];
	uint8_t *pids = calloc(1, SUBBUF_MOVE_PIDS / 8), *bytes = malloc(PAGE);
	const struct subbuf_move move = {.by = BY, .pid_at = 4, .pids = pids};
	struct subbuf_layout layout;
	struct subbuf_fault fault;
	size_t page;

	(void)state;
	assert_true(pids && bytes);
	page = craft_page_begin(&c, 1000);
	craft_event(&c, 2, 5, 1);
	craft_set(&c, c.size - 4, 4, 70);
	craft_event(&c, 2, 5, 1);
	craft_set(&c, c.size - 4, 4, SUBBUF_MOVE_PIDS); /* no pid of Linux */
	craft_page_end(&c, page, PAGE, 0);
	layout = layout_of(&c, PAGE);
	memcpy(bytes, c.bytes, PAGE);
	assert_int_equal(subbuf_move(&layout, bytes, &move, NULL, NULL), 0);
	for (unsigned i = 0; i < SUBBUF_MOVE_PIDS / 8; i++)
		assert_int_equal(pids[i], i == 70 / 8 ? 1 << 70 % 8 : 0);
	craft_set(&c, layout.data_offset + 12, 4, c.big_endian ? 28U << 27 : 28);
	craft_set(&c, 8, c.commit_size, 40);
	memcpy(bytes, c.bytes, PAGE);
	assert_int_equal(subbuf_move(&layout, bytes, &move, NULL, &fault), -EBADMSG);
	assert_memory_equal(bytes, c.bytes, PAGE);
	free(bytes);
	free(pids);
	craft_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_event_type),
		cmocka_unit_test(test_iterator_gives_data),
		cmocka_unit_test(test_iterator_gives_some),
		cmocka_unit_test(test_iterator_picks),
		cmocka_unit_test(test_absolute_time_keeps_top_bits),
		cmocka_unit_test(test_missed_events),
		cmocka_unit_test(test_full_and_empty),
		cmocka_unit_test(test_large_subbuf),
		cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_bad_events),
		cmocka_unit_test(test_bad_padding_and_time),
		cmocka_unit_test(test_event_ids),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_move_rate),
		cmocka_unit_test(test_move_pids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
