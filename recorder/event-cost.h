/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one event costs the task in which it happens, on this machine and kernel: a system call
 * that does nothing is timed with raw_syscalls:sys_enter traced, and with sys_enter and sys_exit.
 * The difference is one event, without the slow path of system calls, which both have. In an
 * instance of its own that traces nothing but the measuring thread. Meanwhile all system calls on
 * the machine take the kernel's slower path: some hundredths of a second. Main thread, but for
 * event_cost_measure().
 */
#pragma once

#include "basic/fault.h"
#include "basic/macro.h"

struct event_cost;

/**
 * event_cost_new() - make the instance; one of this name that an earlier process left is removed
 * @name: of the instance
 * Return: 0 or negative errno with @why: -ENOENT: the kernel does not have these events.
 */
int event_cost_new(const char *name, struct event_cost **ret, struct fault *why);

/**
 * event_cost_measure() - about 20 ms of CPU time
 * The thread that calls it is the one that is traced. Any thread.
 * @ret_nsec: of an event, with the clock "mono", in a buffer that is overwritten
 * Return: 0; -EOPNOTSUPP with @why: nothing was traced; or another negative errno with @why.
 */
int event_cost_measure(const struct event_cost *cost, double *ret_nsec, struct fault *why);

/**
 * event_cost_free() - remove the instance; NULL is fine
 */
int event_cost_free(struct event_cost *cost, struct fault *why);
