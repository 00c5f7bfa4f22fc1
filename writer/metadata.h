/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a trace.dat holds besides the data, copied from tracefs and /proc: header page, event
 * formats, kernel symbols, printk formats. Written front to back into a stream. One thread a
 * segment; the symbols are shared by all sessions, under a lock of their own.
 */
#pragma once

#include <stdio.h>

#include "basic/fault.h"

/* Where it comes from. Borrowed. */
struct metadata_source {
	int tracing_fd;	      /* the root of tracefs */
	int instance_fd;      /* the session's instance */
	char *const *systems; /* whose formats to store, NULL-terminated */
};

struct symbols; /* /proc/kallsyms, read once */

struct symbols *symbols_new(void);
void symbols_free(struct symbols *symbols);

/**
 * metadata_write() - from the magic to the printk formats, in the order of trace-cmd.dat(5)
 * @page_size: sub-buffer size, bytes
 * @symbols: read again if /proc/modules has changed since; left out (empty section) where the
 *           kernel hides addresses (kptr_restrict) or /proc/kallsyms may not be read
 * An event that goes away while we look (module unload) is left out.
 * Return: 0 or negative errno.
 */
int metadata_write(FILE *out, const struct metadata_source *source, unsigned page_size,
		   struct symbols *symbols, struct fault *why);

DEFINE_CLEANUP(struct symbols *, symbols_free)
