/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The receiving side of sd_notify(3), as a service manager has it: a datagram socket that takes
 * messages of "KEY=VALUE" lines together with file descriptors and the sender's pid.
 */
#pragma once

#include <sys/types.h>

#define NOTIFY_MAX_FDS 253 /* SCM_MAX_FD */

struct notify_message {
	pid_t pid;
	char text[8192]; /* NUL-terminated */
	int fds[NOTIFY_MAX_FDS];
	unsigned int n_fds;
};

/**
 * notify_bind() - make the socket; an old one of that name is replaced
 * Return: fd; ends the program on errors.
 */
int notify_bind(const char *path);

/**
 * notify_receive() - take one message, without waiting
 * @ret_message: its fds are the caller's, close-on-exec
 * Return: 1, 0 if there is none.
 */
int notify_receive(int fd, struct notify_message *ret_message);

/**
 * notify_close_fds() - close those that a message brought
 */
void notify_close_fds(struct notify_message *message);
