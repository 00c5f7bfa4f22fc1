/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is wrong with an Arm snapshot: against its document, and against what OpenCSD makes of it,
 * which decodes less than there is, or nothing, without an error. formats/arm-snapshot.h has the
 * layout. Pure functions over files that the caller provides; any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

/* The directory; names as in the snapshot's files, relative to it */
struct arm_files {
	/* malloc'ed; at least ARM_INI_SIZE_MAX + 1 bytes of a larger one */
	int (*read)(void *userdata, const char *name, char **ret_data, size_t *ret_size);
	int (*size)(void *userdata, const char *name, uint64_t *ret_size);
	void *userdata;
};

/* @line 0: about the file as such */
typedef void (*arm_check_fault_t)(void *userdata, const char *file, unsigned line,
				  const char *text);

/**
 * arm_check() - report everything that is wrong
 * @ret_version: 1 for "1.0", 0: unknown
 * Return: 0, also with faults; -ENOMEM, with some reported maybe.
 */
int arm_check(const struct arm_files *files, arm_check_fault_t on_fault, void *userdata,
	      unsigned *ret_version);
