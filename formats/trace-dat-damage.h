/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is wrong with a file, but keeps nobody from reading the rest: lines with its path, the
 * offset and the reason. Owner: struct trace_dat.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "basic/fault.h"

struct damages {
	const char *path; /* of the file, the owner's */
	char **lines;	  /* or NULL: none */
	size_t n;	  /* there may be more of them than lines */
};

/**
 * damage_add() - "PATH: offset 0x…: …"
 * Return: 0 or -ENOMEM.
 */
int damage_add(struct damages *damages, uint64_t offset, const char *format, ...) _printf_(3, 4);

/**
 * damage_add_fault() - the error of a part that can be done without
 * Return: 0, @error if that is of memory or the disk and thus stops everything, or -ENOMEM.
 */
int damage_add_fault(struct damages *damages, int error, const struct fault *why);

void damages_done(struct damages *damages);
