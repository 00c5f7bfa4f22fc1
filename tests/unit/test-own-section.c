/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec's own section in files of both versions, both byte orders and sizes of long: as it was
 * written, written in place, and damaged at each place.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "basic/crc32.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "formats/own-cause.h"
#include "formats/own-clocks.h"
#include "formats/own-findings.h"
#include "formats/own-section.h"
#include "formats/trace-dat-v7.h"
#include "tests/unit/craft-v7.h"
#include "tests/unit/craft.h"

#define PAGE 4096

/* A file with a section, and where that is */
struct sample {
	int fd;
	size_t at, size;
	struct trace_dat *dat;
};

static void sample_done(struct sample *s)
{
	trace_dat_free(s->dat);
	close_p(&s->fd);
}
#define _cleanup_sample_ _cleanup_(sample_done)

static void put_file(struct sample *s, const struct craft *c)
{
	s->fd = memfd_create("test-own-section", MFD_CLOEXEC);
	assert_true(s->fd >= 0);
	assert_int_equal(io_pwrite_all(s->fd, c->bytes, c->size, 0), 0);
}

static void reopen(struct sample *s)
{
	struct fault why = {};

	trace_dat_free(TAKE_PTR(s->dat));
	if (trace_dat_open_fd(s->fd, "f", &s->dat, &why) < 0)
		fail_msg("%s", why.text);
}

/* @gap: pages between the table and the section */
static void make_v6(struct craft *c, const uint8_t *own, size_t size, size_t gap, struct sample *s)
{
	struct craft_dat at;
	size_t room = round_up(size, PAGE) + gap * PAGE, tail;

	craft_dat(c, "CPU: 0\n", NULL, &at);
	tail = c->size - at.region[0];
	craft_fill(c, 0, room);
	memmove(c->bytes + at.region[0] + room, c->bytes + at.region[0], tail);
	memset(c->bytes + at.region[0], 0, room);
	memcpy(c->bytes + at.region[0] + gap * PAGE, own, size);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		craft_set(c, at.table + 16 * cpu, 8, at.region[cpu] + room);
	*s = (struct sample){.at = at.region[0] + gap * PAGE, .size = size};
	put_file(s, c);
	reopen(s);
}

static void make_v7(struct craft *c, const uint8_t *own, size_t size, struct sample *s)
{
	struct craft_v7 at;

	craft_v7(c, false, "CPU: 0\n", &at);
	craft_number(c, 2, TRACE_DAT_V7_OWN);
	craft_number(c, 2, 0);
	craft_number(c, 4, 0);
	craft_number(c, 8, size);
	*s = (struct sample){.at = c->size, .size = size};
	craft_bytes(c, own, size);
	put_file(s, c);
	reopen(s);
}

/* Three kinds, of which one has room only */
static void build(bool big_endian, uint8_t **ret, size_t *ret_size)
{
	struct own_entry entries[] = {
		{.kind = OWN_INDEX, .data = (const uint8_t *)"an index", .size = 8},
		{.kind = OWN_TASKS},
		{.kind = OWN_JOURNAL, .room = 100},
		{.kind = 77, .data = (const uint8_t *)"of the future", .size = 13},
	};

	assert_int_equal(own_section_build(entries, 4, big_endian, ret, ret_size), 0);
	assert_int_equal(*ret_size % 16, 0);
	for (unsigned i = 0; i < 4; i++)
		if (entries[i].room > 0)
			assert_int_equal((entries[i].place + OWN_ENTRY_HEAD) % OWN_RECORD_ALIGN, 0);
}

static void make(struct craft *c, unsigned version, struct sample *s)
{
	_cleanup_free_ uint8_t *own = NULL;
	size_t size;

	build(c->big_endian, &own, &size);
	if (version == 6)
		make_v6(c, own, size, 2, s);
	else
		make_v7(c, own, size, s);
}

#define FOR_EACH_FILE(c, version)                           \
	for (unsigned version = 6; version <= 7; version++) \
	FOR_EACH_CRAFT(c)

/* The data of a kind is this text; NULL: there is none */
static void assert_data(const struct sample *s, enum own_kind kind, const char *want)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct fault why = {};
	size_t size = 0;
	int r = own_section_read(s->dat, kind, &data, &size, &why);

	if (!want) {
		assert_int_equal(r, -ENOENT);
		return;
	}
	if (r < 0)
		fail_msg("%s", why.text);
	assert_int_equal(size, strlen(want));
	assert_string_equal((char *)data, want);
}

static void assert_damaged(const struct sample *s, enum own_kind kind, const char *words)
{
	uint8_t *data = NULL;
	struct fault why = {};
	size_t size = 0;

	assert_int_equal(own_section_read(s->dat, kind, &data, &size, &why), -EBADMSG);
	assert_null(data);
	if (!strstr(why.text, words) || strncmp(why.text, "f: offset 0x", 12) != 0)
		fail_msg("\"%s\" does not say \"%s\"", why.text, words);
}

static void set(const struct sample *s, size_t at, const void *bytes, size_t size)
{
	assert_int_equal(io_pwrite_all(s->fd, bytes, size, s->at + at), 0);
}

static void flip(const struct sample *s, size_t at)
{
	uint8_t byte;

	assert_int_equal(io_pread_all(s->fd, &byte, 1, s->at + at), 0);
	byte ^= 0x40;
	set(s, at, &byte, 1);
}

static void test_crc32(void **state)
{
	assert_int_equal(crc32_add(0, "", 0), 0);
	assert_int_equal(crc32_add(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(crc32_add(crc32_add(0, "1234", 4), "56789", 5), 0xcbf43926);
}

static void test_read(void **state)
{
	FOR_EACH_FILE(c, version)
	{
		_cleanup_own_section_ struct own_section own = {};
		_cleanup_sample_ struct sample s;

		make(&c, version, &s);
		assert_int_equal(s.dat->version, version);
		assert_int_equal(s.dat->damages.n, version == 7); /* what it has is no index */
		assert_data(&s, OWN_INDEX, "an index");
		assert_data(&s, OWN_JOURNAL, NULL);
		assert_data(&s, OWN_TASKS, NULL);
		assert_int_equal(own_section_load(s.dat, &own, NULL), 0);
		assert_int_equal(own.n, 3);
		assert_int_equal(own.place, s.at);
		assert_int_equal(own.entries[2].kind, 77);
		assert_memory_equal(own.entries[2].data, "of the future", 13);
		assert_true(own.entries[1].room >= 100);
	}
}

static void test_none(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_sample_ struct sample s = {};
		struct craft_dat at;

		craft_dat(&c, NULL, "second", &at);
		put_file(&s, &c);
		reopen(&s);
		assert_data(&s, OWN_INDEX, NULL);
		assert_int_equal(own_section_write(s.dat, OWN_INDEX, "x", 1, NULL), -ENOENT);
	}
	FOR_EACH_CRAFT(c)
	{
		_cleanup_sample_ struct sample s = {};
		struct craft_v7 at;

		craft_v7(&c, false, NULL, &at);
		put_file(&s, &c);
		reopen(&s);
		assert_data(&s, OWN_INDEX, NULL);
	}
}

/* It is looked for up to the first region, and not where it does not begin a page */
static void test_place(void **state)
{
	_cleanup_free_ uint8_t *own = NULL, *shifted = NULL;
	size_t size;

	FOR_EACH_CRAFT(c)
	{
		_cleanup_sample_ struct sample s;

		free(TAKE_PTR(own));
		build(c.big_endian, &own, &size);
		make_v6(&c, own, size, 0, &s);
		assert_data(&s, OWN_INDEX, "an index");
	}
	FOR_EACH_CRAFT(c)
	{
		_cleanup_sample_ struct sample s;

		free(TAKE_PTR(own));
		build(c.big_endian, &own, &size);
		free(TAKE_PTR(shifted));
		shifted = calloc(1, size + 16);
		assert_non_null(shifted);
		memcpy(shifted + 16, own, size);
		make_v6(&c, shifted, size + 16, 0, &s);
		assert_data(&s, OWN_INDEX, NULL);
	}
}

static void test_write(void **state)
{
	FOR_EACH_FILE(c, version)
	{
		_cleanup_sample_ struct sample s;
		struct fault why = {};
		char text[2000];

		make(&c, version, &s);
		assert_int_equal(own_section_write(s.dat, OWN_JOURNAL, "a line", 6, &why), 0);
		assert_data(&s, OWN_JOURNAL, "a line");
		memset(text, 'x', sizeof(text));
		text[100] = '\0';
		assert_int_equal(own_section_write(s.dat, OWN_JOURNAL, text, 100, &why), 0);
		assert_data(&s, OWN_JOURNAL, text);
		assert_int_equal(own_section_write(s.dat, OWN_JOURNAL, text, sizeof(text), &why),
				 -ENOSPC);
		assert_data(&s, OWN_JOURNAL, text);
		assert_data(&s, OWN_INDEX, "an index");
		assert_int_equal(own_section_write(s.dat, OWN_CLOCKS, text, 1, &why), -ENOENT);
		assert_non_null(strstr(why.text, "clocks"));
		assert_int_equal(own_section_write(s.dat, OWN_JOURNAL, "", 0, &why), 0);
		assert_data(&s, OWN_JOURNAL, NULL);
	}
}

/* Each byte of what is checked: it is told, and nothing else is lost over an entry's data */
static void test_damaged_bytes(void **state)
{
	FOR_EACH_FILE(c, version)
	{
		_cleanup_sample_ struct sample s;
		size_t index = OWN_SECTION_HEAD;

		make(&c, version, &s);
		for (size_t i = 14; i < 24; i++) { /* size, checksum */
			if (i < 16)
				continue;
			flip(&s, i);
			assert_damaged(&s, OWN_INDEX, "flyrec's own section");
			flip(&s, i);
		}
		for (size_t i = index; i < index + 8; i++) { /* kind, room */
			flip(&s, i);
			assert_damaged(&s, OWN_INDEX, "flyrec's own section");
			flip(&s, i);
		}
		for (size_t i = index + 8; i < index + 24; i++) { /* size, checksum, data */
			flip(&s, i);
			assert_damaged(&s, OWN_INDEX, "flyrec's own section");
			flip(&s, i);
		}
		flip(&s, index + 16);
		assert_damaged(&s, OWN_INDEX, "the checksum of its index does not match");
		assert_int_equal(own_section_write(s.dat, OWN_JOURNAL, "x", 1, NULL), 0);
		assert_data(&s, OWN_JOURNAL, "x");
		/* and it can be written anew */
		assert_int_equal(own_section_write(s.dat, OWN_INDEX, "again", 5, NULL), 0);
		assert_data(&s, OWN_INDEX, "again");
	}
}

/* Sizes that are too large, or none */
static void test_sizes(void **state)
{
	static const uint32_t sizes[] = {0,	  16,	    32,		49,
					 1 << 20, 1U << 31, UINT32_MAX, UINT32_MAX - 15};

	FOR_EACH_FILE(c, version)
	{
		_cleanup_sample_ struct sample s;
		uint8_t bytes[4];

		make(&c, version, &s);
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			own_put_u32(c.big_endian, bytes, sizes[i]);
			set(&s, 16, bytes, 4);
			assert_damaged(&s, OWN_INDEX, "flyrec's own section");
			own_put_u32(c.big_endian, bytes, (uint32_t)s.size);
			set(&s, 16, bytes, 4);
			assert_data(&s, OWN_INDEX, "an index");
			own_put_u32(c.big_endian, bytes, sizes[i]);
			set(&s, OWN_SECTION_HEAD + 4, bytes, 4); /* room */
			assert_damaged(&s, OWN_INDEX, "flyrec's own section");
			own_put_u32(c.big_endian, bytes, 48);
			set(&s, OWN_SECTION_HEAD + 4, bytes, 4);
			own_put_u32(c.big_endian, bytes, MAX(sizes[i], 49U));
			set(&s, OWN_SECTION_HEAD + 8, bytes, 4); /* size */
			assert_damaged(&s, OWN_INDEX, "makes no sense");
			own_put_u32(c.big_endian, bytes, 8);
			set(&s, OWN_SECTION_HEAD + 8, bytes, 4);
			assert_data(&s, OWN_INDEX, "an index");
		}
	}
}

static void test_cut(void **state)
{
	FOR_EACH_FILE(c, version)
	{
		_cleanup_sample_ struct sample s;

		make(&c, version, &s);
		assert_int_equal(ftruncate(s.fd, (off_t)(s.at + 40)), 0);
		assert_damaged(&s, OWN_INDEX, "cannot be read");
		assert_int_equal(ftruncate(s.fd, (off_t)(s.at + 100)), 0);
		assert_damaged(&s, OWN_INDEX, "cannot be read");
		assert_int_equal(ftruncate(s.fd, (off_t)s.at), 0);
		if (version == 6)
			assert_data(&s, OWN_INDEX, NULL);
	}
}

/* --- clocks */

static struct own_clock reading(unsigned i)
{
	return (struct own_clock){
		.realtime = 1700000000000000000 + i,
		.trace = i,
		.mono_raw = 2UL * i,
		.boot = 3UL * i,
		.width = 50 + i,
		.maxerror = 500000,
		.status = 0x2001,
		.tai = i % 2 ? 37 : -1,
		.at = OWN_CLOCK_STEP,
		.flags = OWN_CLOCK_NO_STATUS,
	};
}

static const uint8_t boot_id[16] = "0123456789abcdef";

static void fill_clocks(struct own_clocks *clocks, unsigned n)
{
	own_clocks_init(clocks, "mono", boot_id);
	for (unsigned i = 1; i <= n; i++) {
		const struct own_clock one = reading(i);

		(void)own_clocks_add(clocks, &one);
	}
}

static void test_clocks(void **state)
{
	for (unsigned n = 0; n < 200; n++)
		for (unsigned big = 0; big < 2; big++) {
			const struct own_clock *list[OWN_CLOCKS_MAX];
			uint8_t bytes[OWN_CLOCKS_SIZE];
			struct own_clocks clocks, read;
			size_t count;

			fill_clocks(&clocks, n);
			own_clocks_put(&clocks, big, bytes);
			assert_int_equal(
				own_clocks_take(bytes, sizeof(bytes), big, &read, NULL, NULL), 0);
			assert_memory_equal(&read, &clocks, sizeof(clocks));
			assert_int_equal(read.sequence, n);
			assert_string_equal(read.clock, "mono");
			count = own_clocks_list(&read, list);
			assert_int_equal(count, MIN(n, OWN_CLOCKS_MAX));
			/* the first ones and the newest ones */
			for (size_t i = 0; i < count; i++) {
				unsigned want = i < OWN_CLOCKS_MAX / 2
							? (unsigned)i + 1
							: n - (unsigned)(count - 1 - i);

				assert_int_equal(list[i]->sequence, want);
				assert_int_equal(list[i]->trace, want);
				assert_int_equal(list[i]->tai, want % 2 ? 37 : -1);
			}
		}
}

static void count_told(void *userdata, size_t at)
{
	size_t *told = userdata;

	told[0]++;
	told[1] = at;
}

/* A record that was written by halves costs that one alone */
static void test_torn_record(void **state)
{
	for (size_t at = OWN_CLOCKS_HEAD; at < OWN_CLOCKS_HEAD + 3 * OWN_CLOCKS_RECORD; at++) {
		const struct own_clock *list[OWN_CLOCKS_MAX];
		uint8_t bytes[OWN_CLOCKS_SIZE];
		struct own_clocks clocks;
		size_t told[2] = {};

		fill_clocks(&clocks, 3);
		own_clocks_put(&clocks, false, bytes);
		bytes[at] ^= 1;
		assert_int_equal(
			own_clocks_take(bytes, sizeof(bytes), false, &clocks, count_told, told), 0);
		assert_int_equal(told[0], 1);
		assert_int_equal(told[1], at - at % OWN_CLOCKS_RECORD);
		assert_int_equal(own_clocks_list(&clocks, list), 2);
	}
}

static void test_no_clocks(void **state)
{
	uint8_t bytes[OWN_CLOCKS_SIZE + 1] = {};
	struct own_clocks clocks;

	fill_clocks(&clocks, 3);
	own_clocks_put(&clocks, false, bytes);
	for (size_t size = 0; size < OWN_CLOCKS_SIZE; size += 13)
		assert_int_equal(own_clocks_take(bytes, size, false, &clocks, NULL, NULL),
				 -EBADMSG);
	assert_int_equal(own_clocks_take(bytes, sizeof(bytes), false, &clocks, NULL, NULL),
			 -EBADMSG);
	assert_int_equal(own_clocks_take(bytes, OWN_CLOCKS_SIZE, true, &clocks, NULL, NULL),
			 -EBADMSG);
	memset(bytes, 'x', 32); /* a name without an end */
	assert_int_equal(own_clocks_take(bytes, OWN_CLOCKS_SIZE, false, &clocks, NULL, NULL),
			 -EBADMSG);
}

/* A record is written where it belongs, and the entry is still right */
static void test_clocks_in_place(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		uint8_t bytes[OWN_CLOCKS_SIZE], record[OWN_CLOCKS_RECORD];
		_cleanup_free_ uint8_t *own = NULL, *data = NULL;
		struct own_entry entry = {.kind = OWN_CLOCKS, .data = bytes, .size = sizeof(bytes)};
		const struct own_clock one = reading(4);
		_cleanup_sample_ struct sample s;
		struct own_clocks clocks, read;
		struct fault why = {};
		size_t size;
		unsigned slot;

		fill_clocks(&clocks, 3);
		own_clocks_put(&clocks, c.big_endian, bytes);
		assert_int_equal(own_section_build(&entry, 1, c.big_endian, &own, &size), 0);
		assert_true(size <= PAGE);
		make_v6(&c, own, size, 2, &s);
		slot = own_clocks_add(&clocks, &one);
		own_clocks_put_record(&clocks.slots[slot], c.big_endian, record);
		set(&s, entry.place + OWN_ENTRY_HEAD + OWN_CLOCKS_HEAD + slot * OWN_CLOCKS_RECORD,
		    record, sizeof(record));
		if (own_section_read(s.dat, OWN_CLOCKS, &data, &size, &why) < 0)
			fail_msg("%s", why.text);
		assert_int_equal(own_clocks_take(data, size, c.big_endian, &read, NULL, NULL), 0);
		assert_memory_equal(&read, &clocks, sizeof(clocks));
		flip(&s, entry.place + OWN_ENTRY_HEAD + 3);
		assert_damaged(&s, OWN_CLOCKS, "the checksum of its clocks does not match");
	}
}

/* --- causes */

static void test_causes(void **state)
{
	static const struct own_cause first = {1700000000000001, "event", "for: x\n"},
				      second = {1700000000000002, "pressure", ""};

	FOR_EACH_FILE(c, version)
	{
		_cleanup_free_ uint8_t *record = NULL, *own = NULL, *data = NULL;
		struct own_entry entry = {.kind = OWN_CAUSE, .room = 100};
		_cleanup_sample_ struct sample s;
		struct own_cause cause;
		struct fault why = {};
		size_t size, at = 0;

		assert_int_equal(own_cause_put(&first, c.big_endian, &record, &size), 0);
		entry.data = record;
		entry.size = (uint32_t)size;
		assert_int_equal(own_section_build(&entry, 1, c.big_endian, &own, &size), 0);
		if (version == 6)
			make_v6(&c, own, size, 0, &s);
		else
			make_v7(&c, own, size, &s);
		assert_int_equal(own_cause_add(s.dat, &second, &why), 0);
		assert_int_equal(own_section_read(s.dat, OWN_CAUSE, &data, &size, &why), 0);
		assert_int_equal(own_cause_take(data, size, c.big_endian, &at, &cause), 1);
		assert_int_equal(cause.usec, first.usec);
		assert_string_equal(cause.reason, "event");
		assert_string_equal(cause.text, "for: x\n");
		assert_int_equal(own_cause_take(data, size, c.big_endian, &at, &cause), 1);
		assert_int_equal(cause.usec, second.usec);
		assert_string_equal(cause.reason, "pressure");
		assert_string_equal(cause.text, "");
		assert_int_equal(own_cause_take(data, size, c.big_endian, &at, &cause), 0);
		assert_int_equal(own_cause_add(s.dat, &first, &why), 0);
		assert_int_equal(own_cause_add(s.dat, &first, &why), -ENOSPC);
	}
}

/* Each byte of the first one: it is lost, and never the file's end */
static void test_damaged_causes(void **state)
{
	static const struct own_cause one = {5, "event", "a"}, other = {6, "unit", "b"};
	_cleanup_free_ uint8_t *a = NULL, *b = NULL, *both = NULL;
	size_t size_a, size_b;

	assert_int_equal(own_cause_put(&one, false, &a, &size_a), 0);
	assert_int_equal(own_cause_put(&other, false, &b, &size_b), 0);
	both = malloc(size_a + size_b);
	assert_non_null(both);
	for (size_t i = 0; i < size_a; i++) {
		struct own_cause cause;
		size_t at = 0;

		memcpy(both, a, size_a);
		memcpy(both + size_a, b, size_b);
		both[i] ^= 0x10;
		assert_int_equal(own_cause_take(both, size_a + size_b, false, &at, &cause),
				 -EBADMSG);
		if (i < 4) /* where it ends is not known */
			continue;
		assert_int_equal(own_cause_take(both, size_a + size_b, false, &at, &cause), 1);
		assert_string_equal(cause.reason, "unit");
	}
	for (size_t size = 1; size < size_a; size++) {
		_cleanup_free_ uint8_t *cut = malloc(size);
		struct own_cause cause;
		size_t at = 0;

		assert_non_null(cut);
		memcpy(cut, a, size);
		assert_int_equal(own_cause_take(cut, size, false, &at, &cause), -EBADMSG);
		assert_int_equal(at, size);
	}
}

static void test_ids(void **state)
{
	static const char *const valid[] = {"a", "0", "Z.9_:-", "h1-20261124T062400.882495Z"};
	static const char *const invalid[] = {"",    "-a",  ".a",   "_a",  ":a",    " a",
					      "a b", "a/b", "a\nb", "a;b", "a\xff", "\xc3\xa4"};
	static const struct {
		const char *host, *id;
	} made[] = {
		{"h1", "h1-20231114T221320.000001Z"},
		{"--h 1\n.example", "h_1_.example-20231114T221320.000001Z"},
		{"", "host-20231114T221320.000001Z"},
		{"(none)", "none_-20231114T221320.000001Z"},
	};
	char id[OWN_ID_MAX + 1], host[300];

	for (size_t i = 0; i < ARRAY_SIZE(valid); i++)
		assert_true(own_id_valid(valid[i]));
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
		assert_false(own_id_valid(invalid[i]));
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		own_id_make(made[i].host, UINT64_C(1700000000000001), id);
		assert_string_equal(id, made[i].id);
		assert_true(own_id_valid(id));
	}
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	own_id_make(host, UINT64_MAX, id);
	assert_true(own_id_valid(id));
	memset(host + OWN_ID_MAX, '\0', 1);
	assert_true(own_id_valid(host));
	memset(host + OWN_ID_MAX, 'h', 1);
	assert_false(own_id_valid(host));
}

/* In lines of their own, of all causes, each once; a damaged cause hides no other */
static void test_cause_ids(void **state)
{
	static const struct own_cause causes[] = {
		{1, "event", "id: h1-1\nfor: id: h9-9\n also id: h8-8\n"},
		{2, "unit", "unit: id.service\n"},
		{3, "peer", "id: lost\n"},
		{4, "peer", "id: h2-1\nid: h1-1\nid: -bad\nid: \nid: h3-1"},
	};
	static const char *const expected[] = {"h1-1", "h2-1", "h3-1"};
	_cleanup_(strv_freep) char **ids = NULL;
	uint8_t all[1024] = {};
	size_t n = 0;

	assert_int_equal(own_cause_ids(all, 0, false, &ids), 0);
	assert_null(ids);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		_cleanup_free_ uint8_t *record = NULL;
		size_t size;

		assert_int_equal(own_cause_put(&causes[i], false, &record, &size), 0);
		assert_true(n + size <= sizeof(all));
		memcpy(all + n, record, size);
		if (i == 2)
			all[n + 17] ^= 1;
		n += size;
	}
	assert_int_equal(own_cause_ids(all, n, false, &ids), 0);
	assert_int_equal(strv_length(ids), ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_string_equal(ids[i], expected[i]);
}

static void test_findings(void **state)
{
	const struct own_finding put = {
		.score = 812,
		.start_usec = 1795953784171760,
		.duration_nsec = 441500000,
		.pid = 7751,
		.rule = "realtime",
		.task = "vic\ttim\n",
		.unit = "",
		.text = "vic\ttim waited \033[31m for CPU 1",
	};
	static const char *const bad[] = {
		"1\t2\t3\trule\t4\ttask\tunit\ttext",	      /* cut */
		"1\t2\t3\trule\t4\ttask\tunit\n",	      /* a column is missing, */
		"1\t2\t3\trule\t4\ttask\tunit\ttext\tmore\n", /* one too many */
		"1\t2\tx\trule\t4\ttask\tunit\ttext\n",	      /* no number */
		"1\t2\t3\trule\t-4\ttask\tunit\ttext\n",
		"1\t2\t3\trule\t4\ttask\tunit\ttext\033\n", /* a control character */
		"\n",
	};
	_cleanup_free_ char *line = own_finding_put(&put), *two = NULL;
	struct own_finding took;
	size_t at = 0;

	assert_non_null(line);
	assert_true(asprintf(&two, "%s%s", line, line) > 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(own_finding_take(two, 2 * strlen(line), &at, &took), 1);
		assert_int_equal(took.score, put.score);
		assert_int_equal(took.start_usec, put.start_usec);
		assert_int_equal(took.duration_nsec, put.duration_nsec);
		assert_int_equal(took.pid, put.pid);
		assert_string_equal(took.rule, "realtime");
		assert_string_equal(took.task, "vic tim\\n");
		assert_string_equal(took.unit, "");
		assert_string_equal(took.text, "vic tim waited \\x1b[31m for CPU 1");
	}
	assert_int_equal(own_finding_take(two, 2 * strlen(line), &at, &took), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_free_ char *copy = strdup(bad[i]);

		at = 0;
		assert_int_equal(own_finding_take(copy, strlen(bad[i]), &at, &took), -EBADMSG);
		assert_int_equal(at, strlen(bad[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_crc32),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_damaged_bytes),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_torn_record),
		cmocka_unit_test(test_no_clocks),
		cmocka_unit_test(test_clocks_in_place),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_cause_ids),
		cmocka_unit_test(test_damaged_causes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
