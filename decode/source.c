/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "decode/source.h"

#define BLOCK_SIZE   (256 * KIB)
#define BLOCKS_TOTAL (128 * MIB) /* for all CPUs */

static void on_merge_fault(void *userdata, const char *text)
{
	struct export_source *source = userdata;
	char line[512];

	source->n_faults++;
	(void)snprintf(line, sizeof(line), "%.200s: %.250s", source->dat->path, text);
	if (source->on_fault)
		source->on_fault(line);
}

static int add_region(struct export_source *source, const struct decoder *decoder, uint32_t buffer,
		      uint32_t cpu, struct fault *why)
{
	const struct trace_dat *dat = source->dat;
	struct export_region *region = &source->regions[source->n_regions];
	struct fault broken;
	int r;

	if (source->filter->has_cpus && !cpu_list_has(&source->filter->cpus, cpu))
		return 0;
	if (dat->buffers[buffer].regions[cpu].size == 0)
		return 0;
	if (trace_dat_check_region(dat, &dat->buffers[buffer], cpu, &broken) < 0) {
		source->n_faults++;
		if (source->on_fault)
			source->on_fault(broken.text);
		return 0;
	}
	export_region_init(region, dat, &dat->buffers[buffer].regions[cpu], source->block_size);
	if (source->filter->from > 0) {
		r = export_region_seek(region, decoder, source->filter->from, why);
		if (r < 0)
			return r;
	}
	source->n_regions++;
	return merge_add(source->merge,
			 &(struct merge_source){cpu, buffer, export_region_read, region});
}

int export_source_open(struct export_source *ret, const struct trace_dat *dat,
		       const struct decoder *decoder, const struct export_filter *filter,
		       bool pair_leaves, void (*on_fault)(const char *text), struct fault *why)
{
	size_t most = dat->n_buffers * dat->n_cpus;
	int r;

	*why = (struct fault){};
	*ret = (struct export_source){.dat = dat, .filter = filter, .on_fault = on_fault};
	ret->block_size = MAX(MIN(BLOCK_SIZE, BLOCKS_TOTAL / MAX(most, (size_t)1)), dat->page_size);
	ret->regions = calloc(MAX(most, (size_t)1), sizeof(*ret->regions));
	r = ret->regions ? merge_new(decoder, &dat->layout, pair_leaves, on_merge_fault, ret,
				     &ret->merge)
			 : -ENOMEM;
	for (uint32_t b = 0; b < dat->n_buffers && r >= 0; b++)
		for (uint32_t cpu = 0; cpu < dat->n_cpus && r >= 0; cpu++)
			r = add_region(ret, decoder, b, cpu, why);
	if (r >= 0)
		return 0;
	export_source_done(ret);
	return why->error ? r : fault_errno(why, r, "%s: cannot export", dat->path);
}

void export_source_done(struct export_source *source)
{
	merge_free(source->merge);
	free(source->regions);
	source->merge = NULL;
	source->regions = NULL;
}
