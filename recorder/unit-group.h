/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Control groups of systemd's units, by their names in the file system. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

/**
 * unit_group_mounts() - where are control groups of systemd's units?
 * @ret_dirs: mount points of cgroup2 and of the hierarchy "name=systemd", a libtracefs list; NULL
 *            when there is none
 * Return: 0, or negative errno with @why.
 */
int unit_group_mounts(char ***ret_dirs, struct fault *why);

/* The same of the text of /proc/self/mountinfo */
int unit_group_parse_mounts(const char *text, char ***ret_dirs);

/* Is @name the directory of @unit? */
bool unit_group_is(const char *name, const char *unit);

/**
 * unit_group_find() - the directory of a unit in the hierarchy of version 2
 * @ret_path: free() it. Of several the one that is nearest to the root: the system's before a
 * user's Return: 0; -ENOENT: the unit does not run, or there is none; -EOPNOTSUPP: there is no such
 * hierarchy; or another negative errno. @why is set.
 */
int unit_group_find(const char *unit, char **ret_path, struct fault *why);
