/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers of tasks, each with an index: 0 for the first that came, 1 for the next. Whoever keeps
 * something for tasks has it in an array. No lock; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PID_MAP_NONE SIZE_MAX

struct pid_map_slot {
	int32_t pid;
	uint32_t place; /* its index and 1; 0: free */
};

/* An open-addressed hash; all zero to begin with */
struct pid_map {
	struct pid_map_slot *slots;
	size_t n, room; /* room: a power of two, at least twice n */
};

/**
 * pid_map_find() - the index of @pid, or PID_MAP_NONE
 */
size_t pid_map_find(const struct pid_map *map, int32_t pid);

/**
 * pid_map_add() - the index of @pid, which is added if it is new
 * Return: 1 it is new, 0, or -ENOMEM.
 */
int pid_map_add(struct pid_map *map, int32_t pid, size_t *ret);

/**
 * pid_map_done() - empty again
 */
void pid_map_done(struct pid_map *map);
