/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What flyrecd tells of a trigger, lines KEY=VALUE in a datagram: see flyrecd(8). Pure functions,
 * any thread.
 */
#pragma once

#include <stddef.h>

#include "fleet/message.h"

/**
 * notice_read() - make a message of it
 * @config: Host=, and BeforeSec= for a window that has no beginning
 * @ret: its host is Host=
 * Return: 0, or -EBADMSG with @why.
 */
int notice_read(const struct fleet_config *config, const char *bytes, size_t size,
		struct message *ret, struct fault *why);
