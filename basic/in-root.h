/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of another system, below its root directory, as that system would see them: symbolic
 * links, absolute ones too, are followed but cannot lead out (openat2(2), RESOLVE_IN_ROOT). The
 * tree may be hostile: nothing of it can make us block or read without end. Any thread; fds stay
 * the caller's.
 */
#pragma once

#include <sys/types.h>

#include "basic/macro.h"

/**
 * in_root_open() - open @path below @root_fd
 * @path: with or without a slash in front
 * @flags: of open(2), O_CLOEXEC is added
 * Return: an fd, or negative errno (-ENOSYS before Linux 5.6).
 */
int in_root_open(int root_fd, const char *path, int flags);

/**
 * in_root_read() - a whole small text file, like those of sysfs; regular files only
 * @limit: bytes it may have; -EFBIG beyond
 * @ret: malloc'ed, NUL-terminated, white space at its end is cut
 */
int in_root_read(int root_fd, const char *path, size_t limit, char **ret);

/**
 * in_root_link() - the last part of what the symbolic link @path points to
 * @ret: malloc'ed
 */
int in_root_link(int root_fd, const char *path, char **ret);
