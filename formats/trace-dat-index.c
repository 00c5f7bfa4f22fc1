/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "formats/trace-dat-data.h"
#include "formats/trace-dat-index.h"

#define HEAD_SIZE 8 /* of all, of a buffer, and of a CPU */
#define MAX_CPUS  65536U

struct trace_dat_index {
	uint8_t *bytes;
	struct index_cpu *cpus; /* by place */
	size_t n_cpus;
};

static uint32_t get_u32(const struct trace_dat_data *data, const uint8_t *bytes)
{
	return (uint32_t)trace_dat_data_number(data, bytes, 4);
}

struct index_chunk trace_dat_index_chunk(const struct trace_dat_data *data,
					 const struct index_cpu *cpu, uint32_t i)
{
	const uint8_t *p = cpu->chunks + (size_t)i * INDEX_CHUNK_SIZE;

	return (struct index_chunk){
		.time = trace_dat_data_number(data, p, 8),
		.place = trace_dat_data_number(data, p + 8, 8),
		.packed = get_u32(data, p + 16),
		.unpacked = get_u32(data, p + 20),
	};
}

/* The heads, up to where the chunks begin: *pos is set behind them. CPUs without chunks are none.
 */
static int read_heads(struct trace_dat_index *index, const struct trace_dat_data *data, size_t size,
		      size_t *pos)
{
	uint32_t n_buffers;
	size_t at = HEAD_SIZE;

	if (size < HEAD_SIZE)
		return -EBADMSG;
	n_buffers = get_u32(data, index->bytes);
	for (uint32_t b = 0; b < n_buffers; b++) {
		uint32_t n_cpus;

		if (size - at < HEAD_SIZE)
			return -EBADMSG;
		n_cpus = get_u32(data, index->bytes + at);
		at += HEAD_SIZE;
		if (n_cpus > (size - at) / HEAD_SIZE || n_cpus > MAX_CPUS - index->n_cpus)
			return -EBADMSG;
		for (uint32_t i = 0; i < n_cpus; i++, at += HEAD_SIZE) {
			const struct index_cpu cpu = {
				.cpu = get_u32(data, index->bytes + at),
				.n = get_u32(data, index->bytes + at + 4),
			};

			if (cpu.n == 0)
				continue;
			if (array_grow(&index->cpus, index->n_cpus, sizeof(cpu)) < 0)
				return -ENOMEM;
			index->cpus[index->n_cpus++] = cpu;
		}
	}
	*pos = at;
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct index_cpu *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

static int read_index(struct trace_dat_index *index, const struct trace_dat_data *data, size_t size)
{
	size_t at = 0;
	int r = read_heads(index, data, size, &at);

	if (r < 0)
		return r;
	for (size_t i = 0; i < index->n_cpus; i++) {
		struct index_cpu *cpu = &index->cpus[i];

		if (cpu->n > (size - at) / INDEX_CHUNK_SIZE)
			return -EBADMSG;
		cpu->chunks = index->bytes + at;
		cpu->place = trace_dat_index_chunk(data, cpu, 0).place;
		at += (size_t)cpu->n * INDEX_CHUNK_SIZE;
	}
	if (index->n_cpus > 0)
		qsort(index->cpus, index->n_cpus, sizeof(*index->cpus), compare_places);
	return at == size ? 0 : -EBADMSG;
}

int trace_dat_index_new(const struct trace_dat_data *data, uint8_t *bytes, size_t size,
			struct trace_dat_index **ret)
{
	_cleanup_(trace_dat_index_freep) struct trace_dat_index *index = calloc(1, sizeof(*index));
	int r;

	if (!index)
		return -ENOMEM;
	index->bytes = bytes;
	r = read_index(index, data, size);
	if (r < 0) {
		index->bytes = NULL;
		return r;
	}
	*ret = TAKE_PTR(index);
	return 0;
}

void trace_dat_index_free(struct trace_dat_index *index)
{
	if (!index)
		return;
	free(index->bytes);
	free(index->cpus);
	free(index);
}

const struct index_cpu *trace_dat_index_find(const struct trace_dat_index *index, uint32_t cpu,
					     uint64_t place)
{
	const struct index_cpu wanted = {.place = place};
	const struct index_cpu *found = index->n_cpus > 0
						? bsearch(&wanted, index->cpus, index->n_cpus,
							  sizeof(*index->cpus), compare_places)
						: NULL;

	return found && found->cpu == cpu ? found : NULL;
}
