/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When a finished file's data began and ended, by a clock that nobody can set: time since boot,
 * suspended time included, in an extended attribute beside the boot's id. Names and modification
 * times are of the wall clock, which may have been a day off then. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/**
 * file_age_offset_usec() - what the wall clock is ahead of the time since boot, as it is set now
 */
int64_t file_age_offset_usec(void);

/**
 * file_age_note() - @begin_usec, @end_usec: since boot
 * Where there are no extended attributes nothing is noted, which costs no more than exactness.
 */
void file_age_note(int dir_fd, const char *name, int64_t begin_usec, uint64_t end_usec);

/**
 * file_age_read() - as the wall clock would have had it if it had always been set as it is now
 * @fd: the file, open for reading
 * @offset_usec: file_age_offset_usec(), the same for all that is compared: it may be set meanwhile
 * Return: false, and nothing is changed, unless it was noted since this machine was booted, and
 * nobody has changed the modification time since.
 */
bool file_age_read(int fd, int64_t offset_usec, uint64_t *begin_usec, uint64_t *end_usec);
