/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecd gives up at its start, so that whoever takes it over gets as little as possible:
 *
 *	user IDs          "flyrecd": what sockets, signals and ptrace(2) go by
 *	file system ID    root: tracefs and the recordings are root's
 *	group             "flyrec"
 *	capabilities      of those that it was given, the ones that it uses
 *	files             what it uses, by Landlock, see basic/confine.h
 *
 * Without CAP_SETUID no system call gives the root of the file systems any more rights: an ID can
 *only become one of the other three, and capabilities come with none of them. Main thread, before
 *there are others, which inherit all this.
 */
#pragma once

struct daemon_config;
struct manager_options;

/**
 * privileges_drop() - become user flyrecd, if we are root and there is one, and confine ourselves
 * @config: as it is now: programs that it probes can be read from now on
 *
 * By hand, where there is no such user, it stays root; as another user than root, that one.
 * Return: 0 or negative errno, which has been logged: then it must not go on.
 */
int privileges_drop(const struct manager_options *options, const struct daemon_config *config);
