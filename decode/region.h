/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file's regions as sources for the merge. One thread.
 */
#pragma once

#include "decode/merge.h"

struct export_region {
	const struct trace_dat *dat;
	uint64_t pos, end; /* in the file */
	size_t block_size;
};

/**
 * export_region_init() - the sub-buffers of a region
 * @region: found sound by trace_dat_check_region()
 * @block_size: bytes read at a time, at least one sub-buffer
 */
void export_region_init(struct export_region *r, const struct trace_dat *dat,
			const struct trace_dat_region *region, size_t block_size);

/**
 * export_region_seek() - skip the sub-buffers that end before @from, by their timestamps
 */
int export_region_seek(struct export_region *r, const struct decoder *decoder, uint64_t from,
		       struct fault *why);

/**
 * export_region_read() - for struct merge_source
 */
int export_region_read(void *userdata, struct merge_block **ret, struct fault *why);
