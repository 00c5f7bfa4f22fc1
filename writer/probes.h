/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the kprobes and uprobes in a file were defined: the kernel's formats tell the names of their
 * fields, but neither the program nor what was read from where, which an export to gdb needs. Kept
 * as a CPUSTAT text of its own, see TRACE_DAT_PROBES. Beside them the build of each probed program,
 * as offsets are good for one build only: "build-id HEX PATH". Any thread.
 */
#pragma once

#include "formats/trace-dat-read.h"

/**
 * probes_read() - the lines of dynamic_events whose group is one of @systems
 * @tracing_fd: the root of tracefs
 * @build_ids: "HEX PATH", added if there are any such lines; NULL-terminated, or NULL
 * @ret: TRACE_DAT_PROBES and the lines; NULL: there are none
 * Return: 0 or negative errno.
 */
int probes_read(int tracing_fd, char *const *systems, char *const *build_ids, char **ret);

/**
 * probes_merge() - add those of a file to others
 * @text: as from probes_read(), NULL at first; replaced, the caller frees it
 */
int probes_merge(const struct trace_dat *dat, char **text, struct fault *why);
