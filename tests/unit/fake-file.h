/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A live trace.dat made by writer/trace-file from a little tracefs that is made of plain files; and
 * sub-buffers to put into it. The program that uses it wraps io_read_file_at (see Makefile.am): the
 * kernel's symbols are small and to order here.
 */
#pragma once

#include "tests/unit/tmp.h"
#include "writer/trace-file.h"

#define FAKE_SUBBUF	4096
#define FAKE_EVENT_ID	42
#define FAKE_NAMES_ROOM 200
#define FAKE_DATE	1700000000000000LL

#define _cleanup_file_ _cleanup_(trace_file_freep)

/* What io_read_file_at() gives for these; NULL: -ENOENT. Reset by fake_init(). */
extern const char *fake_kallsyms, *fake_modules;

struct fake {
	struct tmp tmp; /* with the tracefs in "tracing", the files in "dir" */
	int tracing_fd, dir_fd;
	struct symbols *symbols;
	struct trace_file_params params;
};

void fake_init(struct fake *fake, unsigned n_cpus);
void fake_done(struct fake *fake);

/* Created and published as @name, or opened again; fails the test when that fails */
struct trace_file *fake_create(struct fake *fake, const char *name);
struct trace_file *fake_open(struct fake *fake, const char *name);

/* One whole sub-buffer of two events at @timestamp and after it; FAKE_SUBBUF bytes */
void fake_subbuf(char *bytes, uint64_t timestamp);

/* Write such a sub-buffer at the @n'th place of a region, without telling anybody */
void fake_put(struct trace_file *file, unsigned cpu, unsigned n, uint64_t timestamp);

/* Tell readers */
void fake_set_size(struct trace_file *file, unsigned cpu, uint64_t size);
uint64_t fake_size(struct trace_file *file, unsigned cpu);

/* Of a whole file in "dir", which must be there; bytes */
off_t fake_length(struct fake *fake, const char *name);

/* The whole file is right: its frame and each sub-buffer, @subbufs of them in all */
void fake_verify(struct fake *fake, const char *name, unsigned subbufs);
