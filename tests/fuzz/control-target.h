/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control server alone, with sessions that are only configured, for bytes from anywhere: no
 * socket of its own, no tracefs, an empty state directory.
 */
#pragma once

#include "basic/macro.h"

/**
 * control_target_feed() - a peer connects, sends @bytes after its greeting, reads, hangs up
 * The first byte says who it is: an odd number root, else a member of group flyrec or nobody.
 * Return: bytes that were answered.
 */
size_t control_target_feed(const uint8_t *bytes, size_t size);

/* Free everything, so that leaks show */
void control_target_done(void);
