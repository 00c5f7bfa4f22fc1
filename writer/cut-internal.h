/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What cut.c (where is it?) and cut-write.c (the new file) share;
 * together.c, which puts whole files side by side, has their headers merged here too.
 */
#pragma once

#include <stdbool.h>

#include "formats/trace-dat-read.h"
#include "writer/cut.h"
#include "writer/sections.h"

#define CUT_REGION_ALIGN (4 * KIB) /* so that extents can be shared with the sources */

/* A piece of one CPU's region of one source: whole sub-buffers */
struct cut_slice {
	uint64_t offset;    /* in the source file */
	uint64_t size;	    /* bytes; 0: nothing of this CPU */
	bool begins_before; /* the first of them begins before the time asked for, or at it */
};

struct cut_source {
	char *name;
	int fd;
	struct trace_dat *dat;
	uint8_t boot_id[16];	     /* 0: not known */
	char *clock;		     /* as in Clock= */
	bool has_date;		     /* else its clock counts no time */
	int64_t date_usec;	     /* then: realtime minus the clock */
	uint64_t from_nsec, to_nsec; /* what is wanted of it, by its clock */
	struct cut_slice *slices;    /* [n_cpus] */
};

struct cut {
	struct cut_source *sources; /* oldest first */
	size_t n;
	unsigned left_out; /* how many have something of the time, but cannot be in one file */
	unsigned n_cpus;
};

static inline const struct cut_source *cut_newest(const struct cut *cut)
{
	return &cut->sources[cut->n - 1];
}

/**
 * cut_write_header() - everything up to the table of the file's own ring buffer
 * @params: what the sources do not tell: no n_cpus, trace_id, uname and probes
 * @ret_options: undo with options_done()
 * @ret: the stream, for what comes behind that
 */
int cut_write_header(const struct cut *cut, int fd, const struct options_params *params,
		     struct options *ret_options, struct sections_places *ret_places, FILE **ret,
		     struct fault *why);

/**
 * cut_end_header() - all of the header is in the stream: write it, and flyrec's own section behind
 * it
 * @ret_at: where the first region goes
 */
int cut_end_header(const struct cut *cut, FILE *out, int fd, const struct own_content *own,
		   uint64_t *ret_at, struct fault *why);
