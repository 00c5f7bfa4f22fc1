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
	int tracing_fd;			  /* the root of tracefs */
	int instance_fd;		  /* the session's instance */
	char *const *systems;		  /* whose formats to store, NULL-terminated */
	char *const *build_ids;		  /* of probed programs, for probes_read(), or NULL */
	const struct metadata_kept *kept; /* instead of all these, or NULL */
};

/* What a boot that is over had: everything of metadata_write() but the symbols */
struct metadata_kept {
	char *formats; /* from the magic to the event formats, as in the file */
	size_t formats_size;
	char *printk;
};

struct symbols; /* /proc/kallsyms, read once, without the room in front of functions (__pfx_) */

/**
 * symbols_path() - /proc/kallsyms, or $FLYREC_KALLSYMS, where a unit that hides it has bound it to
 */
const char *symbols_path(void);

struct symbols *symbols_new(void);
void symbols_free(struct symbols *symbols);

/**
 * symbols_new_of() - those of another boot, never read again
 * @text: malloc'ed, as /proc/kallsyms; taken over in any case
 * Return: NULL: out of memory.
 */
struct symbols *symbols_new_of(char *text);

/**
 * symbols_copy() - /proc/kallsyms as it would be written now
 * @ret: malloc'ed, "" where the kernel hides it
 * Return: 0 or negative errno.
 */
int symbols_copy(struct symbols *symbols, char **ret);

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

/**
 * metadata_keep() - what a file needs of this boot that can be known now, its symbols aside
 * @ret: undo with metadata_kept_done()
 */
int metadata_keep(const struct metadata_source *source, unsigned page_size,
		  struct metadata_kept *ret, struct fault *why);
void metadata_kept_done(struct metadata_kept *kept);

DEFINE_CLEANUP(struct symbols *, symbols_free)
