/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What SubBufferSize=auto is. Large sub-buffers cost less than half the CPU time a byte, but each
 * flush writes one of each CPU where anything happened, full or not. A pure function over plain
 * values.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct subbuf_size_input {
	uint64_t page_size;   /* bytes: of memory, and of sub-buffers by default */
	bool settable;	      /* the kernel has buffer_subbuf_size_kb */
	bool persistent;      /* Persistent=: laid out at boot */
	uint64_t buffer_size; /* bytes of a CPU */
	unsigned n_cpus;      /* online */
	uint64_t flush_usec;  /* from one flush to the next; 0: there are none */
	uint64_t max_use;     /* bytes */
	bool compress;	      /* Compress=: what is empty takes next to no room */
};

/**
 * subbuf_size_auto() - bytes of a sub-buffer of a new instance; 0: as the kernel has it
 */
uint64_t subbuf_size_auto(const struct subbuf_size_input *input);
