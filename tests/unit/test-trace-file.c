/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What readers find in a live trace.dat, as it is made and as it grows: sections, symbols, data,
 * names, statistics; and what is safe on the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "formats/trace-dat-read.h"
#include "formats/trace-dat.h"
#include "tests/unit/fake-file.h"

/* The next sync fails, once, as the kernel tells of a failed write */
static int sync_error;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	if (sync_error == 0)
		return __real_fdatasync(fd);
	errno = sync_error;
	sync_error = 0;
	return -1;
}

static struct trace_dat *open_dat(struct fake *f, const char *name)
{
	struct trace_dat *dat = NULL;
	struct fault why = {};
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/dir/%s", f->tmp.path, name);
	if (trace_dat_open(path, &dat, &why) < 0)
		fail_msg("%s", why.text);
	return dat;
}

static char *load(const struct trace_dat *dat, const struct trace_dat_extent *extent)
{
	char *text = NULL;

	assert_int_equal(trace_dat_load(dat, extent, MIB, &text, NULL), 0);
	return text;
}

static void assert_text(const struct trace_dat *dat, const struct trace_dat_extent *extent,
			const char *want)
{
	_cleanup_free_ char *text = load(dat, extent);

	assert_string_equal(text, want);
	assert_true(extent->size - strlen(want) <= 1); /* options have their NUL */
}

static const struct trace_dat_extent *option(const struct trace_dat *dat, unsigned id, unsigned nth)
{
	for (size_t i = 0; i < dat->n_options; i++)
		if (dat->options[i].id == id && nth-- == 0)
			return &dat->options[i].data;
	fail_msg("no option %u", id);
	return NULL;
}

static void test_sections(void **state)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_file_ struct trace_file *file = NULL;
	_cleanup_free_ char *text = NULL, *page = NULL;
	struct stat st;
	struct fake f;

	fake_init(&f, 3);
	file = fake_create(&f, "current.dat");
	fake_verify(&f, "current.dat", 0);
	dat = open_dat(&f, "current.dat");
	assert_int_equal(dat->version, 6);
	assert_int_equal(dat->page_size, FAKE_SUBBUF);
	assert_int_equal(dat->long_size, sizeof(long));
	assert_int_equal(dat->n_cpus, 3);
	page = load(dat, &dat->header_page); /* the instance's, not the one of the top level */
	assert_non_null(strstr(page, "field: local_t commit"));
	assert_text(dat, &dat->header_event, "# compressed entry header\n");
	assert_int_equal(dat->n_systems,
			 2); /* the one that is gone is not there, nor the empty one */
	assert_string_equal(dat->systems[1], "demo");
	assert_int_equal(dat->n_formats, 2);
	text = load(dat, &dat->formats[1].text);
	assert_memory_equal(text, "name: hello\nID: 42\n", 19);
	assert_text(dat, &dat->kallsyms, fake_kallsyms);
	assert_text(dat, &dat->printk_formats, "0xffffffff82000000 : \"hello %d\\n\"\n");
	assert_text(dat, option(dat, TRACE_DAT_OPTION_DATE, 0), "0x60a24181e4000");
	assert_text(dat, option(dat, TRACE_DAT_OPTION_TRACECLOCK, 0), "local [mono]\n");
	assert_text(dat, option(dat, TRACE_DAT_OPTION_VERSION, 0), PACKAGE_STRING);
	assert_int_equal(option(dat, TRACE_DAT_OPTION_CPUSTAT, 2)->size, TRACE_FILE_CPUSTAT_ROOM);
	assert_int_equal(option(dat, TRACE_DAT_OPTION_CPUCOUNT, 0)->size, 4);
	assert_text(dat, &dat->clock, "local [mono]\n");
	assert_int_equal(dat->buffers[0].regions[0].entry % 16, 0);
	for (unsigned cpu = 0; cpu < 3; cpu++)
		assert_int_equal(dat->buffers[0].regions[cpu].offset % (64 * KIB), 0);
	assert_int_equal(fstatat(f.dir_fd, "current.dat", &st, 0), 0);
	assert_int_equal(st.st_mode & 0137, 0);
	assert_true(st.st_size >= (off_t)(12 * MIB));
	assert_true(st.st_blocks * 512 < (off_t)MIB);
	assert_int_equal(faccessat(f.dir_fd, ".current.dat.new", F_OK, 0), -1);
	fake_done(&f);
}

/* Whatever the lengths of the texts before it */
static void test_table_is_aligned(void **state)
{
	struct fake f;

	fake_init(&f, 2);
	for (unsigned i = 0; i < 33; i++) {
		_cleanup_file_ struct trace_file *file = NULL;
		struct trace_file_region region;
		char clock[64] = "[mono]                                        ";

		clock[6 + i] = '\0';
		f.params.names_room = i * 3;
		f.params.clock = clock;
		file = fake_create(&f, "a.dat");
		trace_file_region(file, 0, &region);
		assert_int_equal(region.size_at % 16, 8);
		assert_true(trace_file_names_room(file) >= i * 3);
		assert_true(trace_file_names_room(file) < i * 3 + 16);
		fake_verify(&f, "a.dat", 0);
		assert_int_equal(unlinkat(f.dir_fd, "a.dat", 0), 0);
	}
	fake_done(&f);
}

static void test_symbols(void **state)
{
	static const char zeros[] = "0000000000000000 A a\n0000000000000000 T _stext\n";
	/* Two names that only look like it, and a line without an end */
	static const char padded[] = "ffffffff81000000 t __pfx_one\nffffffff81000010 T one\n"
				     "ffffffff81000030 T __pfx\nffffffff81000040 T two __pfx_\n"
				     "ffffffffc0000000 t __pfx_three\t[demo]\n"
				     "ffffffffc0000010 t three\t[demo]\nffffffffc0000020 t __pfx_4";
	_cleanup_trace_dat_ struct trace_dat *dat = NULL, *later = NULL, *hidden = NULL,
					     *without = NULL;
	const char *first;
	struct fake f;

	fake_init(&f, 1);
	first = fake_kallsyms;
	trace_file_free(fake_create(&f, "1.dat"));
	fake_kallsyms = "ffffffff81000001 T other\n"; /* not read again: the modules are the same */
	trace_file_free(fake_create(&f, "2.dat"));
	dat = open_dat(&f, "2.dat");
	assert_text(dat, &dat->kallsyms, first);
	fake_modules = "";
	trace_file_free(fake_create(&f, "3.dat"));
	later = open_dat(&f, "3.dat");
	assert_text(later, &later->kallsyms, "ffffffff81000001 T other\n");
	fake_modules = "demo 16384 1 - Live 0x0000000000000000\n";
	fake_kallsyms = padded;
	trace_file_free(fake_create(&f, "padded.dat"));
	without = open_dat(&f, "padded.dat");
	assert_text(without, &without->kallsyms,
		    "ffffffff81000010 T one\nffffffff81000030 T __pfx\n"
		    "ffffffff81000040 T two __pfx_\nffffffffc0000010 t three\t[demo]\n");
	fake_modules = NULL; /* a kernel without modules, that shows nobody its addresses */
	fake_kallsyms = zeros;
	symbols_free(f.symbols);
	f.params.symbols = f.symbols = symbols_new();
	trace_file_free(fake_create(&f, "4.dat"));
	hidden = open_dat(&f, "4.dat");
	assert_int_equal(hidden->kallsyms.size, 0);
	fake_done(&f);
}

static void test_data(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct fake f;
	off_t size;

	fake_init(&f, 2);
	file = fake_create(&f, "current.dat");
	size = fake_length(&f, "current.dat");
	assert_int_equal(trace_file_first_time(file), 0);
	fake_put(file, 0, 0, 5000000);
	fake_put(file, 0, 1, 6000000);
	fake_put(file, 1, 0, 3000000);
	fake_verify(&f, "current.dat", 0); /* nobody has been told */
	fake_set_size(file, 0, 2 * FAKE_SUBBUF);
	fake_verify(&f, "current.dat", 2);
	assert_int_equal(trace_file_first_time(file), FAKE_DATE + 5000);
	fake_set_size(file, 1, FAKE_SUBBUF);
	fake_verify(&f, "current.dat", 3);
	assert_int_equal(trace_file_first_time(file), FAKE_DATE + 3000);
	assert_int_equal(trace_file_set_size(file, 0, FAKE_SUBBUF), 0);
	fake_verify(&f, "current.dat", 2);
	fake_set_size(file, 0, 2 * FAKE_SUBBUF);
	fake_verify(&f, "current.dat", 2); /* what was cut off is gone */
	assert_int_equal(fake_length(&f, "current.dat"), size);
	fake_done(&f);
}

static void test_names(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	_cleanup_free_ char *text = NULL;
	struct fake f;
	size_t room;

	fake_init(&f, 2);
	file = fake_create(&f, "current.dat");
	room = trace_file_names_room(file);
	text = malloc(room + 1);
	assert_non_null(text);
	/* Fuller and emptier, also to the last byte: never a rest of what was there before */
	for (unsigned i = 0; i < 40; i++) {
		size_t used = i % 4 == 0 ? room : i * 37 % room;
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;

		memset(text, '\n', room);
		memset(text, 'a' + (int)i % 26, used);
		text[room] = '\0';
		assert_int_equal(trace_file_write_names(file, text), 0);
		if (i % 10 == 9) {
			trace_file_free(file);
			file = fake_open(&f, "current.dat");
			assert_int_equal(trace_file_names_room(file), room);
		}
		dat = open_dat(&f, "current.dat");
		assert_text(dat, &dat->cmdlines, text);
	}
	fake_verify(&f, "current.dat", 0);
	fake_done(&f);
}

static void test_cpustat(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	char *text = calloc(1, 3000);
	struct fake f;

	fake_init(&f, 2);
	file = fake_create(&f, "current.dat");
	assert_non_null(text);
	for (unsigned i = 0; i<3 * TRACE_FILE_CPUSTAT_ROOM; i += i> 700 && i < 780 ? 1 : 61) {
		_cleanup_trace_dat_ struct trace_dat *dat = NULL;
		_cleanup_free_ char *first = NULL, *second = NULL;
		size_t kept = MIN(i, TRACE_FILE_CPUSTAT_ROOM - 1U);

		memset(text, 'x', i);
		text[i] = '\0';
		assert_int_equal(trace_file_write_cpustat(file, 1, text), 0);
		dat = open_dat(&f, "current.dat");
		first = load(dat, option(dat, TRACE_DAT_OPTION_CPUSTAT, 0));
		second = load(dat, option(dat, TRACE_DAT_OPTION_CPUSTAT, 1));
		assert_memory_equal(first, "CPU: 0", 6);
		assert_memory_equal(second, text, kept);
		assert_int_equal(strlen(second), TRACE_FILE_CPUSTAT_ROOM - 1);
		assert_int_equal(strspn(second + kept, " \n"), TRACE_FILE_CPUSTAT_ROOM - 1 - kept);
	}
	fake_verify(&f, "current.dat", 0);
	free(text);
	fake_done(&f);
}

static void test_sync(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	uint64_t id, other;
	struct fake f;

	fake_init(&f, 2);
	file = fake_create(&f, "other.dat");
	other = trace_file_trace_id(file);
	trace_file_free(file);
	file = fake_create(&f, "current.dat");
	id = trace_file_trace_id(file);
	assert_true(id != other);
	fake_put(file, 1, 0, 7);
	fake_put(file, 1, 1, 8);
	fake_set_size(file, 1, FAKE_SUBBUF);
	assert_int_equal(trace_file_sync(file), 0);
	fake_set_size(file, 1, 2 * FAKE_SUBBUF);
	trace_file_free(file);
	file = fake_open(&f, "current.dat");
	assert_int_equal(trace_file_live_block(file)->synced[0], 0);
	assert_int_equal(trace_file_live_block(file)->synced[1], FAKE_SUBBUF);
	assert_memory_equal(trace_file_live_block(file)->boot_id, "fedcba9876543210", 16);
	assert_int_equal(trace_file_trace_id(file), id);
	assert_int_equal(trace_file_sync(file), 0);
	trace_file_free(file);
	file = fake_open(&f, "current.dat");
	assert_int_equal(trace_file_live_block(file)->synced[1], 2 * FAKE_SUBBUF);
	assert_int_equal(trace_file_n_cpus(file), 2);
	assert_int_equal(trace_file_subbuf_size(file), FAKE_SUBBUF);
	assert_false(trace_file_was_cut(file));
	fake_verify(&f, "current.dat", 2);
	fake_done(&f);
}

static void test_complete(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct trace_file_region region;
	struct fake f;
	struct stat before, after;

	fake_init(&f, 2);
	file = fake_create(&f, "current.dat");
	trace_file_region(file, 0, &region);
	assert_int_equal(region.size, 0);
	assert_int_equal(region.room, 4 * MIB);
	assert_int_equal(
		fallocate(region.buffered_fd, FALLOC_FL_KEEP_SIZE, (off_t)region.offset, MIB), 0);
	fake_put(file, 0, 0, 7);
	fake_set_size(file, 0, FAKE_SUBBUF);
	assert_int_equal(fstat(region.buffered_fd, &before), 0);
	assert_int_equal(trace_file_complete(file), 0);
	assert_int_equal(fstat(region.buffered_fd, &after), 0);
	assert_true(after.st_blocks * 512 <= before.st_blocks * 512 - (off_t)(MIB - 64 * KIB));
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(trace_file_live_block(file)->synced[0], FAKE_SUBBUF);
	fake_verify(&f, "current.dat", 1);
	fake_done(&f);
}

/* What the page cache could not write is not on the disk because a later sync finds nothing to do
 */
static void test_failed_sync(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct fake f;

	fake_init(&f, 1);
	f.params.direct = STORAGE_DIRECT_NO;
	file = fake_create(&f, "current.dat");
	fake_put(file, 0, 0, 7);
	fake_set_size(file, 0, FAKE_SUBBUF);
	assert_int_equal(trace_file_sync(file), 0);
	assert_false(trace_file_take_unsure(file));
	fake_put(file, 0, 1, 8);
	fake_set_size(file, 0, 2 * FAKE_SUBBUF);
	sync_error = EIO;
	assert_int_equal(trace_file_sync(file), -EIO);
	assert_true(trace_file_take_unsure(file));
	assert_int_equal(trace_file_sync(file), 0);
	assert_false(trace_file_take_unsure(file));
	assert_int_equal(trace_file_live_block(file)->synced[0], FAKE_SUBBUF);
	assert_int_equal(trace_file_complete(file), 0);
	fake_verify(&f, "current.dat", 2);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections),    cmocka_unit_test(test_table_is_aligned),
		cmocka_unit_test(test_symbols),	    cmocka_unit_test(test_data),
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_cpustat),
		cmocka_unit_test(test_sync),	    cmocka_unit_test(test_complete),
		cmocka_unit_test(test_failed_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
