/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A snapshot in the making: ".NAME.new" until it is complete and on the disk, then NAME; or never
 * a name, if it is only read again and thrown away. What is given up leaves nothing behind. Any
 * thread, one a file.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

struct snapshot_file {
	int fd; /* for reading and writing */
	int dir_fd;
	const char *name;
	bool unfinished; /* its name is to be removed */
};

/**
 * snapshot_file_open() - an empty file
 * @dir_fd, @name: borrowed until snapshot_file_done()
 * Return: 0 or negative errno with @why set.
 */
int snapshot_file_open(struct snapshot_file *ret, int dir_fd, const char *name, struct fault *why);

/**
 * snapshot_file_publish() - sync, rename to NAME unless that exists (-EEXIST), sync the directory
 * Return: 0, or negative errno with @why set; done() removes it then, but for an error of the very
 * last step.
 */
int snapshot_file_publish(struct snapshot_file *file, struct fault *why);

/**
 * snapshot_file_take() - the descriptor of a file that shall never have a name
 * Return: it is the caller's now.
 */
int snapshot_file_take(struct snapshot_file *file);

void snapshot_file_done(struct snapshot_file *file);
