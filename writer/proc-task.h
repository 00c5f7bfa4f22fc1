/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What /proc says of a task, as far as a trace.dat has room for it. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PROC_TASK_CGROUP_MAX 4096

struct proc_task {
	int32_t pid, tgid;
	uint64_t start; /* hundredths of a second since boot */
	char comm[64];	/* as /proc/PID/comm, which for kernel workers is longer than a name */
	size_t comm_size;
};

/**
 * proc_task_stat() - all but the tgid
 * @path: of its "stat", from @dir_fd
 * Return: 0 or negative errno, -ENOENT or -ESRCH if it has ended.
 */
int proc_task_stat(int dir_fd, const char *path, struct proc_task *ret);

/**
 * proc_task_tgid() - @path: of its "status"
 */
int proc_task_tgid(int dir_fd, const char *path, int32_t *ret);

/**
 * proc_task_cgroup() - its control group
 * @path: of its "cgroup"
 * @ret: path in systemd's own hierarchy; where there is none, or the task is at its root, in the
 * unified one, as it is for whoever has no systemd but containers
 * @ret_hierarchy: number of systemd's own; 0: there is none
 */
int proc_task_cgroup(int dir_fd, const char *path, char ret[static PROC_TASK_CGROUP_MAX],
		     uint32_t *ret_hierarchy);
