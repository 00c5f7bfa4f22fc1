/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnPressure=: what the kernel's pressure stall triggers can be asked for.
 * Documentation/accounting/psi.rst, kernel/sched/psi.c.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

struct pressure {
	const char *resource; /* "memory", "cpu" or "io" */
	bool full;	      /* all tasks were waiting, not only some */
	uint64_t stall_usec;
	uint64_t window_usec;
	char unit[256]; /* whose, "" the whole machine's; not checked to be a name */
};

/**
 * pressure_parse() - "memory some 150ms 1s", "io full 1s 2s unit=NAME"
 * Return: 0, -EINVAL with @why set, or -ENOMEM.
 */
int pressure_parse(const char *text, struct pressure *ret, struct fault *why);
