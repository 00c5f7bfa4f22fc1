/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finished snapshots are announced on a socket in the runtime directory, if somebody listens
 * there: flyrec-shipping.socket, which starts a unit with the file's path. The daemon has not the
 * rights to start units itself, and needs none for this. Main thread.
 */
#pragma once

#include "basic/macro.h"

/**
 * ship() - tell that a file is there
 * @runtime_dir: the socket is "ship" in it
 * @path: of the file
 * Never waits.
 * Return: 0; -ENOENT when nobody wants to know; or negative errno.
 */
int ship(const char *runtime_dir, const char *path);
