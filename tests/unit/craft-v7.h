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
