/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's table of task names (saved_cmdlines) is one for the whole machine: 128 entries at
 * first. Raised while we record, restored at the end. Main thread.
 */
#pragma once

#include "basic/fault.h"

/**
 * saved_cmdlines_raise() - make room for at least @entries names, or as many as the kernel takes
 * The kernel takes 32768 (PID_MAX_DEFAULT) and may round up: the file then reads more.
 * @ret_old: the size found, for saved_cmdlines_restore(); 0 when it was large enough already
 */
int saved_cmdlines_raise(unsigned entries, unsigned *ret_old, struct fault *why);

/**
 * saved_cmdlines_restore() - back to @old, unless somebody else has changed it since
 * @raised: what saved_cmdlines_raise() had asked for; a size from there to twice that plus 8192
 *          counts as the kernel's rounding of it, any other as somebody else's
 */
int saved_cmdlines_restore(unsigned raised, unsigned old, struct fault *why);

/**
 * saved_cmdlines_read() - the names the kernel knows now, "PID COMM" lines
 * In pieces with pauses, so that it goes on taking names: some 20 ms when its table is full. Any
 * thread that may sleep. Return: 0 or negative errno.
 */
int saved_cmdlines_read(int tracing_fd, char **ret);
