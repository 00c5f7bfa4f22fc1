/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command file beside an exported gdb trace file: it loads the program's symbols to where it
 * ran, then the trace file. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "convert/gdb/gdb-probe.h"

/* A program or library, and where a probe in it was */
struct gdb_program {
	const char *path;
	uint64_t offset;  /* of the probe in the file */
	uint64_t address; /* of the probe in memory */
};

/**
 * gdb_command_write() - the whole file
 * @tfile: name of the trace file
 * @programs: the first is the one whose symbols count; NULL: of an imported trace file
 */
void gdb_command_write(FILE *out, const char *tfile, const struct gdb_program *programs, size_t n);
