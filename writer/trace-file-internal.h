/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The layout of a file in use, for compact.c, which changes it.
 *
 *   sections | names, reserved | cpus | options, CPUSTAT reserved | table | clock | live block ×2 |
 * own section | pad | region 0 … hole … | region 1 … hole … | … end of file, never moved
 */
#pragma once

#include "writer/trace-file.h"

/* Region starts; a multiple of any file system's allocation unit that collapse must respect */
#define REGION_ALIGN (64 * KIB)

struct trace_file {
	int fd;	       /* through the page cache */
	int direct_fd; /* O_DIRECT, or the same number as fd */
	unsigned n_cpus;
	unsigned subbuf_size;
	uint64_t names_at;
	size_t names_room;
	size_t names_used;    /* bytes rewritten last time: the rest is newlines already */
	uint64_t *cpustat_at; /* [n_cpus]; 0: this file has none for the CPU */
	size_t *cpustat_room;
	uint64_t table_at;
	uint64_t *region_at; /* [n_cpus] */
	uint64_t end;	     /* of the file */
	uint64_t live_at;
	struct live_block *live;
	uint64_t own_at;	  /* of its own section: behind the live blocks */
	size_t own_size;	  /* 0: it has none */
	struct own_places own;	  /* in the file */
	struct own_clocks clocks; /* as there */
	struct own_tasks_writer *tasks;
	uint32_t tasks_since; /* as in task_names_put_tasks() */
	bool was_cut;	      /* shorter than it had been made, when opened */
	bool unsure; /* a sync has failed: the kernel tells once, and calls clean what is not */
	bool unsure_taken;
	bool has_date;
	int64_t date_usec;
};

/* Where a CPU's region begins, into the table */
int trace_file_write_offset(struct trace_file *file, unsigned cpu, uint64_t offset);
