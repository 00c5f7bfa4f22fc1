/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finished snapshots, and triggers, are announced on sockets in the runtime directory, if somebody
 * listens there. Of files that is flyrec-shipping.socket, which starts a unit with the file's path:
 * the daemon has not the rights to start units itself, and needs none for this. Of triggers it is
 * who asks other hosts for the same moment. Main thread.
 */
#pragma once

#include "basic/macro.h"

/**
 * ship() - tell that a file is there
 * @runtime_dir: the socket is "ship" in it
 * @path: of the file
 * @finding: the worst thing in it, a line; "": unknown
 * @id: of its moment (formats/own-cause.h); "": it has none
 * Never waits.
 * Return: 0; -ENOENT when nobody wants to know; or negative errno.
 */
int ship(const char *runtime_dir, const char *path, const char *finding, const char *id);

/* A trigger that has its snapshot taken: of this window, unless there is less */
struct ship_notice {
	const char *id, *reason, *session;
	const char *cause; /* as the configuration says it, and */
	const char *text;  /* what is known of it, or ""; may have any bytes */
	uint64_t trigger_usec, since_usec, until_usec; /* realtime */
};

/**
 * ship_trigger() - tell that the moment is being kept here, as one datagram of lines KEY=VALUE
 * Never waits. Return: as ship(); -EAGAIN: who listens does not read.
 */
int ship_trigger(const char *runtime_dir, const struct ship_notice *notice);
