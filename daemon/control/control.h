/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket RUNTIME/control: D-Bus without a bus daemon between (sd-bus peer-to-peer), and
 * the same objects on the system bus as org.flyrec.Recorder1 where there is one. Nothing here
 * waits: what takes time answers when it is done. Owner: the daemon. Main thread.
 *
 *   control.c          listening, peers, signals to them
 *   control-relay.c    what a peer sends, limited
 *   control-access.c   who may do what
 *   control-bus.c      org.freedesktop.DBus, as a bus daemon would answer
 *   control-system.c   the system bus
 *   control-request.c  calls that are answered later
 *   control-manager.c, control-session.c   the interfaces; org.flyrec.Recorder1(5)
 *   control-change.c   changes of events, kept or not
 *   control-files.c    files: jobs
 */
#pragma once

#include "daemon/manager/daemon.h"

#define CONTROL_SOCKET "control"

/**
 * control_new() - listen: on the socket that the service manager passed under the name "control"
 * (or "flyrecd.socket"), else on RUNTIME/control; join the system bus Return: 0 or negative errno;
 * faults have been logged.
 */
int control_new(struct daemon *daemon, struct control **ret);

/* Hangs up on everyone, removes the socket. NULL is fine, here and below. */
void control_free(struct control *control);

/* AdminGroup= may have changed */
void control_configure(struct control *control);

/* Something in its properties is different */
void control_session_changed(struct control *control, const char *name);
/* There is an object for each session that runs, or is only configured: the first of the two has
 * come, or the last has gone */
void control_session_added(struct control *control, const char *name);
void control_session_removed(struct control *control, const char *name);
void control_segment_finished(struct control *control, const char *name, const char *path);

void control_snapshot_finished(struct control *control, const char *name, const char *path);

/* Starting or a reload is over: every session has got somewhere */
void control_reloaded(struct control *control);

/**
 * control_add_peer() - serve a connected socket
 * @fd: consumed, also on error
 * Return: 0 or negative errno.
 */
int control_add_peer(struct control *control, int fd);

/**
 * control_new_unbound() - without a socket of its own and without the system bus (fuzzer)
 */
int control_new_unbound(struct daemon *daemon, struct control **ret);

DEFINE_CLEANUP(struct control *, control_free)
