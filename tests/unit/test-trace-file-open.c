/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening what is no live trace.dat of ours, or no longer: foreign files, each byte of the header
 * wrong, cut at each byte. Refused, with the reason and without a change, or good to go on with.
 */
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
#include "tests/unit/craft.h"
#include "tests/unit/fake-file.h"

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
	assert_refused(&f, "empty", -EBADMSG, "empty file");
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
	size = fake_length(&f, "a");
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
				if (fake_length(&f, "a") != size)
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
			if (fake_length(&f, "a") != size)
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
	size = fake_length(&f, "a");
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
			assert_int_equal(fake_length(&f, "a"), size);
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
			assert_int_equal(fake_length(&f, "a"), n);
		}
		trace_file_free(file);
	}
	close(fd);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_foreign),
		cmocka_unit_test(test_open_damaged),
		cmocka_unit_test(test_open_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
