/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The FILE of verbs that read one trace.dat; "-" is standard input. Owner: the caller; main thread.
 */
#pragma once

#include "basic/fault.h"
#include "basic/new-file.h"

struct input {
	const char *name; /* for messages; borrowed */
	int fd;
	struct new_file spool; /* of what came through a pipe */
};

/**
 * input_open() - what comes through a pipe goes to a temporary file first: a trace.dat is not read
 * front to back
 * Return: 0, or negative errno with the story in @why and @input closed.
 */
int input_open(struct input *input, const char *path, struct fault *why);
void input_done(struct input *input);

/**
 * spool_open() - a temporary file in $TMPDIR, or /var/tmp, for what is too large for /tmp
 * Return: 0, or negative errno with the story in @why.
 */
int spool_open(struct new_file *spool, struct fault *why);
