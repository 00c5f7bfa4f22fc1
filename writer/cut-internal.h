/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What cut.c (where is it?) and cut-write.c (the new file) share;
 * together.c, which puts whole files side by side, has their headers merged here too.
 */
#pragma once

#include <stdbool.h>

#include "formats/trace-dat-read.h"
#include "writer/cut.h"

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
	uint8_t boot_id[16];	  /* 0: not known */
	char *clock;		  /* as in Clock= */
	bool has_date;		  /* else its clock counts no time */
	int64_t date_usec;	  /* then: realtime minus the clock */
	struct cut_slice *slices; /* [n_cpus] */
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
 * cut_write_sections() - everything up to the printk formats
 * Taken over from the newest source; event formats of the others are added where they differ
 * (modules and probes that came and went), events told apart by system and id.
 */
int cut_write_sections(const struct cut *cut, FILE *out, struct fault *why);

/* The newest source's UNAME option, malloc'ed; NULL: it has none */
int cut_uname(const struct cut *cut, char **ret, struct fault *why);

/**
 * cut_names() - the task names of all sources, the newest name of a pid wins
 * @ret: malloc'ed text of "PID COMM\n" lines
 */
int cut_names(const struct cut *cut, char **ret, size_t *ret_size, struct fault *why);
