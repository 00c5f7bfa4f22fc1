/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The session's directory: its names and what they mean. Any thread.
 *
 *   current.dat                    the segment being written
 *   .current.dat.new               the next one in the making, without data
 *   .YYYYMMDDThhmmss.uuuuuuZ.dat.finishing   complete, on its way to its archive name
 *   YYYYMMDDThhmmss.uuuuuuZ.dat    finished
 *   .….finishing.dense           its dense copy in the making, where the file system reflinks
 *   .….dat.new                   a finished one's compressed copy in the making, or what it
 * replaced
 *   *.damaged                      what could not be made sense of; only retention removes it
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "basic/fault.h"

#define STORE_CURRENT	"current.dat"
#define STORE_NAME_SIZE 64

/**
 * store_new_name() - what a file called @name is called until it is complete: ".NAME.new"
 */
void store_new_name(const char *name, char ret[STORE_NAME_SIZE + 8]);

/**
 * store_create_new() - an empty file under that name, in the place of one that was given up
 * store_drop_new() - give it up
 * Return: an fd for reading and writing, or negative errno.
 */
int store_create_new(int dir_fd, const char *name);
void store_drop_new(int dir_fd, const char *name);

/**
 * store_publish_new() - give it its name
 * @replace: in the place of an existing one; else that is an error, -EEXIST
 */
int store_publish_new(int dir_fd, const char *name, bool replace);

/* A file in the making; what is given up leaves nothing behind */
struct store_file {
	int fd; /* for reading and writing */
	int dir_fd;
	const char *name;
	bool unfinished; /* ".NAME.new" is to be removed */
};

/**
 * store_file_open() - an empty file as ".NAME.new"
 * @dir_fd, @name: borrowed until store_file_done()
 * Return: 0 or negative errno with @why set.
 */
int store_file_open(struct store_file *ret, int dir_fd, const char *name, struct fault *why);

/**
 * store_file_publish() - sync, rename to NAME unless that exists (-EEXIST), sync the directory
 * Return: 0, or negative errno with @why set; done() removes it then, but for an error of the very
 * last step.
 */
int store_file_publish(struct store_file *file, struct fault *why);

void store_file_done(struct store_file *file);

/**
 * store_open_dir() - open a directory, made if it lacks (0750)
 * A symbolic link or a directory that belongs to another user or that others may write to is
 * refused.
 */
int store_open_dir(int dir_fd, const char *name, int *ret_fd, struct fault *why);

/**
 * store_archive_name() - "YYYYMMDDThhmmss.uuuuuuZ.dat", UTC, not yet taken in @dir_fd
 * @realtime_usec: of the first data; moved on by microseconds until the name is free
 * Segments sort in the order they were recorded: where one begins before the last one did (a CPU
 * had kept data back), though by less than a minute, which would be the clock's, it gets the next
 * name after that.
 */
int store_archive_name(int dir_fd, uint64_t realtime_usec, char ret_name[STORE_NAME_SIZE]);

/**
 * store_snapshot_name() - "YYYYMMDDThhmmss.uuuuuuZ-REASON.dat", not yet taken in @dir_fd
 * @realtime_usec: of the trigger
 */
int store_snapshot_name(int dir_fd, uint64_t realtime_usec, const char *reason,
			char ret_name[STORE_NAME_SIZE]);

/**
 * store_coresight_name() - "….coresight", the directory that goes with a snapshot "….dat"
 * It is kept and removed with that.
 */
void store_coresight_name(const char *snapshot, char ret_name[STORE_NAME_SIZE]);

/**
 * store_coresight_owner() - is it such a directory? @ret_snapshot: of this snapshot
 */
bool store_coresight_owner(const char *name, char ret_snapshot[STORE_NAME_SIZE]);

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
 * store_finished_name() - the archive name in a ".NAME.finishing", if it is one and not taken
 */
bool store_finished_name(int dir_fd, const char *finishing, char ret_name[STORE_NAME_SIZE]);

/**
 * store_list_finishing() - names of all ".….finishing" files, sorted
 * @ret: NULL-terminated, each and the array malloc'ed
 */
int store_list_finishing(int dir_fd, char ***ret);

/**
 * store_remove_unfinished() - files without anything of value that a killed process left:
 * ".….dat.new", ".….finishing.dense" and the directories ".….coresight.….new"
 */
void store_remove_unfinished(int dir_fd);

/* Are both names there, and of one file? */
bool store_same_file(int dir_fd, const char *name, const char *other);

/**
 * store_set_aside() - rename what is no trace of ours to "NAME-TIME.damaged"
 * @ret_name: the new name
 */
int store_set_aside(int dir_fd, const char *name, char ret_name[STORE_NAME_SIZE]);

/**
 * store_pin() - keep a file from retention, or give it free again: extended attribute
 * user.flyrec.pinned
 * @fd: open for reading at least. Return: 0, -EOPNOTSUPP where the file system has none.
 */
int store_pin(int fd, bool pin);

bool store_is_pinned(int fd);

/**
 * store_set_member() - a snapshot that a member of group flyrec has asked for, neither root nor one
 * of AdminGroup=: extended attribute user.flyrec.member_uid, which is that user's number
 * Retention lets such snapshots have a part of the room only. @fd and return as store_pin().
 */
int store_set_member(int fd, uid_t uid);

bool store_is_members(int fd);

/**
 * store_set_rank() - of a snapshot, how much it is worth: retention_rank(), extended attribute
 * user.flyrec.rank. @fd and return as store_pin().
 */
int store_set_rank(int fd, unsigned rank);

/* Without the attribute the highest */
unsigned store_rank(int fd, unsigned highest);

#define STORE_IDS_MAX 16 /* of one snapshot */

/**
 * store_add_id() - of a snapshot, what its moment is known by on other hosts (formats/own-cause.h):
 * extended attribute user.flyrec.id, all of them with blanks between
 * For one at a time: reads, and writes. @fd as store_pin(). Return: 1; 0: it has it already;
 * -ENOSPC: it has STORE_IDS_MAX; or another negative errno.
 */
int store_add_id(int fd, const char *id);

/**
 * store_find_id() - the newest snapshot in a directory that has this id
 * @ret_name: of the file
 * Return: 0, -ENOENT, or another negative errno.
 */
int store_find_id(int dir_fd, const char *id, char ret_name[STORE_NAME_SIZE]);

/**
 * store_set_raw_bytes() - of a compressed file, its bytes on the disk before: extended attribute
 * user.flyrec.raw_bytes. @fd and return as store_pin().
 */
int store_set_raw_bytes(int fd, uint64_t bytes);

/* 0: it has none, so that nobody has compressed it, or it cannot be told */
uint64_t store_raw_bytes(int fd);

/**
 * store_copy_attributes() - all extended attributes of users, and access lists, to another file
 * Return: 0, also where there are none, or negative errno.
 */
int store_copy_attributes(int from_fd, int to_fd);

/* Does the file system of this file or directory have extended attributes? */
bool store_takes_attributes(int fd);
