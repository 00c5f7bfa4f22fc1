/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files: whole reads and writes that finish or fail. Any thread; fds stay the caller's.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "basic/macro.h"

/**
 * io_open_at() - for reading, without hanging where @path is a FIFO or a terminal
 * @dir_fd: or AT_FDCWD
 * @flags: more of them, e.g. O_NOFOLLOW
 * Waits where somebody has a lease on it, which the kernel limits to /proc/sys/fs/lease-break-time
 * (45 s); flyrecd gives its own back within milliseconds.
 * Return: an fd or negative errno.
 */
int io_open_at(int dir_fd, const char *path, int flags);

/**
 * io_open_dir_at() - a directory itself, not what a symbolic link leads to
 * Return: an fd or negative errno.
 */
int io_open_dir_at(int dir_fd, const char *name);

/**
 * io_opendir_at() - to go through a directory without a list of it
 * Return: 0 or negative errno.
 */
int io_opendir_at(int dir_fd, const char *path, DIR **ret);

/**
 * io_list_at() - the names in a directory, sorted, without "." and ".."
 * @wanted: of these only; NULL: all
 * @ret: see basic/strv.h
 * Return: 0 or negative errno.
 */
int io_list_at(int dir_fd, const char *path, bool (*wanted)(const char *name), char ***ret);

/**
 * io_pwrite_all() - write all of @data at @offset, over short writes and EINTR
 * Return: 0 or negative errno; on error part of it may be written.
 */
int io_pwrite_all(int fd, const void *data, size_t size, uint64_t offset);

/**
 * io_pread_all() - read exactly @size bytes at @offset
 * Return: 0, -ENODATA when the file ends before, or negative errno.
 */
int io_pread_all(int fd, void *data, size_t size, uint64_t offset);

/**
 * io_write_all() - write all of @data at the file position
 */
int io_write_all(int fd, const void *data, size_t size);

/**
 * io_clone_range() - from one file into another, by reference: nothing is read or written
 * Offsets and size: multiples of the file system's blocks.
 * Return: 0, -EOPNOTSUPP, -EXDEV, -EINVAL and others where that cannot be had.
 */
int io_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size);

/**
 * io_share_range() - bytes that two files have at the same place, once on the disk
 * The kernel compares them first, and writes out what of them is not on the disk; both files wait
 * for it. @to: opened for writing. Offset and size: multiples of the file system's blocks. Return:
 * 0, -EBADE if they differ, -EOPNOTSUPP, -EXDEV, -EINVAL and others where that cannot be had; what
 * had been shared until then stays so.
 */
int io_share_range(int from, int to, uint64_t at, uint64_t size);

/**
 * io_copy_range() - from one file into another: by reference where the file system shares extents,
 * else inside the kernel, else by hand
 * Return: 0 or negative errno (-ENODATA: @from ends before).
 */
int io_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size);

/**
 * io_read_file_at() - a whole file, however large, also from proc and tracefs whose sizes read 0
 * @dir_fd: or AT_FDCWD
 * @ret_data: malloc'ed, one NUL byte more than @ret_size says
 * @ret_size: bytes; may be NULL
 * Return: 0 or negative errno.
 */
int io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size);

/**
 * io_read_up_to() - the rest of a file, but no more than @max bytes of it
 * @ret_data, @ret_size: as for io_read_file_at()
 * Return: 0 or negative errno.
 */
int io_read_up_to(int fd, size_t max, char **ret_data, size_t *ret_size);

/**
 * io_read_regular() - the rest of a regular file of at most @max bytes
 * Return: 0 or negative errno: -EISDIR, -EINVAL another kind of file, -EFBIG more than @max.
 */
int io_read_regular(int fd, size_t max, char **ret_data, size_t *ret_size);

/**
 * io_read_stored_file_at() - a whole file of ours, whatever somebody has put in its place
 * Never follows a symbolic link or waits for the other end of a FIFO.
 * @max: bytes
 * Return: 0 or negative errno; -EISDIR; -EBADMSG: no regular file, or more than @max.
 */
int io_read_stored_file_at(int dir_fd, const char *path, size_t max, char **ret_data,
			   size_t *ret_size);

/**
 * io_write_file_at() - replace a file's content: temporary name, fsync, rename, directory fsync
 * @mode: permission bits of the new file
 */
int io_write_file_at(int dir_fd, const char *name, const void *data, size_t size, mode_t mode);

/**
 * io_replace_file_at() - the same without a sync: whole for every process, but after a power cut it
 * may be empty
 */
int io_replace_file_at(int dir_fd, const char *name, const void *data, size_t size, mode_t mode);

/**
 * io_rename_new_at() - rename, unless @to exists: -EEXIST
 * Also where the file system cannot promise that (RENAME_NOREPLACE): there it is looked up first.
 */
int io_rename_new_at(int dir_fd, const char *from, const char *to);

/**
 * io_write_string_at() - write a string to an existing kernel file in one write(2)
 * @flags: added to O_WRONLY | O_CLOEXEC, e.g. O_TRUNC or O_APPEND
 */
int io_write_string_at(int dir_fd, const char *path, const char *text, int flags);
