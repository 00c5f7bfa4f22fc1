/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory that ring buffers take. Called by recorder/instance. Main thread.
 */
#pragma once

#include "recorder/tracedir.h"

/**
 * ring_memory_check() - may a ring buffer be made?
 * @size: bytes of each CPU
 * @n_cpus: possible CPUs
 * A ring buffer that takes most of the memory makes the machine kill processes.
 * Return: 0, or -ENOMEM with @why: it would take more than half of what is available.
 */
int ring_memory_check(uint64_t size, unsigned n_cpus, struct fault *why);

/**
 * ring_memory_make_spare() - the ring buffer that the kernel swaps for the one it writes to, unless
 * it is there already
 * @dir: an instance whose ring buffer is there
 * @size: bytes of each CPU
 *
 * The kernel would make it at the first swap, when the memory may be what is missing. It knows no
 * other way to do it before: what was in the ring buffer is in the spare one afterwards.
 * Return: 0; -ENOMEM with @why: also when both would take more than half of what was available; or
 * negative errno with @why.
 */
int ring_memory_make_spare(const struct tracedir *dir, uint64_t size, unsigned n_cpus,
			   struct fault *why);

/* Give it back, with what is in it; none is fine */
int ring_memory_drop_spare(const struct tracedir *dir, struct fault *why);
