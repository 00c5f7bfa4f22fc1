/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the daemon tells a tail, see formats/tail-message.h. Main thread.
 */
#pragma once

#include "basic/fault.h"
#include "ctl/bus.h"
#include "formats/tail-message.h"

/**
 * tail_stream_open() - call OpenTail
 * @ret_name: the error's D-Bus name, malloc'ed, if the daemon refused; else NULL
 * Return: 0, or negative errno with the story in @why.
 */
int tail_stream_open(sd_bus *bus, const char *session, int *ret_fd, char **ret_name,
		     struct fault *why);

/**
 * tail_stream_receive() - the next message
 * @ret_fd: what came with it, -EBADF: nothing
 * Return: 1, 0 none now, -ECONNRESET the daemon has hung up, or negative errno.
 */
int tail_stream_receive(int fd, struct tail_message **ret, int *ret_fd);

/**
 * tail_stream_arrived() - tell the daemon that the segment it told of last is being read
 */
void tail_stream_arrived(int fd);
