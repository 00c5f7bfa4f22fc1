/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of tasks of several hosts, where a trace.dat has one name a pid: whoever has events
 * counts, and a pid that is another task on another host has the names of both, as in "nginx|sshd",
 * in the order of the hosts; "<...>" is a task without a name. So no reader takes the one for the
 * other. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "basic/macro.h"

struct merge_names;

struct merge_names *merge_names_new(void);
struct merge_names *merge_names_free(struct merge_names *names);
DEFINE_CLEANUP(struct merge_names *, merge_names_free)

/**
 * merge_names_add() - of one more file
 * @host: whose it is; files of a host come one behind the other
 * @text: "PID NAME\n" lines; the last one of a pid counts
 * @pids: a bit for each that has events, SUBBUF_MOVE_PIDS of them
 * Return: 0 or -ENOMEM.
 */
int merge_names_add(struct merge_names *names, unsigned host, const char *text,
		    const uint8_t *pids);

/**
 * merge_names_put() - as in a file
 * @room: bytes; names that do not fit are left out
 * @ret: malloc'ed, @room bytes: newlines behind the last
 * @ret_shared: pids that have several names
 * Return: 0 or -ENOMEM.
 */
int merge_names_put(struct merge_names *names, size_t room, char **ret, size_t *ret_shared);
