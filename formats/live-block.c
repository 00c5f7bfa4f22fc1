/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/io.h"
#include "formats/live-block.h"

/* FNV-1a: it only has to tell a torn write from a whole one */
static uint32_t checksum(const struct live_block *block)
{
	size_t size = sizeof(*block) + block->n_cpus * sizeof(uint64_t);
	const uint8_t *p = (const uint8_t *)block;
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < size; i++) {
		size_t field = offsetof(struct live_block, checksum);

		hash ^= i >= field && i < field + 4 ? 0 : p[i];
		hash *= 16777619U;
	}
	return hash;
}

uint64_t live_block_place(uint64_t end)
{
	return round_up(end, LIVE_BLOCK_ALIGN);
}

size_t live_block_size(unsigned n_cpus)
{
	return round_up(sizeof(struct live_block) + n_cpus * sizeof(uint64_t), LIVE_BLOCK_ALIGN);
}

struct live_block *live_block_new(unsigned n_cpus, const uint8_t boot_id[16], uint64_t trace_id)
{
	struct live_block *block = calloc(1, live_block_size(n_cpus));

	if (!block)
		return NULL;
	memcpy(block->magic, LIVE_BLOCK_MAGIC, sizeof(LIVE_BLOCK_MAGIC));
	memcpy(block->boot_id, boot_id, sizeof(block->boot_id));
	block->trace_id = trace_id;
	block->n_cpus = n_cpus;
	return block;
}

int live_block_write(int fd, uint64_t at, struct live_block *block)
{
	size_t size = live_block_size(block->n_cpus);

	block->sequence++;
	block->checksum = checksum(block);
	return io_pwrite_all(fd, block, size, at + (block->sequence % 2) * size);
}

int live_block_read(int fd, uint64_t at, unsigned n_cpus, struct live_block **ret)
{
	size_t size = live_block_size(n_cpus);
	struct live_block *best = NULL;

	for (unsigned copy = 0; copy < 2; copy++) {
		_cleanup_free_ struct live_block *block = malloc(size);
		int r;

		if (!block) {
			free(best);
			return -ENOMEM;
		}
		r = io_pread_all(fd, block, size, at + copy * size);
		if (r < 0 && r != -ENODATA) {
			free(best);
			return r;
		}
		if (r < 0 ||
		    memcmp(block->magic, LIVE_BLOCK_MAGIC, sizeof(LIVE_BLOCK_MAGIC)) != 0 ||
		    block->n_cpus != n_cpus || block->checksum != checksum(block) ||
		    (best && best->sequence >= block->sequence))
			continue;
		free(best);
		best = TAKE_PTR(block);
	}
	if (!best)
		return -ENODATA;
	*ret = best;
	return 0;
}
