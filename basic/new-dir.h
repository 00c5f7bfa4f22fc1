/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A directory that appears under its name only when it is complete. Any thread.
 */
#pragma once

#include <sys/types.h>

#include "basic/macro.h"

struct new_dir {
	int fd;	       /* files go here */
	int parent_fd; /* where the directory is */
	char *name;
	char *temporary; /* ".NAME.….new", its name until it is complete; NULL: none yet */
};

/**
 * new_dir_open() - begin a directory
 * @dir_fd: that a relative @path begins at, or AT_FDCWD
 * @mode: its permission bits, less the umask
 * Return: 0, -EEXIST if there is something at @path already, or negative errno.
 */
int new_dir_open(struct new_dir *dir, int dir_fd, const char *path, mode_t mode);

/**
 * new_dir_publish() - everything to the disk, then give it its name
 * Return: 0, -EEXIST if something has got that name meanwhile, or negative errno.
 */
int new_dir_publish(struct new_dir *dir);

/**
 * new_dir_done() - close; what was not published is removed
 */
void new_dir_done(struct new_dir *dir);

/**
 * remove_tree_at() - remove a directory and what is in it; symbolic links are not followed
 * Return: 0, also if it is not there, or negative errno, e.g. -ENOTDIR.
 */
int remove_tree_at(int dir_fd, const char *name);
