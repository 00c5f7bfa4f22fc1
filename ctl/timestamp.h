/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Points in time as systemd.time(7) has them, in local time. Pure function.
 */
#pragma once

#include "basic/macro.h"

/**
 * parse_timestamp() - "2026-01-31 12:34:56.5", "2026-01-31", "12:34", "now", "today", "yesterday",
 * "tomorrow", "-5min", "5min ago", "+5min", "@1769862896"
 * @now_usec: realtime
 * Return: 0, -EINVAL or -ERANGE.
 */
int parse_timestamp(const char *text, uint64_t now_usec, uint64_t *ret_usec);
