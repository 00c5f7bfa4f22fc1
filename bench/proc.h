/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the kernel knows about CPU time, memory and wake-ups, from /proc and /sys. Bench programs
 * end with err(3) when something is wrong.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "basic/macro.h"

/* A process and its descendants */
struct proc_tree {
	uint64_t cpu_nsec; /* of those alive, their ended threads included, ended children not */
	uint64_t rss;	   /* bytes, shared pages counted in each process */
	uint64_t switches; /* times a thread was taken off its CPU, by itself or not */
	unsigned processes;
};

/* The machine as a whole; only differences of two mean anything */
struct proc_system {
	uint64_t busy_nsec;    /* all CPUs: time that was neither idle nor stolen by the host */
	uint64_t kthread_nsec; /* CPU time of kernel threads alive: writeback, loop devices, … */
	uint64_t cached;       /* bytes of page cache */
	uint64_t disk_bytes;   /* written to the disk */
};

/**
 * proc_tree_read() - sum up @root and its descendants
 * A process that ends meanwhile is left out.
 */
void proc_tree_read(pid_t root, struct proc_tree *ret);

/**
 * proc_system_read() - the machine now
 * @disk_stat: "/sys/block/NAME/stat", or NULL: disk_bytes is 0
 */
void proc_system_read(const char *disk_stat, struct proc_system *ret);
