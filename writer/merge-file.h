/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One of the files that merge.c puts together: what it says, and how that has to be said in the
 * file in the making. Plain memory, any thread.
 */
#pragma once

#include "formats/own-hosts.h"
#include "writer/merge-axis.h"
#include "writer/merge-formats.h"
#include "writer/region-read.h"

struct merge_input;

/* Of a ring buffer, in the new file */
struct merge_place {
	uint64_t option_at; /* where the offset of its part goes; 0: it has none */
	uint64_t table_at;  /* the first CPU's entry */
};

/* One of its ring buffers */
struct merge_buffer {
	/* In the file in the making: HOST:SESSION. Not with a slash, as trace-cmd report shows what
	 * is behind the last one */
	char *name;
	char **cpustats; /* texts of its CPUs */
	bool wanted;	 /* the file's own one may be there for its name only */
	/* [2 * n_cpus]: where each CPU's is in the new file, and its size */
	uint64_t *regions;
	struct merge_place all, frame; /* in the header that all readers know, and in the frame */
};

struct merge_file {
	struct trace_dat *dat;
	struct axis_file axis;
	struct merge_ids *ids;
	char *host, *session;
	unsigned host_number; /* the same for files of one host */
	struct merge_buffer *buffers;
	char *probes, *note, *uname; /* NULL: none */
	uint8_t *pids;		     /* as struct subbuf_move has them */
	struct region_read *read;
	uint64_t first, last; /* times of its events, by the new clock; last 0: it has none */
};

/**
 * merge_file_open() - read all that @input says
 * @told: as of region_read_new()
 */
int merge_file_open(struct merge_file *file, const struct merge_input *input,
		    struct region_read_told told, struct fault *why);
void merge_file_done(struct merge_file *file);

/**
 * merge_file_stats() - in all texts of CPUs: times by the new clock, and bytes of larger
 * sub-buffers
 * @larger: the new ones are larger
 * Return: 0 or -ENOMEM.
 */
int merge_file_stats(struct merge_file *file, bool larger);

/**
 * merge_file_own() - flyrec's own section of its frame, by the new clock
 * @clock: that one's name, as in Clock=
 * @ret: malloc'ed
 */
int merge_file_own(const struct merge_file *file, const char *clock, uint8_t **ret,
		   size_t *ret_size, struct fault *why);

/**
 * merge_file_time() - a time of a CPU by the new clock
 */
uint64_t merge_file_time(const struct merge_file *file, uint32_t cpu, uint64_t ts);

/**
 * merge_file_host() - its line in a file's own section
 */
struct own_host merge_file_host(const struct merge_file *file, uint64_t frame);
