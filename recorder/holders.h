/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who holds a file of an instance open, so that it cannot be removed? No state. Main thread.
 */
#pragma once

#include "basic/macro.h"

/**
 * holders_find() - the first open file below @path that some process has
 * Other users' processes are looked at as far as /proc lets us (CAP_SYS_PTRACE).
 * @ret: "per_cpu/cpu0/trace_pipe_raw, open in process 4711 (cat)"
 * Return: 0, -ENOENT when none was found, or negative errno.
 */
int holders_find(const char *path, char **ret);
