/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnPressure=: the kernel's pressure stall triggers, a file descriptor that becomes readable with
 * EPOLLPRI. Documentation/accounting/psi.rst, kernel/sched/psi.c. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

struct pressure {
	const char *resource; /* "memory", "cpu" or "io" */
	bool full;	      /* all tasks were waiting, not only some */
	uint64_t stall_usec;
	uint64_t window_usec;
};

/**
 * pressure_parse() - "memory some 150ms 1s"
 * Return: 0, -EINVAL with @why set, or -ENOMEM.
 */
int pressure_parse(const char *text, struct pressure *ret, struct fault *why);

/**
 * pressure_open() - begin to watch; closing the descriptor ends it
 * Return: 0, or negative errno and @why names the file and what this process or kernel lacks.
 */
int pressure_open(const struct pressure *pressure, int *ret_fd, struct fault *why);
