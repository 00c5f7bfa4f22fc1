/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that appears under its name only when it is complete. Any thread.
 */
#pragma once

#include <sys/types.h>

#include "basic/macro.h"

struct new_file {
	int fd;
	char *path;
	char *temporary; /* has that name until it is complete; NULL: none yet */
};

/**
 * new_file_open() - begin a file
 * @mode: its permission bits, less the umask
 * Without a name where the file system can do that (O_TMPFILE), so that nothing is left behind
 * however we end; else under a name that begins with a dot. Return: 0 or negative errno.
 */
int new_file_open(struct new_file *file, const char *path, mode_t mode);

/**
 * new_file_publish() - give it its name, in the place of a file that has it
 */
int new_file_publish(struct new_file *file);

/**
 * new_file_done() - close; what was not published is gone
 */
void new_file_done(struct new_file *file);
