/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the configuration says becomes sessions: at the start, at a reload, and when somebody starts
 * one by hand. Main thread.
 */
#pragma once

#include "daemon/manager/daemon.h"

/**
 * daemon_read_config() - at the start: what is wrong with it is logged, what is right counts
 * Return: 0 or negative errno; it has been logged.
 */
int daemon_read_config(struct daemon *daemon);

/**
 * daemon_apply_config() - stop what is not wanted, start or change what is
 */
void daemon_apply_config(struct daemon *daemon);

/* Is the session enabled? */
bool daemon_wants(const struct daemon *daemon, const char *name);

/**
 * daemon_take_up_orphans() - sessions that an earlier process left in the kernel, and nobody wants
 * any more
 */
void daemon_take_up_orphans(struct daemon *daemon);

/**
 * daemon_reload_asked() - daemon_reload(), as soon as all sessions have got somewhere
 */
void daemon_reload_asked(struct daemon *daemon);

/**
 * daemon_start_session() - start what is configured, enabled or not
 * Return: 0 or negative errno with @why set. Whether it records in the end is told later.
 */
int daemon_start_session(struct daemon *daemon, const char *name, struct fault *why);

/**
 * daemon_reload() - read the configuration again, and do as it says
 * @ret_complaints: what is wrong with it, a line each, "" if nothing is; malloc'ed
 * Return: 0: it is being applied, control_reloaded() is called when that is done; -EINVAL: it has
 * errors, the old one stays; -EBUSY: starting or stopping.
 */
int daemon_reload(struct daemon *daemon, char **ret_complaints);

/**
 * daemon_refresh_config() - one session's files have been written: only those are read again
 * What it does now stays.
 * Return: 0 or negative errno with @why.
 */
int daemon_refresh_config(struct daemon *daemon, const char *name, struct fault *why);
