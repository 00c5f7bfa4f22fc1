/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * -H: the verb runs on the other machine, by ssh, and its output comes here. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

/**
 * remote_run() - run flyrecctl on ctl->host with the same options, as if it were here: it is told
 * of our terminal and time zone
 * @argv: the verb and its arguments, NULL-terminated
 * @out_fd: gets its standard output; stays the caller's
 * Return: its exit status, as far as flyrecctl has such ones; it has said on stderr what went
 * wrong.
 */
enum ctl_status remote_run(const struct ctl *ctl, char *const *argv, int out_fd);
