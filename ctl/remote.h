/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verbs whose descriptors do not go through ssh run over there, and their output comes here. Main
 * thread.
 */
#pragma once

#include "ctl/ctl.h"

/**
 * remote_quoted() - one word for the shell at the other end
 * Return: malloc'ed, NULL without memory.
 */
char *remote_quoted(const char *word);

/**
 * remote_run() - run flyrecctl on ctl->host
 * @words: behind "flyrecctl --runtime-dir DIR", NULL-terminated; the first one is the verb
 * @out_fd: gets its standard output; stays the caller's
 * Return: its exit status, as far as flyrecctl has such ones; it has said on stderr what went
 * wrong.
 */
enum ctl_status remote_run(const struct ctl *ctl, const char *const *words, int out_fd);
