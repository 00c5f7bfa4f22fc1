/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files as a kill, a power cut or a person with truncate(1) leave them.
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
#include "tests/unit/fake-file.h"
#include "writer/recover.h"

#define SUBBUF FAKE_SUBBUF
#define NAME   "current.dat"

struct fixture {
	struct fake fake;
	struct trace_file *file;
	struct recover_report report;
	char *slots; /* NULL: none */
};

/* What the disk cannot read: from @bad_at of a file on, so many bytes */
static uint64_t bad_at, bad_size;

int __real_io_pread_all(int fd, void *data, size_t size, uint64_t offset);
int __wrap_io_pread_all(int fd, void *data, size_t size, uint64_t offset);
int __wrap_io_pread_all(int fd, void *data, size_t size, uint64_t offset)
{
	if (offset < bad_at + bad_size && offset + size > bad_at)
		return -EIO;
	return __real_io_pread_all(fd, data, size, offset);
}

static void begin(struct fixture *f, unsigned n_cpus)
{
	memset(f, 0, sizeof(*f));
	fake_init(&f->fake, n_cpus);
	f->file = fake_create(&f->fake, NAME);
}

/* Sub-buffers @from … @to - 1 with timestamps 1000 + their number */
static void put(struct fixture *f, unsigned cpu, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		fake_put(f->file, cpu, i, 1000 + i);
}

static void put_bytes(struct fixture *f, unsigned cpu, uint64_t at, const void *data, size_t size)
{
	struct trace_file_region region;

	trace_file_region(f->file, cpu, &region);
	assert_int_equal(io_pwrite_all(region.buffered_fd, data, size, region.offset + at), 0);
}

static void set(struct fixture *f, unsigned cpu, unsigned subbufs)
{
	fake_set_size(f->file, cpu, (uint64_t)subbufs * SUBBUF);
}

static void sync_now(struct fixture *f)
{
	assert_int_equal(trace_file_sync(f->file), 0);
}

/* As the next process finds it */
static void recover(struct fixture *f)
{
	struct fault why = {};

	trace_file_free(f->file);
	f->file = fake_open(&f->fake, NAME);
	memset(&f->report, 0xff, sizeof(f->report));
	if (recover_file(f->file, f->fake.dir_fd, NAME, f->slots, &f->report, &why) < 0)
		fail_msg("%s", why.text);
}

static void assert_recovered(struct fixture *f, unsigned cpu, unsigned subbufs, unsigned adopted,
			     unsigned cut, bool kept)
{
	assert_int_equal(fake_size(f->file, cpu), subbufs * SUBBUF);
	assert_int_equal(f->report.adopted, adopted * SUBBUF);
	assert_int_equal(f->report.cut, cut * SUBBUF);
	assert_int_equal(f->report.kept_cut, kept);
	assert_int_equal(faccessat(f->fake.dir_fd, NAME ".cpu1.damaged", F_OK, 0), kept ? 0 : -1);
}

/* A second recovery finds nothing to do */
static void end(struct fixture *f)
{
	char *slots = f->slots;

	f->slots = NULL;
	recover(f);
	assert_int_equal(f->report.adopted, 0);
	assert_int_equal(f->report.cut, 0);
	assert_false(f->report.kept_cut);
	trace_file_free(f->file);
	free(slots);
	fake_done(&f->fake);
}

static void test_nothing_to_do(void **state)
{
	struct fixture f;

	begin(&f, 3);
	recover(&f);
	assert_recovered(&f, 1, 0, 0, 0, false);
	put(&f, 1, 0, 5);
	set(&f, 1, 5);
	sync_now(&f);
	recover(&f);
	assert_recovered(&f, 1, 5, 0, 0, false);
	fake_verify(&f.fake, NAME, 5);
	end(&f);
}

static void test_adopts(void **state)
{
	struct fixture f;

	begin(&f, 3);
	put(&f, 0, 0, 2);
	put(&f, 1, 0, 7);
	set(&f, 1, 3);
	sync_now(&f);
	recover(&f);
	assert_int_equal(fake_size(f.file, 0), 2 * SUBBUF);
	assert_recovered(&f, 1, 7, 2 + 4, 0, false);
	fake_verify(&f.fake, NAME, 9);
	end(&f);
}

static void test_adopts_the_same_time(void **state)
{
	struct fixture f;

	begin(&f, 2);
	for (unsigned i = 0; i < 3; i++)
		fake_put(f.file, 1, i, 500);
	set(&f, 1, 1);
	recover(&f);
	assert_recovered(&f, 1, 3, 2, 0, false);
	end(&f);
}

/* Older than what is before it: left over from something else */
static void test_time_backwards_ends(void **state)
{
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 4);
	fake_put(f.file, 1, 4, 1002);
	fake_put(f.file, 1, 5, 2000);
	set(&f, 1, 2);
	recover(&f);
	assert_recovered(&f, 1, 4, 2, 0, false);
	fake_verify(&f.fake, NAME, 4);
	end(&f);

	begin(&f, 2); /* also right behind what was synced */
	put(&f, 1, 0, 2);
	fake_put(f.file, 1, 2, 1000);
	set(&f, 1, 2);
	sync_now(&f);
	recover(&f);
	assert_recovered(&f, 1, 2, 0, 0, false);
	end(&f);
}

static void test_zeros_end(void **state)
{
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 3);
	put(&f, 1, 4, 6); /* behind a hole */
	set(&f, 1, 1);
	recover(&f);
	assert_recovered(&f, 1, 3, 2, 0, false);
	/* and what lies behind it is given back: it must not come up again one day */
	put(&f, 1, 3, 4);
	recover(&f);
	assert_recovered(&f, 1, 4, 1, 0, false);
	end(&f);
}

/* A power cut: sizes on the disk, their data not */
static void test_sizes_ahead(void **state)
{
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 6);
	set(&f, 1, 3);
	sync_now(&f);
	set(&f, 1, 9);
	recover(&f);
	assert_recovered(&f, 1, 6, 0, 3, false);
	fake_verify(&f.fake, NAME, 6);
	end(&f);
}

/* Never below what was synced, whatever is there */
static void test_synced_is_kept(void **state)
{
	_cleanup_free_ char *zeros = calloc(1, SUBBUF);
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 4);
	set(&f, 1, 4);
	sync_now(&f);
	assert_non_null(zeros);
	put_bytes(&f, 1, 3 * SUBBUF, zeros, SUBBUF);
	set(&f, 1, 6);
	recover(&f);
	assert_recovered(&f, 1, 4, 0, 2, false);
	/* What the new daemon writes behind it counts next time */
	put(&f, 1, 4, 6);
	recover(&f);
	assert_recovered(&f, 1, 6, 2, 0, false);
	end(&f);
}

static uint64_t damaged_bytes(struct fixture *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->fake.dir_fd, name, &st, 0), 0);
	assert_int_equal(st.st_mode & 0137, 0);
	return (uint64_t)st.st_size;
}

static void test_insane_tail_is_kept(void **state)
{
	_cleanup_free_ char *junk = malloc(SUBBUF), *kept = NULL;
	struct fixture f;

	begin(&f, 2);
	assert_non_null(junk);
	memset(junk, 0xa5, SUBBUF);
	put(&f, 1, 0, 2);
	put_bytes(&f, 1, 3 * SUBBUF, junk, SUBBUF); /* behind a zero one, and before another */
	set(&f, 1, 5);
	recover(&f);
	assert_recovered(&f, 1, 2, 0, 3, true);
	assert_int_equal(damaged_bytes(&f, NAME ".cpu1.damaged"), 2 * SUBBUF);
	assert_int_equal(io_read_file_at(f.fake.dir_fd, NAME ".cpu1.damaged", &kept, NULL), 0);
	assert_memory_equal(kept, junk, SUBBUF);
	fake_verify(&f.fake, NAME, 2);
	/* Another time it goes behind, nothing is replaced */
	put_bytes(&f, 1, 2 * SUBBUF, junk, SUBBUF);
	set(&f, 1, 3);
	recover(&f);
	assert_recovered(&f, 1, 2, 0, 1, true);
	assert_int_equal(damaged_bytes(&f, NAME ".cpu1.damaged"), 3 * SUBBUF);
	end(&f);
}

static void test_kinds_of_nonsense(void **state)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		char page[SUBBUF];
		struct fixture f;

		begin(&f, 2);
		put(&f, 1, 0, 2);
		fake_subbuf(page, 1002);
		switch (kind) {
		case 0: /* longer than it can be */
			page[9] = 0x20;
			break;
		case 1: /* no time */
			memset(page, 0, 8);
			break;
		case 2: /* an event that runs past the end */
			page[16] = 28;
			break;
		case 3: /* half of it was written */
			memset(page + 20, 0, SUBBUF - 20);
			page[16] = 0;
			break;
		}
		put_bytes(&f, 1, 2 * SUBBUF, page, SUBBUF);
		set(&f, 1, 2);
		recover(&f);
		assert_recovered(&f, 1, 2, 0, 0, false);
		set(&f, 1, 3);
		put_bytes(&f, 1, 2 * SUBBUF, page, SUBBUF);
		recover(&f);
		assert_recovered(&f, 1, 2, 0, 1, true);
		end(&f);
	}
}

static void test_size_is_nonsense(void **state)
{
	const uint64_t sizes[] = {
		2 * SUBBUF + 1, 3 * SUBBUF - 1, 4 * MIB, 4 * MIB + SUBBUF, UINT64_MAX, INT64_MAX,
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct fixture f;

		begin(&f, 2);
		put(&f, 1, 0, 3);
		fake_set_size(f.file, 1, sizes[i]);
		recover(&f);
		assert_int_equal(fake_size(f.file, 1), 3 * SUBBUF);
		assert_false(f.report.kept_cut);
		fake_verify(&f.fake, NAME, 3);
		end(&f);
	}
}

static void test_fills_the_region(void **state)
{
	struct trace_file_region region;
	struct fixture f;
	unsigned n;

	begin(&f, 2);
	trace_file_region(f.file, 0, &region);
	n = (unsigned)(region.room / SUBBUF);
	put(&f, 0, 0, n);
	put(&f, 1, n, n + 2); /* sane and later, but of another CPU */
	fake_put(f.file, 1, 0, 9000);
	set(&f, 0, 1);
	recover(&f);
	assert_int_equal(fake_size(f.file, 0), region.room);
	assert_int_equal(fake_size(f.file, 1), SUBBUF);
	end(&f);
}

static char *slot_of(struct fixture *f, unsigned cpu)
{
	return f->slots + (size_t)cpu * SUBBUF;
}

static void new_slots(struct fixture *f, unsigned n_cpus)
{
	f->slots = calloc(n_cpus, SUBBUF);
	assert_non_null(f->slots);
}

/* The slot's sub-buffer had reached the file before the kill: it must not come twice */
static void test_slot_written(void **state)
{
	for (int published = 0; published < 2; published++) {
		static const char zeros[SUBBUF];
		struct fixture f;

		begin(&f, 3);
		new_slots(&f, 3);
		put(&f, 1, 0, 3);
		set(&f, 1, published ? 3 : 2);
		fake_subbuf(slot_of(&f, 1), 1002);
		fake_subbuf(slot_of(&f, 2), 77); /* this one had not */
		recover(&f);
		assert_int_equal(fake_size(f.file, 1), 3 * SUBBUF);
		assert_int_equal(fake_size(f.file, 2), 0);
		assert_memory_equal(slot_of(&f, 1), zeros, SUBBUF);
		assert_memory_not_equal(slot_of(&f, 2), zeros, SUBBUF);
		assert_memory_equal(slot_of(&f, 0), zeros, SUBBUF);
		end(&f);
	}
}

/* It had reached it in part, or something else is there: it is written again */
static void test_slot_not_written(void **state)
{
	char before[SUBBUF];
	struct fixture f;

	begin(&f, 2);
	new_slots(&f, 2);
	put(&f, 1, 0, 2);
	set(&f, 1, 2);
	fake_subbuf(slot_of(&f, 1), 1002);
	put_bytes(&f, 1, 2 * SUBBUF, slot_of(&f, 1), 20);
	memcpy(before, slot_of(&f, 1), SUBBUF);
	recover(&f);
	assert_int_equal(fake_size(f.file, 1), 2 * SUBBUF);
	assert_memory_equal(slot_of(&f, 1), before, SUBBUF);
	end(&f);
}

/* Cut by truncate(1), at every sub-buffer's edges: all that is whole is kept */
static void test_cut_file(void **state)
{
	const unsigned n = 5;

	for (unsigned i = 0; i < 3 * n; i++) {
		struct trace_file_region region;
		struct fixture f;
		uint64_t size;

		begin(&f, 2);
		put(&f, 0, 0, n);
		put(&f, 1, 0, n);
		set(&f, 0, n);
		set(&f, 1, n);
		sync_now(&f);
		trace_file_region(f.file, 1, &region);
		size = (uint64_t)(i / 3) * SUBBUF + (i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : SUBBUF - 1);
		assert_int_equal(ftruncate(region.buffered_fd, (off_t)(region.offset + size)), 0);
		recover(&f);
		assert_int_equal(fake_size(f.file, 0), n * SUBBUF);
		/* the events end early in our sub-buffers: one that lost only padding is whole */
		assert_int_equal(fake_size(f.file, 1), (i / 3 + (i % 3 == 2)) * (uint64_t)SUBBUF);
		fake_verify(&f.fake, NAME, (unsigned)(n + fake_size(f.file, 1) / SUBBUF));
		end(&f);
	}
}

/* Opened (its size is right again) and killed before it was recovered */
static void test_cut_and_killed(void **state)
{
	struct trace_file_region region;
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 5);
	set(&f, 1, 5);
	sync_now(&f);
	trace_file_region(f.file, 1, &region);
	assert_int_equal(ftruncate(region.buffered_fd, (off_t)(region.offset + 2 * SUBBUF)), 0);
	trace_file_free(f.file);
	f.file = fake_open(&f.fake, NAME);
	recover(&f);
	assert_recovered(&f, 1, 2, 0, 3, false);
	end(&f);
}

static void spoil(struct fixture *f, unsigned cpu, unsigned subbuf, unsigned count)
{
	struct trace_file_region region;

	trace_file_region(f->file, cpu, &region);
	bad_at = region.offset + (uint64_t)subbuf * SUBBUF + 512;
	bad_size = count == 0 ? 0 : (uint64_t)(count - 1) * SUBBUF + 512;
}

/* The file ends there, for nobody knows what comes behind it; the other CPU is whole */
static void test_bad_sector(void **state)
{
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 3);
	set(&f, 1, 3);
	sync_now(&f);
	put(&f, 0, 0, 4);
	put(&f, 1, 3, 6);
	set(&f, 1, 6);
	spoil(&f, 1, 5, 1);
	recover(&f);
	bad_size = 0;
	assert_int_equal(fake_size(f.file, 0), 4 * SUBBUF);
	assert_recovered(&f, 1, 5, 4, 1, false);
	assert_true(f.report.unreadable);
	fake_verify(&f.fake, NAME, 9);
	end(&f);
}

/* All that there is of a CPU: it may as well be the disk */
static void test_nothing_can_be_read(void **state)
{
	struct fault why = {};
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 3);
	set(&f, 1, 3);
	spoil(&f, 1, 0, 4);
	trace_file_free(f.file);
	f.file = fake_open(&f.fake, NAME);
	assert_int_equal(recover_file(f.file, f.fake.dir_fd, NAME, NULL, &f.report, &why), -EIO);
	bad_size = 0;
	recover(&f);
	assert_recovered(&f, 1, 3, 0, 0, false);
	assert_false(f.report.unreadable);
	end(&f);
}

/* What had been synced is not looked at */
static void test_bad_sector_is_synced(void **state)
{
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 5);
	set(&f, 1, 4);
	sync_now(&f);
	spoil(&f, 1, 3, 1);
	recover(&f);
	bad_size = 0;
	assert_recovered(&f, 1, 5, 1, 0, false);
	end(&f);
}

/* More than a sector: the disk may be there again later, and nothing is touched until then */
static void test_bad_disk(void **state)
{
	struct fault why = {};
	struct fixture f;

	begin(&f, 2);
	put(&f, 1, 0, 90);
	set(&f, 1, 90);
	spoil(&f, 1, 1, 89);
	trace_file_free(f.file);
	f.file = fake_open(&f.fake, NAME);
	assert_int_equal(recover_file(f.file, f.fake.dir_fd, NAME, NULL, &f.report, &why), -EIO);
	bad_size = 0;
	assert_int_equal(fake_size(f.file, 1), 90 * SUBBUF);
	recover(&f);
	assert_recovered(&f, 1, 90, 0, 0, false);
	end(&f);
}

static void test_one_cpu(void **state)
{
	struct trace_file_region region;
	struct fixture f;

	begin(&f, 1);
	put(&f, 0, 0, 5);
	set(&f, 0, 5);
	sync_now(&f);
	trace_file_region(f.file, 0, &region);
	assert_int_equal(ftruncate(region.buffered_fd, (off_t)(region.offset + 2 * SUBBUF + 5)), 0);
	recover(&f);
	assert_int_equal(fake_size(f.file, 0), 2 * SUBBUF);
	fake_verify(&f.fake, NAME, 2);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_adopts),
		cmocka_unit_test(test_adopts_the_same_time),
		cmocka_unit_test(test_time_backwards_ends),
		cmocka_unit_test(test_zeros_end),
		cmocka_unit_test(test_sizes_ahead),
		cmocka_unit_test(test_synced_is_kept),
		cmocka_unit_test(test_insane_tail_is_kept),
		cmocka_unit_test(test_kinds_of_nonsense),
		cmocka_unit_test(test_size_is_nonsense),
		cmocka_unit_test(test_fills_the_region),
		cmocka_unit_test(test_slot_written),
		cmocka_unit_test(test_slot_not_written),
		cmocka_unit_test(test_cut_file),
		cmocka_unit_test(test_cut_and_killed),
		cmocka_unit_test(test_bad_sector),
		cmocka_unit_test(test_nothing_can_be_read),
		cmocka_unit_test(test_bad_sector_is_synced),
		cmocka_unit_test(test_bad_disk),
		cmocka_unit_test(test_one_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
