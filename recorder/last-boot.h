/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Instances that the kernel makes at boot in memory that outlives it (kernel command line:
 * reserve_mem= and trace_instance=, Linux 6.12 and later): what their file last_boot_info says of
 * the boot before, and what that makes of this boot's symbols. Such an instance can be told by this
 * file; it can neither be removed nor resized. Documentation/trace/debugging.rst, "Persistent
 * buffers across boots". Any thread.
 */
#pragma once

#include <stdbool.h>

#include "recorder/tracedir.h"

struct last_boot_module {
	char *name;
	uint64_t text; /* where its code was */
};

struct last_boot {
	bool current;	    /* what is in the buffer is of this boot */
	bool tells_current; /* the kernel would say so (Linux 6.15 and later) */
	bool has_kernel;    /* what is known of the kernel: one of the following */
	bool has_text;
	uint64_t text;			/* where _text was (Linux 6.15 and later) */
	int64_t text_delta, data_delta; /* added to addresses of then they are those of now */
	struct last_boot_module *modules;
	size_t n_modules;
};

/* Was it made by the kernel at boot, in memory that outlives it? */
bool last_boot_is_kept(const struct tracedir *dir);

/**
 * last_boot_parse() - the text of last_boot_info
 *
 *   text delta:     -20971520        Linux 6.12: this boot's addresses minus those of then
 *   data delta:     -20971520
 *
 *   ffffffffa1c00000        [kernel] Linux 6.15 and later: addresses of then
 *   ffffffffc0a1e000        xfs
 *
 *   # Current                        there: nothing in it is of an earlier boot
 *
 * Lines of a later kernel are passed over.
 * Return: 0, -EBADMSG when nothing in it is known, or -ENOMEM.
 */
int last_boot_parse(const char *text, struct last_boot *ret);
void last_boot_done(struct last_boot *boot);

/**
 * last_boot_read() - of the instance @dir; see instance_read_last_boot()
 */
int last_boot_read(const struct tracedir *dir, struct last_boot *ret, struct fault *why);

/**
 * last_boot_symbols() - what /proc/kallsyms was in that boot of the same kernel
 * Addresses between _text and _end move with the kernel, those of a module's code with the module.
 * Left out is what cannot be known: modules of which nothing is said, modules' data, and what was
 * made at run time (BPF programs, trampolines).
 * @kallsyms, @modules: /proc/kallsyms and /proc/modules of this boot
 * @ret: malloc'ed; "" where not even the kernel's can be known
 * @ret_modules: how many modules are in it; may be NULL
 * Return: 0 or -ENOMEM.
 */
int last_boot_symbols(const struct last_boot *boot, const char *kallsyms, const char *modules,
		      char **ret, unsigned *ret_modules);
