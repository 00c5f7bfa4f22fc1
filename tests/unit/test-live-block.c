/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "formats/live-block.h"

#define AT     8192
#define N_CPUS 5

static const uint8_t boot_id[16] = "0123456789abcdef";

static int new_file(void)
{
	int fd = memfd_create("test-live-block", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The block that counts has this sequence number and cpu @N_CPUS - 1 synced to the same number */
static void assert_read(int fd, uint64_t sequence)
{
	_cleanup_free_ struct live_block *block = NULL;

	assert_int_equal(live_block_read(fd, AT, N_CPUS, &block), 0);
	assert_int_equal(block->sequence, sequence);
	assert_int_equal(block->synced[N_CPUS - 1], sequence);
	assert_int_equal(block->synced[0], 0);
	assert_int_equal(block->trace_id, 77);
	assert_memory_equal(block->boot_id, boot_id, 16);
}

static void assert_none(int fd, unsigned n_cpus)
{
	struct live_block *block = NULL;

	assert_int_equal(live_block_read(fd, AT, n_cpus, &block), -ENODATA);
	assert_null(block);
}

static void write_blocks(int fd, unsigned n)
{
	_cleanup_free_ struct live_block *block = live_block_new(N_CPUS, boot_id, 77);

	assert_non_null(block);
	for (unsigned i = 1; i <= n; i++) {
		block->synced[N_CPUS - 1] = i;
		assert_int_equal(live_block_write(fd, AT, block), 0);
	}
}

static void test_size(void **state)
{
	const unsigned fits = (4096 - sizeof(struct live_block)) / 8;

	assert_int_equal(live_block_size(0), 4096);
	assert_int_equal(live_block_size(1), 4096);
	assert_int_equal(live_block_size(fits), 4096);
	assert_int_equal(live_block_size(fits + 1), 8192);
	assert_true(live_block_size(65536) >= 65536 * 8 + sizeof(struct live_block));
}

static void test_round_trip(void **state)
{
	_cleanup_close_ int fd = new_file();

	assert_none(fd, N_CPUS);
	for (unsigned i = 1; i < 8; i++) {
		write_blocks(fd, i);
		assert_read(fd, i);
	}
	assert_none(fd, N_CPUS + 1);
	assert_none(fd, N_CPUS - 1);
	assert_none(fd, 100000);
}

static void test_many_cpus(void **state)
{
	_cleanup_close_ int fd = new_file();
	_cleanup_free_ struct live_block *block = live_block_new(4096, boot_id, 1), *read = NULL;

	for (unsigned i = 0; i < 4096; i++)
		block->synced[i] = i * 4096;
	assert_int_equal(live_block_write(fd, AT, block), 0);
	assert_int_equal(live_block_write(fd, AT, block), 0);
	assert_int_equal(live_block_read(fd, AT, 4096, &read), 0);
	assert_memory_equal(read, block, live_block_size(4096));
}

static void flip(int fd, uint64_t at)
{
	uint8_t byte;

	assert_int_equal(io_pread_all(fd, &byte, 1, at), 0);
	byte ^= 0x10;
	assert_int_equal(io_pwrite_all(fd, &byte, 1, at), 0);
}

/* A write that was cut off: whatever byte is wrong, the other copy counts */
static void test_torn(void **state)
{
	const size_t used = sizeof(struct live_block) + N_CPUS * 8;

	for (unsigned n = 2; n < 4; n++) {
		_cleanup_close_ int fd = new_file();
		uint64_t newest = AT + (n % 2) * live_block_size(N_CPUS);
		uint64_t other = AT + ((n + 1) % 2) * live_block_size(N_CPUS);

		write_blocks(fd, n);
		for (size_t i = 0; i < used; i++) {
			flip(fd, newest + i);
			assert_read(fd, n - 1);
			flip(fd, newest + i);
			flip(fd, other + i);
			assert_read(fd, n);
			flip(fd, newest + i);
			assert_none(fd, N_CPUS);
			flip(fd, newest + i);
			flip(fd, other + i);
		}
		assert_read(fd, n);
	}
}

static void test_cut(void **state)
{
	for (unsigned n = 1; n < 4; n++) {
		_cleanup_close_ int fd = new_file();
		struct live_block *read = NULL;

		write_blocks(fd, n);
		/* copy 1 goes, copy 0 stays; then both are gone */
		assert_int_equal(ftruncate(fd, AT + 4096 + 100), 0);
		if (n == 1)
			assert_none(fd, N_CPUS);
		else
			assert_read(fd, 2);
		assert_int_equal(ftruncate(fd, AT + 50), 0);
		assert_none(fd, N_CPUS);
		assert_int_equal(live_block_read(-1, AT, N_CPUS, &read), -EBADF);
	}
}

/* A block that is read goes on where it was: the next write leaves it alone */
static void test_goes_on(void **state)
{
	_cleanup_close_ int fd = new_file();
	_cleanup_free_ struct live_block *read = NULL;

	write_blocks(fd, 3);
	assert_int_equal(live_block_read(fd, AT, N_CPUS, &read), 0);
	read->synced[N_CPUS - 1] = 4;
	assert_int_equal(live_block_write(fd, AT, read), 0);
	assert_read(fd, 4);
	flip(fd, AT + 20);
	assert_read(fd, 3);
	assert_int_equal(live_block_write(-1, AT, read), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),	  cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_many_cpus), cmocka_unit_test(test_torn),
		cmocka_unit_test(test_cut),	  cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
