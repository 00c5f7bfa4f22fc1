/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls of flyrecd through its control socket, to which the first call connects. What fails is said
 * on stderr, once. Main thread.
 */
#pragma once

#include <errno.h>

#include <systemd/sd-bus.h>

#include "basic/fault.h"
#include "basic/macro.h"
#include "ctl/ctl.h"

#define BUS_SESSION "org.flyrec.Recorder1.Session"

/* What calls return for errors of flyrecd's that verbs act on */
enum {
	BUS_E_NOT_RECORDING = -ENOLINK,
	BUS_E_NO_SUCH_SESSION = -ENODEV,
	BUS_E_NOTHING_RECORDED = -ENODATA,
	BUS_E_NOT_FOUND = -ENOENT,
};

/**
 * bus_call() - call a method and wait for the answer, however long it takes
 * @session: whose method it is, asked of the daemon, which says what might have been meant; NULL:
 * the daemon's own
 * @ret: NULL: not wanted
 * @types: of the arguments, as sd_bus_message_append(); "as" at the beginning is a char **
 * Return: 0, or negative errno after a line on stderr, which names the session; but without one for
 * a session's BUS_E_NOTHING_RECORDED.
 */
int bus_call(struct ctl *ctl, const char *session, const char *member, sd_bus_message **ret,
	     const char *types, ...);

/* A call that is under way */
struct bus_pending {
	struct ctl *ctl;
	char *path;
	sd_bus_slot *slot;
	sd_bus_message *reply; /* NULL: not yet */
};

/**
 * bus_begin() - as bus_call(), of a session, without waiting
 * @ret: stays where it is until bus_pending_done()
 */
int bus_begin(struct ctl *ctl, const char *session, const char *member, struct bus_pending *ret,
	      const char *types, ...);

/**
 * bus_await() - wait for its answer, which is in @pending->reply; others may come meanwhile
 * Return: as bus_call().
 */
int bus_await(struct bus_pending *pending);

void bus_pending_done(struct bus_pending *pending);

/**
 * bus_call_fd() - the same for a method that gives a descriptor
 * @why: gets the story instead of stderr; NULL: there
 * Return: an fd, which is the caller's; or as bus_call().
 */
int bus_call_fd(struct ctl *ctl, struct fault *why, const char *session, const char *member,
		const char *types, ...);

/**
 * bus_ask() - call a method of the daemon that changes nothing and takes no arguments
 * @why: gets the story instead of stderr
 * Return: as bus_call().
 */
int bus_ask(struct ctl *ctl, struct fault *why, const char *member, sd_bus_message **ret);

/**
 * bus_get_properties() - a{sv} of a session, or of the daemon
 */
int bus_get_properties(struct ctl *ctl, const char *session, sd_bus_message **ret);

/**
 * bus_get_objects() - a{oa{sa{sv}}} of all sessions
 */
int bus_get_objects(struct ctl *ctl, sd_bus_message **ret);

/**
 * bus_find_session() - the object of a session
 * @ret: malloc'ed; NULL: not wanted
 * Return: as bus_call().
 */
int bus_find_session(struct ctl *ctl, const char *name, char **ret);

/**
 * bus_bad_answer() - the line for an answer that cannot be read: daemon and client differ
 * Return: @error.
 */
int bus_bad_answer(const struct ctl *ctl, int error);

/**
 * bus_read() - values of an answer, as sd_bus_message_read(); says what is wrong with it
 */
int bus_read(const struct ctl *ctl, sd_bus_message *reply, const char *types, ...);

/**
 * bus_close() - the next call connects anew
 */
void bus_close(struct ctl *ctl);

#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)
