/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of craft_dat() as one of version 7, byte by byte: sections, options, chunks of one
 * sub-buffer each. Written from trace-cmd.dat.v7(5), not with our own reader's code.
 */
#pragma once

#include "tests/unit/craft.h"

/* Where things are in it */
struct craft_v7 {
	size_t compression;   /* its name */
	size_t options_place; /* the word in the file's header */
	size_t sections[22];  /* heads, by id; [0]: the first options, [3]: the first buffer's */
	size_t next;	      /* data of the first options' end: place of the next ones */
	size_t last_options;  /* their section */
	size_t last_end;      /* the option that ends them */
	size_t option_events; /* data of the option that names section 18 */
	size_t option_kallsyms;
	size_t buffer_option; /* data of the first */
	size_t entry[2];      /* of the first buffer */
	size_t area[2];	      /* data of its CPUs */
};

/**
 * craft_v7() - both ring buffers of craft_dat(c, @cpustat, "second")
 * @zstd: compressed, if HAVE_ZSTD
 */
void craft_v7(struct craft *c, bool zstd, const char *cpustat, struct craft_v7 *ret);

/**
 * craft_v7_packed() - packed:u32 unpacked:u32 and that many bytes of zstd, as in chunks
 */
void craft_v7_packed(struct craft *c, const void *bytes, size_t size);

#define CRAFT_CHUNKS	  32 /* of a CPU */
#define CRAFT_CHUNK_PAGES 4
#define CRAFT_CHUNK_SIZE  (CRAFT_CHUNK_PAGES * 4096)
#define CRAFT_PAGES	  (CRAFT_CHUNKS * CRAFT_CHUNK_PAGES)
#define CRAFT_DATE_USEC	  1700000000000000 /* realtime minus the clock */

/* When a sub-buffer begins, and its only event is */
static inline uint64_t craft_page_nsec(unsigned cpu, unsigned page)
{
	return (page + UINT64_C(1)) * 1000000 + cpu * UINT64_C(1000);
}

#define CRAFT_BTF     "\x9f\xeb\x01 what the kernel's types are"
#define CRAFT_MODULES "loop 65536 0 - Live 0xffffffffc0000000\n"

/* Where things are in a file of craft_v7_long() */
struct craft_long {
	size_t btf, modules;	       /* heads of sections 23, compressed, and 25 */
	size_t area[2];		       /* data of the CPUs */
	size_t heads[2][CRAFT_CHUNKS]; /* of chunks */
	size_t own;		       /* head of flyrec's own section */
	size_t entry;		       /* its entry of the index */
	size_t index;		       /* its bytes */
	size_t chunks;		       /* in them: CPU by CPU, 24 bytes each */
};

/**
 * craft_v7_long() - two CPUs of CRAFT_CHUNKS chunks, the index of them, and sections of
 * trace-cmd 3.4 The file ends with the options. Only if HAVE_ZSTD.
 */
void craft_v7_long(struct craft *c, struct craft_long *ret);

/**
 * craft_long_seal() - after the index was changed: a checksum that is right
 */
void craft_long_seal(struct craft *c, const struct craft_long *at);
