/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A condition on how long something takes, as plain values. Strings are malloc'ed, see
 * config/latency.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LATENCY_KEYS 4U

enum latency_kind {
	LATENCY_RUNQUEUE,
	LATENCY_BLOCKED,
	LATENCY_IRQ,
	LATENCY_SOFTIRQ,
	LATENCY_BLOCK,
	LATENCY_SYSCALL,
	LATENCY_PAIR, /* from one event to another one */
	_LATENCY_MAX,
};

struct latency_config {
	enum latency_kind kind;
	bool has_way, in_kernel; /* "way=", and that it is "kernel" */
	uint64_t nsec;		 /* what takes so long or longer; 0: none was given */
	char *task;		 /* only of this one, fnmatch(3); NULL: any */
	char *unit;		 /* likewise, as who_fits_unit() has it */
	bool has_device;
	uint32_t device; /* of LATENCY_BLOCK, as the kernel's dev_t */
	char *call;	 /* of LATENCY_SYSCALL */
	char *events[2]; /* of LATENCY_PAIR, SYSTEM:NAME */
	char **keys;	 /* fields of both, or "common_pid" */
};
