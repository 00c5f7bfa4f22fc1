/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "basic/strv.h"
#include "ctl/verify.h"
#include "formats/trace-dat-data.h"
#include "formats/trace-dat-read.h"
#include "tests/unit/craft-v7.h"

#define PAGE 4096

/* All kinds of files, compressed and not */
#define FOR_EACH_V7(c, zstd)                               \
	for (unsigned zstd = 0; zstd <= HAVE_ZSTD; zstd++) \
	FOR_EACH_CRAFT(c)

static int file_of(const struct craft *c, size_t size)
{
	int fd = memfd_create("test-trace-dat-v7", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite_all(fd, c->bytes, size, 0), 0);
	return fd;
}

static struct trace_dat *open_good(int fd)
{
	struct trace_dat *dat = NULL;
	struct fault why = {};

	if (trace_dat_open_fd(fd, "f", &dat, &why) < 0)
		fail_msg("%s", why.text);
	return dat;
}

static void same_text(const struct trace_dat *a, const struct trace_dat_extent *x,
		      const struct trace_dat *b, const struct trace_dat_extent *y)
{
	_cleanup_free_ char *p = NULL, *q = NULL;

	assert_int_equal(x->size, y->size);
	assert_int_equal(trace_dat_load(a, x, MIB, &p, NULL), 0);
	assert_int_equal(trace_dat_load(b, y, MIB, &q, NULL), 0);
	assert_memory_equal(p, q, x->size);
}

static void same_frame(const struct trace_dat *a, const struct trace_dat *b)
{
	_cleanup_free_ char *x = NULL, *y = NULL;

	assert_int_equal(a->big_endian, b->big_endian);
	assert_int_equal(a->long_size, b->long_size);
	assert_int_equal(a->page_size, b->page_size);
	assert_int_equal(a->n_cpus, b->n_cpus);
	assert_int_equal(a->n_systems, b->n_systems);
	assert_int_equal(a->n_formats, b->n_formats);
	assert_string_equal(a->systems[1], b->systems[1]);
	same_text(a, &a->header_page, b, &b->header_page);
	same_text(a, &a->header_event, b, &b->header_event);
	same_text(a, &a->formats[0].text, b, &b->formats[0].text);
	same_text(a, &a->kallsyms, b, &b->kallsyms);
	same_text(a, &a->printk_formats, b, &b->printk_formats);
	same_text(a, &a->cmdlines, b, &b->cmdlines);
	assert_int_equal(trace_dat_clock(a, &x, NULL), 0);
	assert_int_equal(trace_dat_clock(b, &y, NULL), 0);
	assert_string_equal(x, y);
}

static void test_same_as_version_6(void **state)
{
	FOR_EACH_V7(c, zstd)
	{
		_cleanup_trace_dat_ struct trace_dat *a = NULL, *b = NULL;
		_cleanup_close_ int fd_a = -EBADF, fd_b = -EBADF;
		struct craft old = c;
		struct craft_dat at;
		struct craft_v7 at7;

		craft_dat(&old, "CPU: 0\n", "second", &at);
		craft_v7(&c, zstd, "CPU: 0\n", &at7);
		fd_a = file_of(&old, old.size);
		fd_b = file_of(&c, c.size);
		a = open_good(fd_a);
		b = open_good(fd_b);
		assert_int_equal(b->version, 7);
		assert_null(b->damages.lines);
		same_frame(a, b);
		assert_int_equal(a->n_buffers, 2);
		assert_int_equal(b->n_buffers, 2);
		assert_string_equal(b->buffers[1].name, "second");
		for (size_t i = 0; i < 2; i++)
			for (unsigned cpu = 0; cpu < 2; cpu++) {
				const struct trace_dat_region *x = &a->buffers[i].regions[cpu];
				const struct trace_dat_region *y = &b->buffers[i].regions[cpu];

				assert_int_equal(
					trace_dat_check_region(b, &b->buffers[i], cpu, NULL), 0);
				same_text(a, &(struct trace_dat_extent){x->offset, x->size}, b,
					  &(struct trace_dat_extent){y->offset, y->size});
			}
		craft_done(&old);
	}
}

/*
 * What opening or verifying says of a file; events that can be read. @formats: libtraceevent, which
 * leaks with broken ones, sees them.
 */
static unsigned look_at(int fd, bool formats, char *text, size_t size)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	struct verify_report report;
	struct fault why = {};
	unsigned events = 0;

	text[0] = '\0';
	if (trace_dat_open_fd(fd, "f", &dat, &why) < 0) {
		assert_true(why.text[0] != '\0');
		(void)snprintf(text, size, "%s\n", why.text);
		return 0;
	}
	if (!formats)
		dat->n_formats = 0;
	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	for (size_t i = 0; i < report.n_errors; i++)
		(void)snprintf(text + strlen(text), size - strlen(text), "%s\n", report.errors[i]);
	for (size_t i = 0; i < report.n_cpus; i++)
		events += (unsigned)report.cpus[i].events;
	verify_report_done(&report);
	return events;
}

static unsigned look(int fd, char *text, size_t size)
{
	return look_at(fd, true, text, size);
}

#define ALL_EVENTS 7

static void test_verify(void **state)
{
	FOR_EACH_V7(c, zstd)
	{
		_cleanup_close_ int fd = -EBADF;
		struct craft_v7 at;
		char text[4096];

		craft_v7(&c, zstd, NULL, &at);
		fd = file_of(&c, c.size);
		assert_int_equal(look(fd, text, sizeof(text)), ALL_EVENTS);
		assert_string_equal(text, "");
	}
}

/* Each prefix of a file is refused, or opened with something said of it; the data is read */
static void test_cut_at_every_byte(void **state)
{
	FOR_EACH_V7(c, zstd)
	{
		struct craft_v7 at;
		char text[8192];

		craft_v7(&c, zstd, NULL, &at);
		for (size_t size = 11; size < c.size; size += size < at.sections[3] ? 7
							      : zstd		    ? 1
										    : 61) {
			_cleanup_close_ int fd = file_of(&c, size);
			unsigned events = look(fd, text, sizeof(text));

			assert_true(text[0] != '\0');
			assert_true(events <= ALL_EVENTS);
			/* the option is lost, not the data; uncompressed it is not aligned here */
			if (size > at.last_options && zstd)
				assert_int_equal(events, ALL_EVENTS);
			else if (size > at.area[1] && zstd)
				assert_true(events >= 4);
		}
	}
}

/* No byte that is changed does worse than make a fault or nothing at all */
static void test_every_byte_changed(void **state)
{
	FOR_EACH_V7(c, zstd)
	{
		_cleanup_close_ int fd = -EBADF;
		struct craft_v7 at;
		char text[65536];

		craft_v7(&c, zstd, NULL, &at);
		fd = file_of(&c, c.size);
		for (size_t i = 0; i < c.size; i += zstd || i < at.sections[3] ? 1 : 41) {
			uint8_t byte = (uint8_t)~c.bytes[i];

			assert_int_equal(io_pwrite_all(fd, &byte, 1, i), 0);
			(void)look_at(fd, false, text, sizeof(text));
			assert_int_equal(io_pwrite_all(fd, &c.bytes[i], 1, i), 0);
		}
	}
}

struct change {
	size_t offset, size;
	uint64_t value;
	unsigned events; /* that are still read */
	const char *text;
	size_t place; /* that the text begins with: "offset 0x…: " */
};

static void assert_told(const struct craft *c, const struct change *change)
{
	_cleanup_free_ char *wanted = strf("f: offset 0x%zx: %s", change->place, change->text);
	_cleanup_close_ int fd = -EBADF;
	struct craft copy = *c;
	char text[65536];
	unsigned events;

	copy.bytes = NULL;
	copy.size = copy.room = 0;
	craft_bytes(&copy, c->bytes, c->size);
	craft_set(&copy, change->offset, change->size, change->value);
	fd = file_of(&copy, copy.size);
	events = look(fd, text, sizeof(text));
	if (!strstr(text, wanted))
		fail_msg("\"%s\" is not in \"%s\"", wanted, text);
	if (events != change->events)
		fail_msg("%u events, not %u: %s", events, change->events, text);
	craft_done(&copy);
}

static void test_bad_sections(void **state)
{
	FOR_EACH_V7(c, zstd)
	{
		struct craft_v7 at;

		craft_v7(&c, zstd, NULL, &at);
		const size_t *s = at.sections;
		const struct change changes[] = {
			{at.compression, 1, 'x', 0,
			 zstd ? "compressed with xstd" : "compressed with xone", at.compression},
			{at.options_place, 8, 0, ALL_EVENTS, "the file was not finished",
			 at.options_place},
			{at.options_place, 8, UINT64_C(1) << 40, ALL_EVENTS,
			 "options at 0x10000000000, behind the end of the file", at.options_place},
			{at.options_place, 8, s[16], ALL_EVENTS, "options should be at",
			 at.options_place},
			{at.next, 8, s[0], zstd ? ALL_EVENTS : ALL_EVENTS,
			 "the options have no end: those at", s[0]},
			{at.last_end, 2, 99, ALL_EVENTS, "the options have no end",
			 at.last_options},
			{at.last_end + 2, 4, 9, ALL_EVENTS,
			 "option 0 has 9 bytes, but only 8 follow in its section", at.last_end},
			{at.option_events, 8, s[17], 0, "event formats should be at",
			 at.option_events - 6},
			{s[16] + 8, 8, UINT64_C(1) << 50, zstd ? ALL_EVENTS : 0,
			 "headers: the section runs past the end", s[16]},
			{s[19] + 8, 8, UINT64_C(1) << 50, zstd ? ALL_EVENTS : ALL_EVENTS,
			 "kallsyms: the section runs past the end", s[19]},
			{s[19], 2, 99, ALL_EVENTS, "kallsyms should be at", at.option_kallsyms - 6},
			{s[0] + 2, 2, 1, ALL_EVENTS,
			 c.big_endian ? "1048576 compressed bytes do not fit into the section"
				      : "524304 compressed bytes do not fit into the section",
			 s[0] + 16},
			{at.buffer_option, 8, s[16], ALL_EVENTS,
			 "option BUFFER: no section of a ring buffer is at", at.buffer_option - 6},
			{at.entry[1], 4, 0, 5, "cpu 0 has data already", at.entry[1]},
			{at.entry[1], 4, 1 << 20, 5, "cpu 1048576, which cannot be", at.entry[1]},
			{at.entry[1] + 4, 8, UINT64_C(1) << 40, 5,
			 "cpu 1: the data at 0x10000000000 of", at.entry[1]},
			{at.entry[1] - 24, 4, 99, ALL_EVENTS,
			 "option BUFFER: 99 CPUs do not fit into", at.buffer_option - 6},
			{at.entry[1] - 28, 4, 65536, 1, "buffer \"\": sub-buffers of 65536 bytes",
			 at.buffer_option - 6},
		};

		for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
			assert_told(&c, &changes[i]);
	}
}

static void test_missing_section(void **state)
{
	FOR_EACH_V7(c, zstd)
	{
		struct craft_v7 at;

		craft_v7(&c, zstd, NULL, &at);
		craft_set(&c, at.option_kallsyms - 6, 2, 98);
		assert_told(&c, &(struct change){at.sections[19], 2, 99, ALL_EVENTS,
						 "no section has the kallsyms", at.sections[0]});
	}
}

static void test_overlaps(void **state)
{
	FOR_EACH_V7(c, zstd)
	{
		struct craft_v7 at;

		craft_v7(&c, zstd, NULL, &at);
		const size_t *s = at.sections;

		assert_told(&c, &(struct change){s[19] + 8, 8, s[20] - s[19] - 8, ALL_EVENTS,
						 "printk formats overlaps kallsyms at", s[20]});
		assert_told(&c, &(struct change){at.entry[1] + 4, 8, at.area[0], 8,
						 "the data of a CPU overlaps the data of a CPU at",
						 at.area[0]});
	}
}

#if HAVE_ZSTD
/* Chunks: count, then packed, unpacked, bytes */
static void test_bad_chunks(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct craft_v7 at;

		craft_v7(&c, true, NULL, &at);
		const size_t chunk = at.area[0] + 4;
		const struct change changes[] = {
			{chunk + 4, 4, 2 * PAGE, 4,
			 "4096 bytes are compressed here, not 8192 as it", chunk + 8},
			{chunk + 4, 4, UINT32_C(1) << 31, 4, "cpu 0: a chunk of", chunk},
			{chunk + 4, 4, PAGE + 1, 4, "cpu 0: a chunk of", chunk},
			{chunk + 4, 4, 0, 4, "cpu 0: a chunk of", chunk},
			{chunk, 4, 1 << 30, 4, "cpu 0: a chunk of 1073741824 bytes", chunk},
			{chunk, 4, 80, ALL_EVENTS, "cpu 0: a chunk of 80 bytes, but the next one",
			 chunk},
			{chunk + 8, 1, 0, 4, "wrong magic of zstd: 00 b5 2f fd", chunk + 8},
			{at.area[0], 4, 3, ALL_EVENTS, "cpu 0: 3 chunks, but only 2", at.area[0]},
			{at.area[1] + 4 + 8, 1, 0, 5, "wrong magic of zstd", at.area[1] + 12},
			{at.sections[19] + 24, 1, 0, ALL_EVENTS, "wrong magic of zstd",
			 at.sections[19] + 24},
			{at.sections[18] + 20, 4, UINT32_MAX, 0,
			 "a section of 4294967295 bytes, which cannot be", at.sections[18]},
		};

		for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
			assert_told(&c, &changes[i]);
	}
}

/* What a chunk says of itself is the room that its bytes get */
static void test_chunk_larger_than_it_says(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		struct craft_long at;

		craft_v7_long(&c, &at);
		const size_t chunk = at.heads[0][3];
		const unsigned all = 2 * CRAFT_PAGES;

		craft_set(&c, at.own, 2, 99); /* without the index, which would tell, too */
		assert_told(&c, &(struct change){chunk + 4, 4, PAGE, all - CRAFT_CHUNK_PAGES,
						 "16384 bytes are compressed here, not 4096 as it",
						 chunk + 8});
	}
}

/* Few bytes of options that would become many */
static void test_options_bomb(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_free_ uint8_t *zeros = calloc(1, 32 * MIB);
		struct craft_v7 at;
		size_t place;

		craft_v7(&c, true, NULL, &at);
		place = c.size;
		craft_number(&c, 2, 0);
		craft_number(&c, 2, 1);
		craft_number(&c, 4, 0);
		craft_number(&c, 8, 0);
		craft_v7_packed(&c, zeros, 32 * MIB);
		craft_set(&c, place + 8, 8, c.size - place - 16);
		assert_told(&c, &(struct change){at.next, 8, place, ALL_EVENTS,
						 "a section of 33554432 bytes, which cannot be",
						 place});
	}
}

/* Where a sub-buffer is wrong inside of a chunk */
static void test_place_inside(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *wanted = NULL;
	struct craft_v7 at;

	craft_v7(&c, true, NULL, &at);
	fd = file_of(&c, c.size);
	dat = open_good(fd);
	wanted = strf("0x%zx (unpacked 0x20)", at.area[0] + 4);
	assert_string_equal(trace_dat_at(dat, dat->buffers[0].regions[0].offset + 32).text, wanted);
	assert_string_equal(trace_dat_at(dat, 12).text, "0xc");
	craft_done(&c);
}

/* Two hundred thousand chunks, each with its number in front */
#define MANY 200000U

static uint64_t chunk_number(struct trace_dat_data *data, uint64_t at)
{
	uint64_t number;
	size_t n;

	assert_int_equal(trace_dat_data_read(data, &number, sizeof(number), at, &n, NULL), 0);
	assert_int_equal(n, sizeof(number));
	return number;
}

static void test_many_chunks(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_(trace_dat_data_freep) struct trace_dat_data *data = NULL;
	_cleanup_close_ int fd = -EBADF;
	uint64_t page[PAGE / 8] = {}, at;

	c.big_endian = false;
	fd = file_of(&c, 0);
	data = trace_dat_data_new(fd, "f", false);
	assert_non_null(data);
	for (uint64_t i = 0; i < MANY; i++) {
		struct data_piece piece = {.kind = DATA_CHUNKS, .n_chunks = 1, .size = PAGE};

		page[0] = i;
		piece.place = c.size;
		craft_v7_packed(&c, page, PAGE);
		piece.length = c.size - piece.place;
		assert_int_equal(trace_dat_data_add(data, &piece, NULL), 0);
	}
	assert_int_equal(io_pwrite_all(fd, c.bytes, c.size, 0), 0);
	assert_int_equal(trace_dat_data_end(data), (uint64_t)MANY * PAGE);
	for (uint64_t i = 0; i < MANY; i += 1999)
		assert_int_equal(chunk_number(data, i * PAGE), i);
	for (uint64_t i = MANY; i-- > MANY - 300;)
		assert_int_equal(chunk_number(data, i * PAGE), i);
	at = (uint64_t)(MANY - 1) * PAGE;
	assert_true(trace_dat_data_place(data, at + 5).packed);
	assert_int_equal(trace_dat_data_place(data, at + 5).inside, 5);
	craft_done(&c);
}

/* Of a block whose end is missing comes what is there, and the same each time */
static void test_cut_block(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_(trace_dat_data_freep) struct trace_dat_data *data = NULL;
	_cleanup_free_ uint32_t *numbers = malloc(MIB), *room = calloc(1, MIB);
	struct data_piece piece = {.kind = DATA_CUT, .place = 8};
	_cleanup_close_ int fd = -EBADF;
	uint32_t x = 1;
	size_t n = 0;

	for (size_t i = 0; i < MIB / 4; i++)
		numbers[i] = (x = x * 1103515245 + 12345) >> 20;
	craft_v7_packed(&c, numbers, MIB);
	fd = file_of(&c, c.size / 2);
	data = trace_dat_data_new(fd, "f", false);
	assert_non_null(data);
	piece.length = c.size / 2 - 8;
	assert_int_equal(trace_dat_data_unpack_cut(data, 8, piece.length, room, MIB, &n, NULL), 0);
	assert_true(n >= MIB / 4 && n < MIB);
	assert_memory_equal(room, numbers, n);
	piece.size = n;
	assert_int_equal(trace_dat_data_add(data, &piece, NULL), 0);
	assert_int_equal(trace_dat_data_read(data, room, n, 0, &n, NULL), 0);
	assert_int_equal(n, piece.size);
	assert_memory_equal(room, numbers, n);
	craft_done(&c);
}

/* A chunk of zeros is small in the file: what it says is what is taken, and no more */
static void test_bomb(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_(trace_dat_data_freep) struct trace_dat_data *data = NULL;
	_cleanup_free_ uint8_t *zeros = calloc(1, 8 * MIB), *room = malloc(PAGE);
	_cleanup_close_ int fd = -EBADF;
	struct fault why = {};

	craft_v7_packed(&c, zeros, 8 * MIB);
	fd = file_of(&c, c.size);
	data = trace_dat_data_new(fd, "f", false);
	assert_non_null(data);
	assert_int_equal(trace_dat_data_unpack(data, 8, c.size - 8, room, PAGE, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "f: offset 0x8: 8388608 bytes are compressed here, not "
					 "4096 as it says"));
	craft_done(&c);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_version_6),
		cmocka_unit_test(test_verify),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_every_byte_changed),
		cmocka_unit_test(test_bad_sections),
		cmocka_unit_test(test_missing_section),
		cmocka_unit_test(test_overlaps),
#if HAVE_ZSTD
		cmocka_unit_test(test_bad_chunks),
		cmocka_unit_test(test_chunk_larger_than_it_says),
		cmocka_unit_test(test_options_bomb),
		cmocka_unit_test(test_place_inside),
		cmocka_unit_test(test_many_chunks),
		cmocka_unit_test(test_cut_block),
		cmocka_unit_test(test_bomb),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
