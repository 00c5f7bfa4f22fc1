/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The index of a compressed trace.dat: place, sizes and time of each chunk, so that a file is
 * opened without a look at each of them, and a time is found by unpacking one. It is the entry
 * OWN_INDEX of flyrec's own section (formats/own-section.h), in the file's byte order:
 *
 *   n_buffers:u32 0:u32  { n_cpus:u32 0:u32 { cpu:u32 n_chunks:u32 }*n_cpus }*n_buffers
 *   { time:u64 place:u64 packed:u32 unpacked:u32 }* of all buffers and CPUs in that order
 *
 * time: of the header of the chunk's first sub-buffer; place: of the chunk's head in the file;
 * packed, unpacked: as in its head. Owner: the caller; not changed once it was read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/macro.h"

#define INDEX_CHUNK_SIZE 24

struct trace_dat_data;
struct trace_dat_index;

struct index_chunk {
	uint64_t time, place;
	uint32_t packed, unpacked;
};

/* The chunks of one CPU */
struct index_cpu {
	uint32_t cpu, n;
	uint64_t place;	       /* of the first */
	const uint8_t *chunks; /* index_chunk() */
};

/**
 * trace_dat_index_new() - of the entry's bytes
 * @data: knows the byte order
 * @bytes: are taken over, unless it fails
 * Return: 0, -EBADMSG, or -ENOMEM.
 */
int trace_dat_index_new(const struct trace_dat_data *data, uint8_t *bytes, size_t size,
			struct trace_dat_index **ret);
void trace_dat_index_free(struct trace_dat_index *index);
DEFINE_CLEANUP(struct trace_dat_index *, trace_dat_index_free)

/**
 * trace_dat_index_find() - the CPU whose first chunk is there
 * @place: of its head
 * Return: NULL if there is none.
 */
const struct index_cpu *trace_dat_index_find(const struct trace_dat_index *index, uint32_t cpu,
					     uint64_t place);

struct index_chunk trace_dat_index_chunk(const struct trace_dat_data *data,
					 const struct index_cpu *cpu, uint32_t i);
