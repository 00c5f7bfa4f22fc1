/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>

#include "basic/io.h"
#include "decode/region.h"

void export_region_init(struct export_region *r, const struct trace_dat *dat,
			const struct trace_dat_region *region, size_t block_size)
{
	*r = (struct export_region){
		.dat = dat,
		.pos = region->offset,
		.end = region->offset + region->size,
		.block_size = block_size - block_size % dat->page_size,
	};
}

static int read_error(const struct export_region *r, uint64_t pos, int error, struct fault *why)
{
	if (error == -ENODATA)
		return fault_set(why, error,
				 "%s: offset 0x%" PRIx64
				 ": the file became shorter while it was read",
				 r->dat->path, pos);
	return fault_errno(why, error, "%s: offset 0x%" PRIx64 ": cannot read", r->dat->path, pos);
}

/* When sub-buffer @i begins; one that was never written comes last */
static int begins(const struct export_region *r, const struct decoder *decoder, uint64_t i,
		  uint64_t *ret, struct fault *why)
{
	uint64_t pos = r->pos + i * r->dat->page_size, ts;
	uint8_t bytes[8];
	int e;

	e = io_pread_all(r->dat->fd, bytes, sizeof(bytes), pos);
	if (e < 0)
		return read_error(r, pos, e, why);
	ts = trace_dat_u64(r->dat, bytes);
	*ret = ts ? decoder_time(decoder, ts) : UINT64_MAX;
	return 0;
}

int export_region_seek(struct export_region *r, const struct decoder *decoder, uint64_t from,
		       struct fault *why)
{
	uint64_t low = 0, high = (r->end - r->pos) / r->dat->page_size, ts = 0;

	/* the first that begins at @from or later; the one before it may reach so far */
	while (low < high) {
		uint64_t middle = (low + high) / 2;
		int e = begins(r, decoder, middle, &ts, why);

		if (e < 0)
			return e;
		if (ts < from)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0)
		r->pos += (low - 1) * r->dat->page_size;
	return 0;
}

int export_region_read(void *userdata, struct merge_block **ret, struct fault *why)
{
	struct export_region *r = userdata;
	size_t size = MIN(r->end - r->pos, (uint64_t)r->block_size);
	struct merge_block *block;
	int e;

	if (size == 0)
		return 0;
	block = merge_block_new(size);
	if (!block)
		return fault_errno(why, -ENOMEM, "%s: cannot read", r->dat->path);
	e = io_pread_all(r->dat->fd, block->bytes, size, r->pos);
	if (e < 0) {
		merge_block_unref(block);
		return read_error(r, r->pos, e, why);
	}
	block->offset = r->pos;
	r->pos += size;
	*ret = block;
	return 1;
}
