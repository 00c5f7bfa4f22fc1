/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A live file that a process has left, and what the next one makes of it; for tests of
 * recover_file().
 */
#pragma once

#include "tests/unit/fake-file.h"
#include "writer/recover.h"

#define RECOVERY_NAME "current.dat"

struct recovery {
	struct fake fake;
	struct trace_file *file;
	struct recover_report report;
	char *slots; /* NULL: none */
	struct recover_batch *batches;
	size_t n_batches;
};

void recovery_begin(struct recovery *recovery, unsigned n_cpus);

/* Sub-buffers @from … @to - 1 with timestamps 1000 + their number */
void recovery_put(struct recovery *recovery, unsigned cpu, unsigned from, unsigned to);
void recovery_put_bytes(struct recovery *recovery, unsigned cpu, uint64_t at, const void *data,
			size_t size);

/* Readers are told of so many; all is synced */
void recovery_set(struct recovery *recovery, unsigned cpu, unsigned subbufs);
void recovery_sync(struct recovery *recovery);

/* As the next process finds it. Return: what recover_file() does; recovery_run() fails the test
 * instead. */
int recovery_try(struct recovery *recovery, struct fault *why);
void recovery_run(struct recovery *recovery);

/* What it came to, in sub-buffers */
void recovery_assert(struct recovery *recovery, unsigned cpu, unsigned subbufs, unsigned adopted,
		     unsigned cut, bool kept);

/* A second recovery finds nothing to do */
void recovery_end(struct recovery *recovery);
