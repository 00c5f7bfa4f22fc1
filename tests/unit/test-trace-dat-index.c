/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compressed files with an index: what is opened and searched by it, how little of the file is
 * unpacked for that, and what happens when it is wrong.
 */
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
#include "ctl/verify.h"
#include "formats/trace-dat-data.h"
#include "formats/trace-dat-index.h"
#include "formats/trace-dat-read.h"
#include "tests/unit/craft-v7.h"
#include "tests/unit/tmp.h"
#include "writer/cut.h"
#include "writer/file-info.h"

/* Of one CPU with two chunks: whole it is taken, without its last byte, or with one more, it is not
 */
static void test_sizes(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_(trace_dat_data_freep) struct trace_dat_data *data =
			trace_dat_data_new(-EBADF, "f", c.big_endian);

		for (unsigned i = 0; i < 2; i++) {
			craft_number(&c, 4, 1);
			craft_number(&c, 4, 0);
		}
		craft_number(&c, 4, 7);
		craft_number(&c, 4, 2);
		for (unsigned i = 0; i < 2; i++) {
			craft_number(&c, 8, 1000 + i);
			craft_number(&c, 8, 4096 + 100 * i);
			craft_number(&c, 4, 92);
			craft_number(&c, 4, 8192);
		}
		craft_number(&c, 1, 0);
		for (size_t size = 0; size <= c.size; size++) {
			_cleanup_(trace_dat_index_freep) struct trace_dat_index *index = NULL;
			uint8_t *bytes = malloc(size + 1);
			int r;

			memcpy(bytes, c.bytes, size);
			r = trace_dat_index_new(data, bytes, size, &index);
			if (size != c.size - 1) {
				assert_int_equal(r, -EBADMSG);
				free(bytes);
				continue;
			}
			assert_int_equal(r, 0);
			assert_null(trace_dat_index_find(index, 6, 4096));
			assert_null(trace_dat_index_find(index, 7, 4196));
			const struct index_cpu *cpu = trace_dat_index_find(index, 7, 4096);

			assert_non_null(cpu);
			assert_int_equal(cpu->n, 2);
			assert_int_equal(trace_dat_index_chunk(data, cpu, 1).time, 1001);
			assert_int_equal(trace_dat_index_chunk(data, cpu, 1).place, 4196);
			assert_int_equal(trace_dat_index_chunk(data, cpu, 1).packed, 92);
			assert_int_equal(trace_dat_index_chunk(data, cpu, 1).unpacked, 8192);
		}
	}
}

#if HAVE_ZSTD

#define PAGE	     4096
#define SEGMENT	     "20231114T221320.001000Z.dat" /* CRAFT_DATE_USEC + 1000 */
#define HEAD_LOOK_AT 12 /* bytes that are read of a chunk that is looked for */

static unsigned n_unpacked, n_heads;

size_t __wrap_ZSTD_decompressDCtx(void *context, void *to, size_t room, const void *from, size_t n);
size_t __real_ZSTD_decompressDCtx(void *context, void *to, size_t room, const void *from, size_t n);
int __wrap_io_pread_all(int fd, void *data, size_t size, uint64_t offset);
int __real_io_pread_all(int fd, void *data, size_t size, uint64_t offset);

/* Chunks alone, not sections */
size_t __wrap_ZSTD_decompressDCtx(void *context, void *to, size_t room, const void *from, size_t n)
{
	n_unpacked += room == CRAFT_CHUNK_SIZE;
	return __real_ZSTD_decompressDCtx(context, to, room, from, n);
}

int __wrap_io_pread_all(int fd, void *data, size_t size, uint64_t offset)
{
	n_heads += size == HEAD_LOOK_AT;
	return __real_io_pread_all(fd, data, size, offset);
}

static int file_of(const struct craft *c)
{
	int fd = memfd_create("test-trace-dat-index", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite_all(fd, c->bytes, c->size, 0), 0);
	return fd;
}

static struct trace_dat *open_file(int fd)
{
	struct trace_dat *dat = NULL;
	struct fault why = {};

	n_unpacked = n_heads = 0;
	if (trace_dat_open_fd(fd, "f", &dat, &why) < 0)
		fail_msg("%s", why.text);
	return dat;
}

static bool is_before(const void *userdata, uint64_t timestamp)
{
	return timestamp < *(const uint64_t *)userdata;
}

static uint64_t search(const struct trace_dat *dat, unsigned cpu, uint64_t nsec)
{
	const struct trace_dat_region *r = &dat->buffers[0].regions[cpu];
	const struct trace_dat_extent region = {r->offset, r->size};
	uint64_t n = 0;

	assert_int_equal(region.size, (uint64_t)CRAFT_PAGES * PAGE);
	assert_int_equal(trace_dat_search(dat, &region, is_before, &nsec, &n, NULL), 0);
	return n;
}

/* All sub-buffers are found by their times, and in a new object each with @most chunks unpacked */
static void search_all(int fd, unsigned most)
{
	for (unsigned page = 0; page < CRAFT_PAGES; page++) {
		_cleanup_trace_dat_ struct trace_dat *dat = open_file(fd);
		unsigned cpu = page % 2;
		uint64_t nsec = craft_page_nsec(cpu, page);

		assert_int_equal(n_unpacked, 0);
		assert_int_equal(search(dat, cpu, nsec), page);
		assert_in_range(n_unpacked, 0, most);
		assert_int_equal(search(dat, cpu, nsec + 1), page + 1);
		assert_int_equal(search(dat, cpu, 0), 0);
		assert_int_equal(search(dat, cpu, UINT64_MAX), CRAFT_PAGES);
	}
}

/* Errors that verify has; the first of them must have @text, if there is one */
static unsigned verify(int fd, const char *text)
{
	_cleanup_trace_dat_ struct trace_dat *dat = open_file(fd);
	struct verify_report report;
	unsigned n;

	assert_int_equal(verify_report_init(&report, "f"), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	n = (unsigned)report.n_errors;
	if (n > 0 && !strstr(report.errors[0], text))
		fail_msg("%s", report.errors[0]);
	verify_report_done(&report);
	return n;
}

static void test_opened_by_index(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *with = NULL, *without = NULL;
		_cleanup_close_ int fd = -EBADF, fd_without = -EBADF;
		_cleanup_free_ char *x = NULL, *y = NULL;
		struct craft_long at;

		craft_v7_long(&c, &at);
		fd = file_of(&c);
		with = open_file(fd);
		assert_int_equal(n_heads, 2 * 2);
		assert_int_equal(n_unpacked, 0);
		assert_null(with->damages.lines);
		craft_set(&c, at.own, 2, 0x4653);
		fd_without = file_of(&c);
		without = open_file(fd_without);
		assert_true(n_heads >= 2 * CRAFT_CHUNKS);
		assert_null(without->damages.lines);
		for (unsigned cpu = 0; cpu < 2; cpu++) {
			const struct trace_dat_region *r = &with->buffers[0].regions[cpu];
			const struct trace_dat_extent region = {r->offset, r->size};

			assert_int_equal(r->offset, without->buffers[0].regions[cpu].offset);
			assert_int_equal(r->size, without->buffers[0].regions[cpu].size);
			free(x);
			free(y);
			assert_int_equal(trace_dat_load(with, &region, MIB, &x, NULL), 0);
			assert_int_equal(trace_dat_load(without, &region, MIB, &y, NULL), 0);
			assert_memory_equal(x, y, region.size);
		}
		assert_int_equal(verify(fd, ""), 0);
	}
}

static void test_search(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_close_ int fd = -EBADF, fd_without = -EBADF;
		struct craft_long at;

		craft_v7_long(&c, &at);
		fd = file_of(&c);
		search_all(fd, 1);
		craft_set(&c, at.own, 2, 0x4653);
		fd_without = file_of(&c);
		search_all(fd_without, 8);
	}
}

/* What is read in one go is unpacked once, and not kept */
static void test_unpacked_once(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct craft_long at;
	uint8_t page[PAGE];

	craft_v7_long(&c, &at);
	fd = file_of(&c);
	dat = open_file(fd);
	for (unsigned i = 0; i < CRAFT_PAGES; i++)
		for (unsigned cpu = 0; cpu < 2; cpu++)
			assert_int_equal(
				trace_dat_read(dat, page, PAGE,
					       dat->buffers[0].regions[cpu].offset + i * PAGE,
					       NULL),
				0);
	assert_int_equal(n_unpacked, 2 * CRAFT_CHUNKS);
	assert_int_equal(trace_dat_read(dat, page, PAGE, dat->buffers[0].regions[0].offset, NULL),
			 0);
	assert_int_equal(n_unpacked, 2 * CRAFT_CHUNKS + 1);
	craft_done(&c);
}

static void test_list(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_close_ int fd = -EBADF;
	struct craft_long at;
	struct file_info info;

	craft_v7_long(&c, &at);
	fd = file_of(&c);
	n_unpacked = 0;
	assert_int_equal(file_info_read(fd, SEGMENT, &info), 0);
	assert_int_equal(n_unpacked, 2 * 2);
	assert_int_equal(info.n_cpus, 2);
	assert_int_equal(info.start_usec, CRAFT_DATE_USEC + craft_page_nsec(0, 0) / 1000);
	assert_int_equal(info.end_usec,
			 CRAFT_DATE_USEC + craft_page_nsec(1, CRAFT_PAGES - 1) / 1000);
	craft_done(&c);
}

/* Two chunks of each CPU are of that time: others are not unpacked, but for one at each end */
static void test_cut(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_(cut_freep) struct cut *cut = NULL;
	struct fault why = {};
	struct craft_long at;
	struct cut_report report = {};
	struct tmp tmp;

	craft_v7_long(&c, &at);
	tmp_init(&tmp);
	tmp_write_bytes(&tmp, SEGMENT, c.bytes, c.size);
	n_unpacked = 0;
	if (cut_open(tmp.fd, CRAFT_DATE_USEC + craft_page_nsec(0, 42) / 1000,
		     CRAFT_DATE_USEC + craft_page_nsec(0, 47) / 1000, &cut, &why) < 0)
		fail_msg("%s", why.text);
	assert_in_range(n_unpacked, 2, 2 * 2);
	if (cut_write(cut, tmp.fd, "result", &(struct cut_note){}, &report, &why) < 0)
		fail_msg("%s", why.text);
	assert_in_range(n_unpacked, 2 * 2, 2 * 3);
	/* one that begins at the time, or before it, comes along */
	assert_in_range(report.events, 2 * 6, 2 * 7);
	tmp_done(&tmp);
	craft_done(&c);
}

/* A wrong index is told, and the file is read without */
static void test_wrong_index(void **state)
{
	struct craft c = craft_kinds[0];
	struct craft_long at;

	craft_v7_long(&c, &at);
	const struct {
		size_t at;
		unsigned size;
		uint64_t value;
		bool seal;
		const char *text;
	} changes[] = {
		{at.own + 16, 1, 'g', false, "begins with something else"},
		{at.own + 16 + 16, 4, UINT32_MAX, false, "bytes, where there are"},
		{at.entry + 4, 4, 16, false, "makes no sense"},
		{at.entry + 8, 4, UINT32_MAX, false, "makes no sense"},
		{at.chunks, 8, 5, false, "the checksum of its index does not match"},
		{at.index, 4, 2, true, "makes no sense"},
		{at.index + 8, 4, 3, true, "makes no sense"},
		{at.index + 20, 4, CRAFT_CHUNKS - 1, true, "makes no sense"},
		{at.index + 16, 4, 7, true, "cpu 0: the index does not agree"},
		{at.chunks + 8, 8, at.heads[0][1], true, "cpu 0: the index does not agree"},
		{at.chunks + 24 * 7 + 8, 8, 1, true, "cpu 0: the index does not agree"},
		{at.chunks + 24 * 7 + 16, 4, 100, true, "cpu 0: the index does not agree"},
		{at.chunks + 24 * 7 + 20, 4, PAGE + 1, true, "cpu 0: the index does not agree"},
		{at.area[0], 4, CRAFT_CHUNKS - 1, true, "cpu 0: the index does not agree"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		_cleanup_close_ int fd = -EBADF;
		struct craft bad = {.big_endian = c.big_endian, .commit_size = c.commit_size};

		craft_bytes(&bad, c.bytes, c.size);
		craft_set(&bad, changes[i].at, changes[i].size, changes[i].value);
		if (changes[i].seal)
			craft_long_seal(&bad, &at);
		fd = file_of(&bad);
		if (verify(fd, changes[i].text) == 0)
			fail_msg("nothing is told: %s", changes[i].text);
		if (changes[i].at != at.area[0])
			search_all(fd, 8);
		craft_done(&bad);
	}
	craft_done(&c);
}

/* A time that leads astray is noticed when its chunk is unpacked; from then on none is believed */
static void test_wrong_time(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;
		_cleanup_close_ int fd = -EBADF;
		struct craft_long at;

		craft_v7_long(&c, &at);
		craft_set(&c, at.chunks + (size_t)24 * 8, 8, craft_page_nsec(0, 20));
		craft_long_seal(&c, &at);
		fd = file_of(&c);
		dat = open_file(fd);
		assert_null(dat->damages.lines);
		assert_int_equal(search(dat, 0, craft_page_nsec(0, 30)), 30);
		assert_int_equal(trace_dat_data_times_wrong(dat->data),
				 dat->buffers[0].regions[0].offset +
					 (uint64_t)8 * CRAFT_CHUNK_SIZE);
		assert_int_equal(verify(fd, "begins at another time than the index has"), 1);
	}
}

/* A chunk whose head is not what the index says is left out, the others are read */
static void test_wrong_head(void **state)
{
	struct craft c = craft_kinds[0];
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct fault why = {};
	struct craft_long at;
	uint64_t offset;
	uint8_t page[PAGE];
	size_t n = 0;

	craft_v7_long(&c, &at);
	craft_set(&c, at.heads[1][5], 4, 1 << 30);
	fd = file_of(&c);
	dat = open_file(fd);
	assert_null(dat->damages.lines);
	offset = dat->buffers[0].regions[1].offset + (uint64_t)5 * CRAFT_CHUNK_SIZE;
	assert_int_equal(trace_dat_read_some(dat, page, PAGE, offset, &n, &why), -EBADMSG);
	assert_int_equal(n, CRAFT_CHUNK_SIZE);
	assert_non_null(strstr(why.text, "not the chunk that the index has here"));
	assert_int_equal(trace_dat_read(dat, page, PAGE, offset + n, NULL), 0);
	assert_int_equal(trace_dat_read(dat, page, PAGE, offset - PAGE, NULL), 0);
	assert_int_equal(verify(fd, "not the chunk that the index has here"), 1);
	craft_done(&c);
}

static void same_kept(const struct trace_dat *dat, size_t i, uint16_t id, const char *wanted,
		      size_t size)
{
	_cleanup_free_ char *bytes = NULL;

	assert_int_equal(dat->kept[i].id, id);
	assert_int_equal(dat->kept[i].data.size, size);
	assert_int_equal(trace_dat_load(dat, &dat->kept[i].data, MIB, &bytes, NULL), 0);
	assert_memory_equal(bytes, wanted, size);
}

/* Sections that are not read are there for who writes version 7; a damaged one is left out */
static void test_kept(void **state)
{
	FOR_EACH_CRAFT(c)
	{
		_cleanup_trace_dat_ struct trace_dat *dat = NULL, *damaged = NULL;
		_cleanup_close_ int fd = -EBADF, fd_damaged = -EBADF;
		struct craft_long at;

		craft_v7_long(&c, &at);
		fd = file_of(&c);
		dat = open_file(fd);
		assert_int_equal(dat->n_kept, 2);
		same_kept(dat, 0, 23, CRAFT_BTF, sizeof(CRAFT_BTF));
		same_kept(dat, 1, 25, CRAFT_MODULES, sizeof(CRAFT_MODULES));
		craft_set(&c, at.btf + 16, 4, 4096);
		fd_damaged = file_of(&c);
		damaged = open_file(fd_damaged);
		assert_int_equal(damaged->n_kept, 1);
		same_kept(damaged, 0, 25, CRAFT_MODULES, sizeof(CRAFT_MODULES));
		assert_int_equal(verify(fd_damaged, "do not fit into the section"), 1);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
#if HAVE_ZSTD
		cmocka_unit_test(test_opened_by_index),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_unpacked_once),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_wrong_index),
		cmocka_unit_test(test_wrong_time),
		cmocka_unit_test(test_wrong_head),
		cmocka_unit_test(test_kept),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
