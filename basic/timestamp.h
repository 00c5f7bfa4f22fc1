/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Points in time as people write them, after systemd.time(7):
 *
 *	2026-07-01 12:03:04.5   2026-07-01 12:03   2026-07-01   12:03:04   12:03
 *	now   today   yesterday   tomorrow   -5min   +1h   2h ago   @1782900000.25
 *	2026-07-01T12:03:04Z
 *
 * In local time, or with " UTC" behind. A day of the week may stand before a date and is not
 * checked. Any thread.
 */
#pragma once

#include "basic/macro.h"

/**
 * timestamp_parse() - to microseconds since the epoch
 * @now: what "now" and today mean, in the same unit
 * Return: 0, -EINVAL (not a time) or -ERANGE (before 1970 or out of range); @ret is untouched then.
 */
int timestamp_parse(const char *text, uint64_t now, uint64_t *ret);
