/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text to values, as systemd reads them: sizes, time spans, booleans, numbers, CPU lists. The whole
 * string must be the value; white space around it is fine, anything else after it is not.
 * No state, any thread.
 *
 * All return 0, -EINVAL (not such a value) or -ERANGE (too large); outputs are untouched on
 * failure.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

#define CPU_LIST_MAX 8192 /* the largest CONFIG_NR_CPUS of any kernel */

struct cpu_list {
	uint64_t bits[CPU_LIST_MAX / 64];
};

/**
 * parse_u64() - a decimal number, no sign
 */
int parse_u64(const char *text, uint64_t *ret);
int parse_unsigned(const char *text, unsigned *ret);

/**
 * parse_size() - "512", "64K", "1.5G": bytes; K M G T are powers of 1024, B is 1
 */
int parse_size(const char *text, uint64_t *ret_bytes);

/**
 * parse_time() - a time span of systemd.time(7): "5s", "1h 30min", "90" (seconds), "1.5d"
 * All its units, "usec" to "years".
 */
int parse_time(const char *text, uint64_t *ret_usec);

/**
 * parse_bool() - 1 yes y true t on, 0 no n false f off; the case of letters does not matter
 */
int parse_bool(const char *text, bool *ret);

/**
 * parse_percent() - "25" or "25%", 0 to 100
 */
int parse_percent(const char *text, unsigned *ret);

/**
 * parse_cpu_list() - "0-3,8" or "0-3 8" to a set of CPU numbers; at least one
 */
int parse_cpu_list(const char *text, struct cpu_list *ret);

/**
 * cpu_list_has() - is @cpu in it?
 */
bool cpu_list_has(const struct cpu_list *list, unsigned cpu);

/**
 * cpu_list_add() - @cpu: below CPU_LIST_MAX
 */
void cpu_list_add(struct cpu_list *list, unsigned cpu);

/**
 * cpu_list_format() - the shortest "0-3,8" that means the same
 * @ret: malloc'ed
 * Return: 0 or -ENOMEM.
 */
int cpu_list_format(const struct cpu_list *list, char **ret);
