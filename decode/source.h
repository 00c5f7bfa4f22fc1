/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events of a file that a filter lets through, of all CPUs in the order of time: regions and
 * merge put together. Main thread.
 */
#pragma once

#include "decode/filter.h"
#include "decode/region.h"

struct export_source {
	const struct trace_dat *dat;
	const struct export_filter *filter;
	struct merge *merge;
	struct export_region *regions;
	size_t block_size, n_regions;
	/* a part of the file is broken and was left out; @text names the file */
	void (*on_fault)(const char *text);
	size_t n_faults;
};

/**
 * export_source_open() - begin before the first event that is wanted
 * @decoder, @filter: stay the caller's and must live as long as @ret
 * @pair_leaves: see merge_new()
 * @on_fault: may be NULL
 * Return: 0 or negative errno with the story in @why.
 */
int export_source_open(struct export_source *ret, const struct trace_dat *dat,
		       const struct decoder *decoder, const struct export_filter *filter,
		       bool pair_leaves, void (*on_fault)(const char *text), struct fault *why);
void export_source_done(struct export_source *source);
