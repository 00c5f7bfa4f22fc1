/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "basic/io.h"
#include "formats/trace-dat-read.h"
#include "formats/trace-dat.h"
#include "tests/unit/craft.h"
#include "tests/unit/fake-file.h"

#define _cleanup_file_ _cleanup_(trace_file_freep)

static bool no_direct;	      /* openat() refuses O_DIRECT */
static uint64_t largest_file; /* ftruncate() takes no more; 0: no limit */
static int truncate_error;    /* errno of ftruncate() */
static int noreplace_error;   /* errno of renameat2(RENAME_NOREPLACE) */

int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

int __wrap_openat(int dir_fd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (no_direct && flags & O_DIRECT) {
		errno = EINVAL;
		return -1;
	}
	return __real_openat(dir_fd, path, flags, mode);
}

int __wrap_ftruncate(int fd, off_t size)
{
	int error = truncate_error;

	if (!error && largest_file && (uint64_t)size > largest_file)
		error = EFBIG;
	if (error) {
		errno = error;
		return -1;
	}
	return __real_ftruncate(fd, size);
}

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	if (noreplace_error) {
		errno = noreplace_error;
		return -1;
	}
	return __real_renameat2(from_fd, from, to_fd, to, flags);
}

static int setup(void **state)
{
	no_direct = false;
	largest_file = 0;
	truncate_error = noreplace_error = 0;
	return 0;
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

static off_t file_size(struct fake *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->dir_fd, name, &st, 0), 0);
	return st.st_size;
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
	_cleanup_trace_dat_ struct trace_dat *dat = NULL, *later = NULL, *hidden = NULL;
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
	size = file_size(&f, "current.dat");
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
	assert_int_equal(file_size(&f, "current.dat"), size);
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
	const uint8_t boot[16] = "another boot id";
	struct fake f;

	fake_init(&f, 2);
	file = fake_create(&f, "current.dat");
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
	assert_int_equal(trace_file_trace_id(file), FAKE_TRACE_ID);
	assert_int_equal(trace_file_sync(file), 0);
	assert_int_equal(trace_file_set_boot(file, boot), 0);
	trace_file_free(file);
	file = fake_open(&f, "current.dat");
	assert_int_equal(trace_file_live_block(file)->synced[1], 2 * FAKE_SUBBUF);
	assert_memory_equal(trace_file_live_block(file)->boot_id, boot, 16);
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

static void test_publish(void **state)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct fault why = {};
	struct fake f;

	fake_init(&f, 1);
	/* left by one that was killed there */
	tmp_write(&f.tmp, "dir/.current.dat.new", "x");
	assert_int_equal(trace_file_create(f.dir_fd, "current.dat", &f.params, &file, &why), 0);
	tmp_write(&f.tmp, "dir/current.dat", "precious");
	assert_int_equal(trace_file_publish(f.dir_fd, "current.dat", false, &why), -EEXIST);
	assert_non_null(strstr(why.text, "current.dat"));
	/* On file systems that do not know RENAME_NOREPLACE as well */
	noreplace_error = EINVAL;
	assert_int_equal(trace_file_publish(f.dir_fd, "current.dat", false, &why), -EEXIST);
	assert_int_equal(file_size(&f, "current.dat"), 8);
	assert_int_equal(unlinkat(f.dir_fd, "current.dat", 0), 0);
	assert_int_equal(trace_file_publish(f.dir_fd, "current.dat", false, &why), 0);
	fake_verify(&f, "current.dat", 0);
	fake_done(&f);
}

static void assert_not_created(struct fake *f, int error, const char *text)
{
	_cleanup_file_ struct trace_file *file = NULL;
	struct fault why = {};
	int r = trace_file_create(f->dir_fd, "current.dat", &f->params, &file, &why);

	if (r != error || !strstr(why.text, text))
		fail_msg("%d, \"%s\", expected \"%s\"", r, why.text, text);
	assert_int_equal(why.error, error);
	assert_int_equal(trace_file_create(f->dir_fd, "current.dat", &f->params, &file, NULL),
			 error);
	assert_null(file);
	assert_int_equal(faccessat(f->dir_fd, ".current.dat.new", F_OK, 0), -1);
}

static void test_create_fails(void **state)
{
	struct fake f;

	fake_init(&f, 2);
	truncate_error = ENOSPC;
	assert_not_created(&f, -ENOSPC, "cannot set the file's size: No space left");
	truncate_error = 0;
	largest_file = 6 * MIB;
	assert_not_created(&f, -EFBIG, "too small for 2 CPUs");
	largest_file = 0;
	no_direct = true;
	f.params.direct = STORAGE_DIRECT_YES;
	assert_not_created(&f, -EOPNOTSUPP, "Direct=yes");
	no_direct = false;
	f.params.direct = STORAGE_DIRECT_AUTO;
	assert_int_equal(unlinkat(f.tracing_fd, "instances/t/events/header_page", 0), 0);
	assert_int_equal(unlinkat(f.tracing_fd, "events/header_page", 0), 0);
	assert_not_created(&f, -ENOENT, "events/header_page");
	fake_done(&f);
}

static void test_small_and_huge_regions(void **state)
{
	const uint64_t sizes[] = {64 * KIB,  10 * MIB,	     TIB,	INT64_MAX / 2,
				  INT64_MAX, UINT64_MAX - 1, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (unsigned n_cpus = 1; n_cpus < 300; n_cpus += 149) {
			_cleanup_file_ struct trace_file *file = NULL;
			struct trace_file_region a, b;
			struct fault why = {};
			struct fake f;

			fake_init(&f, n_cpus);
			f.params.max_file_size = sizes[i];
			f.params.slack = 64 * KIB;
			largest_file = 16 * TIB;
			errno = EIO; /* must not count */
			if (trace_file_create(f.dir_fd, "a", &f.params, &file, &why) < 0)
				fail_msg("%llu: %s", (unsigned long long)sizes[i], why.text);
			trace_file_region(file, 0, &a);
			trace_file_region(file, n_cpus - 1, &b);
			assert_true(a.room >= MIN(sizes[i], 16 * TIB / 512));
			assert_true(b.offset + b.room <= 16 * TIB);
			assert_int_equal(a.room, b.room);
			trace_file_free(TAKE_PTR(file));
			fake_done(&f);
		}
	}
}

static void test_full_disk_is_named(void **state)
{
	_cleanup_fclose_ FILE *out = fopen("/dev/full", "w");
	struct fault why = {};
	struct fake f;

	fake_init(&f, 1);
	assert_non_null(out);
	setbuf(out, NULL);
	assert_int_equal(metadata_write(out, &f.params.source, 4096, f.symbols, &why), -ENOSPC);
	fake_done(&f);
}

static void test_direct(void **state)
{
	struct fake f;
	bool works;
	int fd;

	fake_init(&f, 2);
	trace_file_free(fake_create(&f, "a"));
	fd = openat(f.dir_fd, "a", O_RDWR | O_DIRECT | O_CLOEXEC);
	works = fd >= 0;
	close_p(&fd);
	for (int i = 0; i < 2; i++) { /* made, then opened again */
		const enum storage_direct modes[] = {STORAGE_DIRECT_AUTO, STORAGE_DIRECT_NO};

		for (size_t k = 0; k < ARRAY_SIZE(modes); k++) {
			_cleanup_file_ struct trace_file *file = NULL;
			struct trace_file_region region;

			f.params.direct = modes[k];
			file = i ? fake_open(&f, "a") : fake_create(&f, k ? "b" : "c");
			trace_file_region(file, 1, &region);
			assert_int_equal(trace_file_is_direct(file),
					 works && modes[k] == STORAGE_DIRECT_AUTO);
			assert_int_equal(region.data_fd != region.buffered_fd,
					 trace_file_is_direct(file));
			if (works && modes[k] == STORAGE_DIRECT_AUTO)
				assert_true(fcntl(region.data_fd, F_GETFL) & O_DIRECT);
			assert_false(fcntl(region.buffered_fd, F_GETFL) & O_DIRECT);
		}
	}
	no_direct = true;
	f.params.direct = STORAGE_DIRECT_AUTO;
	for (int i = 0; i < 2; i++) {
		_cleanup_file_ struct trace_file *file =
			i ? fake_open(&f, "a") : fake_create(&f, "d");

		assert_false(trace_file_is_direct(file));
	}
	fake_done(&f);
}

static void assert_refused(struct fake *f, const char *name, int error, const char *text)
{
	struct trace_file *file = NULL;
	struct fault why = {.text = "stale"};
	int r = trace_file_open(f->dir_fd, name, STORAGE_DIRECT_AUTO, &file, &why);

	if (r != error || !strstr(why.text, text) || !strstr(why.text, name))
		fail_msg("%s: %d, \"%s\", expected %d, \"%s\"", name, r, why.text, error, text);
	assert_int_equal(why.error, error);
	assert_null(file);
	assert_int_equal(trace_file_open(f->dir_fd, name, STORAGE_DIRECT_AUTO, &file, NULL), error);
}

static void test_open_foreign(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct craft c = {.commit_size = 8};
	struct craft_dat at;
	struct fake f;
	int fd;

	fake_init(&f, 2);
	assert_refused(&f, "missing", -ENOENT, "No such file");
	assert_int_equal(symlinkat("missing", f.dir_fd, "link"), 0);
	assert_refused(&f, "link", -ELOOP, "symbolic link");
	assert_int_equal(mkdirat(f.dir_fd, "directory", 0755), 0);
	assert_refused(&f, "directory", -EISDIR, "directory");
	assert_int_equal(mkfifoat(f.dir_fd, "fifo", 0600), 0);
	assert_refused(&f, "fifo", -EBADMSG, "not a regular file");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/dir/socket", f.tmp.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_refused(&f, "socket", -ENXIO, "cannot open");
	tmp_write(&f.tmp, "dir/empty", "");
	assert_refused(&f, "empty", -EBADMSG, "too short");
	tmp_write(&f.tmp, "dir/text", "#!/bin/sh\necho precious\n");
	assert_refused(&f, "text", -EBADMSG, "magic");
	craft_dat(&c, NULL, NULL, &at); /* trace-cmd's */
	tmp_write_bytes(&f.tmp, "dir/other.dat", c.bytes, c.size);
	assert_refused(&f, "other.dat", -EBADMSG, "flyrec");
	craft_set(&c, at.n_cpus, 4, 0);
	tmp_write_bytes(&f.tmp, "dir/other.dat", c.bytes, c.size);
	assert_refused(&f, "other.dat", -EBADMSG, "flyrec");
	craft_done(&c);
	fake_done(&f);
}

/* Each byte of the header that is wrong: opened or refused, and neither the file's size nor its
 * other bytes change when it is refused */
static void test_open_damaged(void **state)
{
	_cleanup_free_ uint8_t *head = NULL;
	struct trace_file_region region;
	struct trace_file *file;
	unsigned refused = 0;
	struct fake f;
	size_t used;
	off_t size;
	int fd;

	fake_init(&f, 2);
	file = fake_create(&f, "a");
	trace_file_region(file, 0, &region);
	used = region.offset - 48 * KIB;
	trace_file_free(file);
	size = file_size(&f, "a");
	fd = openat(f.dir_fd, "a", O_RDWR | O_CLOEXEC);
	head = malloc(region.offset);
	assert_true(fd >= 0);
	assert_non_null(head);
	assert_int_equal(io_pread_all(fd, head, region.offset, 0), 0);
	for (size_t i = 0; i < used; i++) {
		uint8_t wrong[] = {(uint8_t)(head[i] ^ 0x40), (uint8_t)(head[i] ^ 0x01)};

		for (size_t k = 0; k < sizeof(wrong); k++) {
			struct fault why = {};
			int r;

			file = NULL;
			assert_int_equal(io_pwrite_all(fd, &wrong[k], 1, i), 0);
			r = trace_file_open(f.dir_fd, "a", STORAGE_DIRECT_NO, &file, &why);
			if (r < 0) {
				refused++;
				assert_true(why.text[0]);
				if (r != -EBADMSG && r != -ENODATA && r != -EOPNOTSUPP)
					fail_msg("byte %zu: %d, \"%s\"", i, r, why.text);
				if (file_size(&f, "a") != size)
					fail_msg("byte %zu changed the file's size", i);
			} else {
				char text[FAKE_SUBBUF] = "";

				memset(text, '\n', sizeof(text));
				assert_true(trace_file_n_cpus(file) >= 1);
				if (trace_file_names_room(file) <= sizeof(text))
					assert_true(trace_file_write_names(file, text) <= 0);
				for (unsigned cpu = 0; cpu < trace_file_n_cpus(file); cpu++)
					(void)trace_file_write_cpustat(file, cpu, "x");
			}
			trace_file_free(file);
			assert_int_equal(io_pwrite_all(fd, head, region.offset, 0), 0);
			if (file_size(&f, "a") != size)
				assert_int_equal(ftruncate(fd, size), 0);
		}
	}
	assert_true(refused > 100);
	fake_verify(&f, "a", 0);
	close(fd);
	fake_done(&f);
}

/* Cut at every byte from outside, down to nothing */
static void test_open_cut(void **state)
{
	struct trace_file_region region;
	struct trace_file *file;
	struct fake f;
	uint64_t n;
	off_t size;
	int fd;

	fake_init(&f, 2);
	file = fake_create(&f, "a");
	for (unsigned i = 0; i < 3; i++)
		fake_put(file, 0, i, 1 + i);
	fake_set_size(file, 0, 3 * FAKE_SUBBUF);
	fake_set_size(file, 1, FAKE_SUBBUF);
	assert_int_equal(trace_file_sync(file), 0);
	trace_file_region(file, 0, &region);
	trace_file_free(file);
	size = file_size(&f, "a");
	fd = openat(f.dir_fd, "a", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (n = region.offset + 3 * FAKE_SUBBUF; n-- > 0;) {
		struct fault why = {};
		int r;

		assert_int_equal(ftruncate(fd, (off_t)n), 0);
		file = NULL;
		r = trace_file_open(f.dir_fd, "a", STORAGE_DIRECT_NO, &file, &why);
		if (n > region.offset) {
			assert_int_equal(r, 0);
			assert_true(trace_file_was_cut(file));
			assert_int_equal(file_size(&f, "a"), size);
			/* Opened a second time, it must not be trusted more than the first time */
			trace_file_free(file);
			file = fake_open(&f, "a");
			assert_int_equal(trace_file_live_block(file)->synced[0], 0);
			assert_int_equal(trace_file_live_block(file)->synced[1], 0);
		} else {
			if (r != -EBADMSG && r != -ENODATA)
				fail_msg("%llu bytes: %d, \"%s\"", (unsigned long long)n, r,
					 why.text);
			assert_true(why.text[0]);
			assert_int_equal(file_size(&f, "a"), n);
		}
		trace_file_free(file);
	}
	close(fd);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sections, setup),
		cmocka_unit_test_setup(test_table_is_aligned, setup),
		cmocka_unit_test_setup(test_symbols, setup),
		cmocka_unit_test_setup(test_data, setup),
		cmocka_unit_test_setup(test_names, setup),
		cmocka_unit_test_setup(test_cpustat, setup),
		cmocka_unit_test_setup(test_sync, setup),
		cmocka_unit_test_setup(test_complete, setup),
		cmocka_unit_test_setup(test_publish, setup),
		cmocka_unit_test_setup(test_create_fails, setup),
		cmocka_unit_test_setup(test_small_and_huge_regions, setup),
		cmocka_unit_test_setup(test_full_disk_is_named, setup),
		cmocka_unit_test_setup(test_direct, setup),
		cmocka_unit_test_setup(test_open_foreign, setup),
		cmocka_unit_test_setup(test_open_damaged, setup),
		cmocka_unit_test_setup(test_open_cut, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
