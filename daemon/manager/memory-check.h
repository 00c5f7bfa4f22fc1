/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Do snapshots fit into the memory that the service may have? Main thread.
 */
#pragma once

#include "config/config.h"

/**
 * memory_wanted() - bytes that snapshots of all enabled flight sessions take, made at the same time
 * @n_cpus: online; each has BufferSize=, of which a session copies at most Memory=
 */
uint64_t memory_wanted(const struct daemon_config *config, unsigned n_cpus);

/**
 * memory_limit() - bytes that this process' own control group may have (memory.max)
 * @root_fd: of the directory "/", where it finds proc and sys/fs/cgroup
 * Return: 0, or negative errno: -ENOENT without a limit, or where it is not known.
 */
int memory_limit(int root_fd, uint64_t *ret);

/**
 * memory_check() - log a warning if the one is more than the other, or if what is recorded may be
 * @state_fd: the state directory, which may be in memory; or negative
 */
void memory_check(const struct daemon_config *config, int state_fd);
