/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The settings of an instance that are one file each: sub-buffer and buffer size, clock,
 * buffer_percent, cpumask, tracer with its function filters, options. Each can be applied and
 * compared with what the kernel says now. Called by recorder/instance. Main thread.
 *
 * The files set_ftrace_filter and set_ftrace_notrace are opened only if the configuration has
 * filters: a kernel may refuse them (kernel.ftrace_enabled, lockdown, LSM) and nobody asked.
 */
#pragma once

#include "recorder/trace-config.h"
#include "recorder/tracedir.h"

/**
 * settings_apply() - all of them, on a new instance that does not trace
 * @n_cpus: possible CPUs
 * Where the kernel refuses what SubBufferSize=auto would have, its own size stays: see
 * instance_subbuf_size().
 * The tracer goes before the options, since trace_options takes a tracer's own options only while
 * it is the current one.
 */
int settings_apply(const struct tracedir *dir, const struct trace_config *config, unsigned n_cpus,
		   struct fault *why);

/**
 * settings_keep_clock() - after event triggers were written
 * The kernel sets an instance's clock to "global" for a hist trigger that takes times, unless the
 * trigger itself names one (event_hist_trigger_parse() in kernel/trace/trace_events_hist.c).
 * Setting a clock empties the ring buffer: before it traces.
 */
int settings_keep_clock(const struct tracedir *dir, const struct trace_config *config,
			struct fault *why);

/**
 * settings_check() - compare, and apply again what somebody has changed
 * @subbuf_size: bytes, as it was when the instance was taken over
 * @changes: a few words for each
 */
int settings_check(const struct tracedir *dir, const struct trace_config *config, unsigned n_cpus,
		   unsigned subbuf_size, struct changes *changes, struct fault *why);

/**
 * settings_reset_tracer() - "nop", before the instance is removed
 */
int settings_reset_tracer(const struct tracedir *dir, struct fault *why);

/**
 * settings_flips_tracing() - may the configured triggers themselves write tracing_on?
 */
bool settings_flips_tracing(const struct trace_config *config);
