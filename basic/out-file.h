/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --output=FILE of all verbs: "-" and nothing are standard output, a pipe or a device is written to
 * as it is, and a file appears, or takes the place of an older one, when it is complete. Only its
 * owner may read it, like the recordings that it was made of. Owner: the caller; one thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "basic/new-file.h"

struct out_file {
	const char *path; /* for messages; borrowed */
	int fd;		  /* OUT_FILE_NEW that is not open yet: -EBADF */
	struct new_file file;
	enum {
		OUT_FILE_STANDARD,
		OUT_FILE_EXISTING, /* a pipe or a device */
		OUT_FILE_NEW,
	} kind;
};

#define OUT_FILE_MODE 0600

enum {
	OUT_FILE_BINARY = 1, /* refuse a terminal */
};

/**
 * out_file_is_standard() - is this --output=, maybe NULL, standard output?
 */
bool out_file_is_standard(const char *path);

/**
 * out_file_choose() - what is to be written to, without creating a file
 * @path: --output=, may be NULL
 * @in_fd: the file that is read, which is refused; or -EBADF
 * @verb: for "the file to VERB"
 * Return: 0 or negative errno with the story in @why.
 */
int out_file_choose(struct out_file *out, const char *path, int in_fd, const char *verb,
		    unsigned flags, struct fault *why);

/**
 * out_file_open() - likewise, and begin the file
 */
int out_file_open(struct out_file *out, const char *path, int in_fd, const char *verb,
		  unsigned flags, struct fault *why);

enum {
	OUT_FILE_E_PIPE = 1, /* whoever read the output has gone */
};

/**
 * out_file_write() - all of it, to the descriptor of an output
 * Return: 0, OUT_FILE_E_PIPE, or negative errno with the story in @why.
 */
int out_file_write(int fd, const void *bytes, size_t size, struct fault *why);

/**
 * out_file_publish() - all is written
 */
int out_file_publish(struct out_file *out, struct fault *why);

/**
 * out_file_done() - close; what was not published is gone
 */
void out_file_done(struct out_file *out);
