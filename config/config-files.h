/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which files make up the configuration: overriding, drop-ins and masks, as in systemd. A list of
 * directories is NULL-terminated, the first one wins; a directory that is not there is empty.
 * Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

/**
 * config_files_list() - the names in the directories that end in @suffix, each once, sorted
 * Hidden files are left out, masked ones are not.
 * Return: 0, -ENOMEM, or the errno of a directory that cannot be read, with @why; @ret_dir is then
 * its path, malloc'ed.
 */
int config_files_list(const char *const *dirs, const char *suffix, char ***ret, char **ret_dir,
		      struct fault *why);

/**
 * config_files_find() - the file of this name that counts
 * @ret: its path, malloc'ed; NULL where no directory has it or it is masked
 * @ret_masked: it is a link to /dev/null; may be NULL
 * Return: 0 or -ENOMEM.
 */
int config_files_find(const char *const *dirs, const char *name, char **ret, bool *ret_masked);

/**
 * config_files_read() - a whole file
 * Only regular files, so that a FIFO cannot hang the daemon.
 * Return: 0, or negative errno with the reason in @why.
 */
int config_files_read(const char *path, char **ret, size_t *ret_size, struct fault *why);
