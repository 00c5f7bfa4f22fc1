/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The session's directory: its names and what they mean. Any thread.
 *
 *   current.dat                    the segment being written
 *   .current.dat.new               the next one in the making, without data
 *   .YYYYMMDDThhmmss.uuuuuuZ.dat.finishing   complete, on its way to its archive name
 *   YYYYMMDDThhmmss.uuuuuuZ.dat    finished
 *   *.damaged                      what could not be made sense of; only retention removes it
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

#define STORE_CURRENT	"current.dat"
#define STORE_NAME_SIZE 64

/**
 * store_open_dir() - open a directory, made if it lacks (0750)
 * A symbolic link or a directory that belongs to another user is refused.
 */
int store_open_dir(int dir_fd, const char *name, int *ret_fd, struct fault *why);

/**
 * store_archive_name() - "YYYYMMDDThhmmss.uuuuuuZ.dat", UTC, not yet taken in @dir_fd
 * @realtime_usec: of the first data; moved on by microseconds until the name is free
 */
int store_archive_name(int dir_fd, uint64_t realtime_usec, char ret_name[STORE_NAME_SIZE]);

/**
 * store_snapshot_name() - "YYYYMMDDThhmmss.uuuuuuZ-REASON.dat", not yet taken in @dir_fd
 * @realtime_usec: of the trigger
 */
int store_snapshot_name(int dir_fd, uint64_t realtime_usec, const char *reason,
			char ret_name[STORE_NAME_SIZE]);

/**
 * store_parse_archive_name() - is it one, of a segment or a snapshot? @ret_usec: its time
 */
bool store_parse_archive_name(const char *name, uint64_t *ret_usec);

/* "*.damaged" */
bool store_is_damaged(const char *name);

/**
 * store_finishing_name() - ".NAME.finishing" of an archive name
 */
void store_finishing_name(const char *archive, char ret_name[STORE_NAME_SIZE]);

/**
 * store_list_finishing() - names of all ".….finishing" files, sorted
 * @ret: NULL-terminated, each and the array malloc'ed
 */
int store_list_finishing(int dir_fd, char ***ret);

/**
 * store_remove_unfinished() - remove what a process was making when it was killed
 * ".….new" and ".….dense": nobody has seen them, and all that is in them is elsewhere too.
 */
int store_remove_unfinished(int dir_fd);

/**
 * store_set_aside() - rename what is no trace of ours to "NAME-TIME.damaged"
 * @ret_name: the new name
 */
int store_set_aside(int dir_fd, const char *name, char ret_name[STORE_NAME_SIZE]);

uint64_t store_now_usec(void);

/**
 * store_pin() - keep a file from retention, or give it free again: extended attribute
 * user.flyrec.pinned
 * @fd: open for reading at least. Return: 0, -EOPNOTSUPP where the file system has none.
 */
int store_pin(int fd, bool pin);

/* Is a file of @dir_fd pinned? */
bool store_is_pinned(int dir_fd, const char *name);
