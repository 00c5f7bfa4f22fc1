/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A temporary directory for a test, and small files in it. Fails the test when something does not
 * work.
 */
#pragma once

#include <stddef.h>

struct tmp {
	char path[64];
	int fd;
};

/* Made below $TMPDIR or /tmp; tmp_done() removes it with all that is in it */
void tmp_init(struct tmp *tmp);
void tmp_done(struct tmp *tmp);

/* Write a whole file; directories on the way are made */
void tmp_write(struct tmp *tmp, const char *path, const char *text);
void tmp_write_bytes(struct tmp *tmp, const char *path, const void *data, size_t size);

/* How many names there are in it, hidden ones too */
unsigned tmp_count(const struct tmp *tmp);
