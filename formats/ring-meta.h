/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first page of a mapped trace_pipe_raw, include/uapi/linux/trace_mmap.h of Linux 6.10 and
 * later (older headers lack it):
 *
 *   struct ring_meta, padded to meta_page_size | sub-buffer 0 | sub-buffer 1 | … nr_subbufs
 *
 * Numbers in the machine's byte order. Sub-buffers never move; which of them is the oldest, their
 * timestamps tell. The sub-buffer reader.id is the reader's, which the writer does not come to.
 * Source: Documentation/trace/ring-buffer-map.rst. Plain values, any thread.
 */
#pragma once

#include <stdint.h>

struct ring_meta {
	uint32_t meta_page_size;  /* bytes: where the sub-buffers begin */
	uint32_t meta_struct_len; /* bytes of this */
	uint32_t subbuf_size;	  /* bytes, headers included */
	uint32_t nr_subbufs;	  /* the reader's included */
	struct {
		uint64_t lost_events;
		uint32_t id;
		uint32_t read; /* bytes */
	} reader;
	uint64_t flags;
	/* As they were at the last TRACE_MMAP_IOCTL_GET_READER: per_cpu/cpuN/stats knows better */
	uint64_t entries, overrun, read;
	uint64_t reserved[2];
};
