/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecd gives up at its start, so that a flyrecd that was taken over has as little as can
 *be:
 *
 *	real, effective, saved user ID    user "flyrecd": to sockets, signals, ptrace(2) it is
 *nobody user ID for file systems          root: tracefs and the recordings are root's group
 *"flyrec" capabilities                      of those that it was given, the ones that it uses files
 *by Landlock what it uses, see basic/confine.h
 *
 * Without CAP_SETUID no system call gives the root of the file systems any more rights: an ID can
 *only become one of the other three, and capabilities come with none of them. Main thread, before
 *there are others, which inherit all this.
 */
#pragma once

struct manager_options;

/**
 * privileges_drop() - become user flyrecd, if we are root and there is one, and confine ourselves
 *
 * By hand, where there is no such user, it stays root; as another user than root, that one.
 * Return: 0 or negative errno, which has been logged: then it must not go on.
 */
int privileges_drop(const struct manager_options *options);
