/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The live block: flyrec's own note in the padding between the CPU table and the first region of a
 * trace.dat, which no reader of the format looks at. It says up to where the data is known to be on
 * the disk, so that after a power cut sizes that ran ahead of their data can be taken back.
 *
 *   file: … table | padding | copy 0 | copy 1 | padding | region 0 …
 *
 * Two copies, each starting on a LIVE_BLOCK_ALIGN boundary, written in turn: the one with a valid
 * checksum and the higher sequence number counts. Numbers in the machine's byte order: the block is
 * of use only to the machine that recorded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LIVE_BLOCK_MAGIC "flyrec live 1\n"
#define LIVE_BLOCK_ALIGN 4096

/* Where the file is on its way from sparse to dense */
enum live_phase {
	LIVE_SPARSE,	 /* as recorded: regions far apart */
	LIVE_COLLAPSING, /* gaps are being closed: the table's offsets are not right, its sizes are
			  */
	LIVE_DENSE,	 /* region behind region */
};

struct live_block {
	char magic[16];
	uint8_t boot_id[16]; /* of the boot that records */
	uint64_t trace_id;   /* the TRACEID option's */
	uint64_t sequence;
	uint32_t phase; /* an enum live_phase */
	uint32_t unit;	/* bytes: in a dense file regions begin at multiples of it */
	uint32_t n_cpus;
	uint32_t checksum; /* of the whole block with this field 0 */
	uint64_t synced[]; /* bytes of each region that fdatasync() has returned for */
};

/**
 * live_block_place() - where copy 0 is
 * @end: of the sections: one behind the last byte of the table and what belongs to it
 */
uint64_t live_block_place(uint64_t end);

/**
 * live_block_size() - bytes of one copy, a multiple of LIVE_BLOCK_ALIGN
 */
size_t live_block_size(unsigned n_cpus);

/**
 * live_block_new() - an empty block, zero-filled to live_block_size()
 * Return: malloc'ed, or NULL.
 */
struct live_block *live_block_new(unsigned n_cpus, const uint8_t boot_id[16], uint64_t trace_id);

/**
 * live_block_write() - write the next copy
 * @at: file offset of copy 0
 * Increments the sequence and sets the checksum. Return: 0 or negative errno.
 */
int live_block_write(int fd, uint64_t at, struct live_block *block);

/**
 * live_block_read() - the newer valid copy
 * Return: 0, -ENODATA when neither copy is valid, or negative errno.
 */
int live_block_read(int fd, uint64_t at, unsigned n_cpus, struct live_block **ret);
