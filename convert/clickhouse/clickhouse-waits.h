/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table "waits": each time that a task waited for a CPU or was blocked, for a millisecond or
 * longer, with who woke it and who had the CPU meanwhile, as analysis/spans.h makes them out. So
 * that a question about many hosts does not have to find them among all switches. Main thread.
 */
#pragma once

#include "convert/clickhouse/native-rows.h"
#include "convert/convert.h"

#define CLICKHOUSE_WAITS "waits"

struct clickhouse_waits {
	const struct export *export;
	struct clickhouse_labels labels;
	void (*on_fault)(const char *text);
	size_t n_faults; /* what was damaged and left out */
};

/**
 * clickhouse_waits_put() - write blocks with all rows
 * Return: 0, OUT_FILE_E_PIPE, or negative errno with @why.
 */
int clickhouse_waits_put(struct clickhouse_waits *waits, int fd, struct fault *why);
