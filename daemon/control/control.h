/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket RUNTIME/control: D-Bus without a bus daemon between (sd-bus peer-to-peer), and
 * the same objects on the system bus as org.flyrec.Recorder1 where there is one. Nothing here
 * waits: what takes time answers when it is done. Owner: the daemon. Main thread.
 *
 *   control.c          listening, signals to peers
 *   control-peer.c     peers, a connection each; org.freedesktop.DBus, as a bus daemon would answer
 *   control-relay.c    what a peer sends, limited
 *   control-access.c   who may do what
 *   control-system.c   the system bus
 *   control-request.c  calls that are answered later, jobs among them
 *   control-manager.c, control-session.c   the interfaces; org.flyrec.Recorder1(5)
 *   control-change.c   changes of events, kept or not
 *   control-files.c    files: jobs
 */
#pragma once

#include "daemon/manager/manager.h"

struct control;

#define CONTROL_SOCKET "control"

/**
 * control_new() - listen: on the socket that the service manager passed under the name "control"
 * (or "flyrecd.socket"), else on RUNTIME/control; join the system bus; tell clients what the
 * manager tells
 * Return: 0 or negative errno; faults have been logged.
 */
int control_new(struct manager *manager, struct control **ret);

/* Hangs up on everyone, removes the socket. NULL is fine. */
void control_free(struct control *control);

/**
 * control_add_peer() - serve a connected socket
 * @fd: consumed, also on error
 * Return: 0 or negative errno.
 */
int control_add_peer(struct control *control, int fd);

/**
 * control_new_unbound() - without a socket of its own and without the system bus (fuzzer)
 */
int control_new_unbound(struct manager *manager, struct control **ret);

DEFINE_CLEANUP(struct control *, control_free)
