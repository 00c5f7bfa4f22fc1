/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection to flyrecd: its control socket here, or through ssh to another machine's. What
 * fails is said on stderr, once. Main thread.
 */
#pragma once

#include <systemd/sd-bus.h>

#include "basic/macro.h"
#include "ctl/ctl.h"

#define BUS_PATH	 "/org/flyrec/Recorder1"
#define BUS_SESSION_PATH BUS_PATH "/session"
#define BUS_MANAGER	 "org.flyrec.Recorder1.Manager"
#define BUS_SESSION	 "org.flyrec.Recorder1.Session"

/**
 * bus_connect() - to the daemon that the options name; again for a while where one ends meanwhile
 * @verb: for the message
 * Return: 0, or negative errno after a line on stderr.
 */
int bus_connect(const struct ctl *ctl, const char *verb, sd_bus **ret);

/**
 * bus_open() - the same without a word
 */
int bus_open(const struct ctl *ctl, sd_bus **ret);

/**
 * bus_call() - call a method and wait for the answer, however long it takes
 * @ret: NULL: not wanted
 * @types: of the arguments, as sd_bus_message_append()
 * Return: 0, or negative errno after a line on stderr.
 */
int bus_call(sd_bus *bus, const char *verb, const char *path, const char *interface,
	     const char *member, sd_bus_message **ret, const char *types, ...);

/**
 * bus_call_message() - the same with a call made by sd_bus_message_new_method_call()
 * The line names the session whose object is called.
 */
int bus_call_message(sd_bus *bus, const char *verb, sd_bus_message *call, sd_bus_message **ret);

/**
 * bus_call_snapshot() - likewise, for a call that makes one
 * Return: also -ENODATA, without a line: nothing was recorded in that time.
 */
int bus_call_snapshot(sd_bus *bus, const char *verb, sd_bus_message *call, sd_bus_message **ret);

/**
 * bus_bad_answer() - the line for an answer that cannot be read: daemon and client differ
 * Return: @error.
 */
int bus_bad_answer(const char *verb, int error);

/**
 * bus_find_session() - the object of a session, asked of the daemon, which says what might have
 * been meant
 * @ret: malloc'ed; NULL: not wanted
 * Return: as bus_call().
 */
int bus_find_session(sd_bus *bus, const char *verb, const char *name, char **ret);

/**
 * bus_open_file() - a recording of a session
 * Return: an fd, which is the caller's; or as bus_call().
 */
int bus_open_file(sd_bus *bus, const char *verb, const char *session, const char *path);

/**
 * bus_ssh_address() - a D-Bus address that runs flyrecctl at the other end of ssh
 * @runtime_dir: of the daemon there; NULL: the usual
 * Return: malloc'ed, or NULL. Pure function.
 */
char *bus_ssh_address(const char *host, const char *runtime_dir);

#define _cleanup_bus_	  _cleanup_(sd_bus_close_unrefp)
#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)
