/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pieces that the sections of a trace.dat are made of, written front to back into a stream;
 * formats/trace-dat.h draws them. For all who make files: metadata.c (of this kernel),
 * cut-write.c (of other files), event-file.c (of no kernel). Any thread, one a stream.
 */
#pragma once

#include <stdio.h>

#include "writer/options.h"

/**
 * sections_open() - a stream for the header of the file that is open as @fd, which stays the
 * caller's Return: NULL with errno set.
 */
FILE *sections_open(int fd);

/**
 * sections_put() - bytes as they are
 * Return, here and below: 0 or negative errno.
 */
int sections_put(FILE *out, const void *data, size_t size);

/**
 * sections_put_u32() - a number; -EFBIG if it is larger
 */
int sections_put_u32(FILE *out, size_t value);

/**
 * sections_put_text32() - size:u32 text; _text64: size:u64 text
 */
int sections_put_text32(FILE *out, const char *text, size_t size);
int sections_put_text64(FILE *out, const char *text, size_t size);

/**
 * sections_put_start() - magic, version, byte order (ours), size of long and of sub-buffers
 */
int sections_put_start(FILE *out, unsigned long_size, unsigned page_size);

/* An event's, as in events/SYSTEM/NAME/format */
struct sections_format {
	const char *system;
	const char *text; /* name, ID, fields, print fmt */
};

/* Those of a file; systems are borrowed, texts malloc'ed */
struct sections_formats {
	struct sections_format *list;
	size_t n;
};

/**
 * sections_formats_add() - one more
 * @text: taken over, freed on error; NULL: -ENOMEM
 */
int sections_formats_add(struct sections_formats *formats, const char *system, char *text);

void sections_formats_done(struct sections_formats *formats);

/**
 * sections_put_formats() - of all events: ftrace's own, then the others a system at a time
 */
int sections_put_formats(FILE *out, const struct sections_format *formats, size_t n);

/* Where sections_put_tables() has put things, from the stream's beginning */
struct sections_places {
	uint64_t names_at, names_room;
	uint64_t options_at;
	uint64_t table_at; /* the first CPU's entry */
};

/**
 * sections_put_tables() - task names, number of CPUs, options, an empty CPU table, trace_clock
 * @names: "PID COMM\n" lines; newlines behind them, to @room bytes or a few more, put the table on
 * its alignment
 * @options: as options_make() has composed them for @n_cpus
 * @clock: text of trace_clock
 */
int sections_put_tables(FILE *out, const char *names, size_t names_size, size_t room,
			unsigned n_cpus, const struct options *options, const char *clock,
			struct sections_places *ret);
