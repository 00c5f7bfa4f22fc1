/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecctl gives up before it reads a file that others made, so that who takes it over by one
 * has nothing: rights from programs, files (Landlock), system calls (seccomp), root. What the
 * kernel lacks is left out. Threads inherit it: before there are any. Main thread.
 */
#pragma once

#include "basic/confine.h"
#include "ctl/ctl.h"

/**
 * ctl_confine() - read and write what is open, and no more; as nobody, if we were root
 * The time zone is loaded before; for plugins_open() the caller has to see.
 * Return: 0 or negative errno, logged.
 */
int ctl_confine(void);

/**
 * ctl_confined() - run a function in a process of its own that calls ctl_confine()
 * @name: of the file it reads, for messages
 * @but: NULL, or a directory whose files it may open, as the user that we were
 * Standard output is flushed before and behind it.
 * Return: what @run returned, 0 to 127; negative errno if it could not be run or has died, logged.
 */
int ctl_confined(const char *name, const char *but, int (*run)(void *userdata), void *userdata);

/**
 * ctl_confine_writer() - ctl_confine() for who makes @output and temporary files, and opens all
 * below @read, or nothing, as the user that we were
 */
int ctl_confine_writer(const char *output, const char *read);
