/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/recovery.h"

void recovery_begin(struct recovery *f, unsigned n_cpus)
{
	memset(f, 0, sizeof(*f));
	fake_init(&f->fake, n_cpus);
	f->file = fake_create(&f->fake, RECOVERY_NAME);
}

void recovery_put(struct recovery *f, unsigned cpu, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		fake_put(f->file, cpu, i, 1000 + i);
}

void recovery_put_bytes(struct recovery *f, unsigned cpu, uint64_t at, const void *data,
			size_t size)
{
	struct trace_file_region region;

	trace_file_region(f->file, cpu, &region);
	assert_int_equal(io_pwrite_all(region.buffered_fd, data, size, region.offset + at), 0);
}

void recovery_set(struct recovery *f, unsigned cpu, unsigned subbufs)
{
	fake_set_size(f->file, cpu, (uint64_t)subbufs * FAKE_SUBBUF);
}

void recovery_sync(struct recovery *f)
{
	assert_int_equal(trace_file_sync(f->file), 0);
}

int recovery_try(struct recovery *f, struct fault *why)
{
	const struct recover_hand hand = {f->slots, f->batches, f->n_batches};

	trace_file_free(f->file);
	f->file = fake_open(&f->fake, RECOVERY_NAME);
	memset(&f->report, 0xff, sizeof(f->report));
	return recover_file(f->file, f->fake.dir_fd, RECOVERY_NAME, &hand, &f->report, why);
}

void recovery_run(struct recovery *f)
{
	struct fault why = {};

	if (recovery_try(f, &why) < 0)
		fail_msg("%s", why.text);
}

void recovery_assert(struct recovery *f, unsigned cpu, unsigned subbufs, unsigned adopted,
		     unsigned cut, bool kept)
{
	assert_int_equal(fake_size(f->file, cpu), subbufs * FAKE_SUBBUF);
	assert_int_equal(f->report.adopted, adopted * FAKE_SUBBUF);
	assert_int_equal(f->report.cut, cut * FAKE_SUBBUF);
	assert_int_equal(f->report.kept_cut, kept);
	assert_int_equal(faccessat(f->fake.dir_fd, RECOVERY_NAME ".cpu1.damaged", F_OK, 0),
			 kept ? 0 : -1);
}

void recovery_end(struct recovery *f)
{
	char *slots = f->slots;

	f->slots = NULL;
	f->n_batches = 0;
	recovery_run(f);
	assert_int_equal(f->report.adopted, 0);
	assert_int_equal(f->report.cut, 0);
	assert_false(f->report.kept_cut);
	trace_file_free(f->file);
	free(slots);
	fake_done(&f->fake);
}
