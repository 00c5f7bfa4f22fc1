/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the kernel has to be started with, so that sessions with Persistent= have their instances in
 * memory that outlives it. Pure function. Documentation/admin-guide/kernel-parameters.txt,
 * "reserve_mem" and "trace_instance".
 */
#pragma once

#include "basic/fault.h"
#include "config/config.h"

#define BOOT_PARAMETERS_MAX 8U /* the kernel keeps so many pieces of memory by name */

/**
 * boot_parameters_size() - bytes to be reserved for a session
 * @buffer_size: BufferSize=, bytes of sub-buffers of each CPU, as the kernel counts in an ordinary
 *               instance
 * @page_size: that of the machine, which is the sub-buffers' too
 * What the kernel describes it with included, rounded up to whole MiB.
 */
uint64_t boot_parameters_size(uint64_t buffer_size, unsigned n_cpus, unsigned page_size);

/**
 * boot_parameters_format() - "reserve_mem=9M:2M:flyrec1 trace_instance=flyrec.oom^traceoff@flyrec1"
 * @names: of the sessions; NULL or empty: all that are enabled and have Persistent=yes
 * @ret: malloc'ed, one line without a newline
 * Return: 0; -ENOENT: no such session, or none is persistent; -E2BIG: more than
 * BOOT_PARAMETERS_MAX; with @why.
 */
int boot_parameters_format(const struct daemon_config *config, char *const *names, unsigned n_cpus,
			   unsigned page_size, char **ret, struct fault *why);
