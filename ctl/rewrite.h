/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace.dat written anew as another version, by a process without rights: for convert and cat.
 * Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rewrite {
	const char *name; /* of the input, for messages */
	int in_fd, out_fd;
	int spool_fd;	  /* -EBADF; or a file to write to first, as out_fd is a pipe */
	unsigned version; /* 6 or 7 */
	bool compress;	  /* version 7: with zstd */
	void (*progress)(uint64_t done, uint64_t total); /* in that process; version 6; or NULL */
};

enum {
	REWRITE_E_DAMAGED = 1, /* all that can be read is written; what cannot has been logged */
};

/**
 * rewrite_file() - version 6 front to back, 7 into a file alone
 * Return: 0, REWRITE_E_DAMAGED, or negative errno, logged.
 */
int rewrite_file(const struct rewrite *rewrite);
