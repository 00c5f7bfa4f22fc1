/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a file says beside its events, as rows of the other tables: tasks, clocks, findings,
 * snapshots. Main thread.
 */
#pragma once

#include "convert/clickhouse/native-rows.h"
#include "convert/convert.h"

struct clickhouse_facts {
	const struct export *export;
	struct clickhouse_labels labels;
	void (*on_fault)(const char *text);
	size_t n_faults; /* what was damaged and left out */
};

/**
 * clickhouse_facts_has() - is there such a table?
 */
bool clickhouse_facts_has(const char *table);

/**
 * clickhouse_facts_put() - append blocks with all rows of one
 * Return: 0 or negative errno with @why.
 */
int clickhouse_facts_put(struct clickhouse_facts *facts, const char *table, struct text *out,
			 struct fault *why);
