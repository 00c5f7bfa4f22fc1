/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which events were not recorded for a while, as tracing cost too much (MaxOverhead=), in flyrec's
 * own section of a trace.dat: lines of text. Columns are separated by tabs:
 *
 *   FROM TO SYSTEM:NAME\n
 *
 * Decimal numbers, by the clock of the file's sub-buffers; TO: UINT64_MAX, it still is not recorded
 * where the file ends. FROM may be before the file begins.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "basic/macro.h"

#define OWN_SHED_ROOM (8 * KIB) /* for a hundred of them */

struct own_shed {
	char *event; /* "SYSTEM:NAME" */
	uint64_t from, to;
};

struct own_sheds {
	struct own_shed *list;
	size_t n;
};

void own_sheds_done(struct own_sheds *sheds);
#define _cleanup_own_sheds_ _cleanup_(own_sheds_done)

/**
 * own_sheds_add() - one more, or what is known now of one that has begun at the same time
 * Return: 0 or -ENOMEM.
 */
int own_sheds_add(struct own_sheds *sheds, const char *event, uint64_t from, uint64_t to);

/**
 * own_sheds_add_all() - all of others
 */
int own_sheds_add_all(struct own_sheds *sheds, const struct own_sheds *others);

/**
 * own_sheds_trim() - forget the oldest, so that there are no more than @n
 */
void own_sheds_trim(struct own_sheds *sheds, size_t n);

/**
 * own_sheds_end() - those that went on end here
 */
void own_sheds_end(struct own_sheds *sheds, uint64_t to);

/**
 * own_sheds_put() - as lines
 * @room: if they do not fit, all times of an event become one; what does not fit then is left out
 * @ret: malloc'ed; @ret_size: 0: there are none
 * Return: 0 or -ENOMEM.
 */
int own_sheds_put(const struct own_sheds *sheds, size_t room, char **ret, size_t *ret_size);

/**
 * own_sheds_take() - add those of lines
 * @on_bad: of a line that makes no sense, with the offset at which it begins; NULL: they are
 * ignored
 * Return: 0 or -ENOMEM.
 */
int own_sheds_take(struct own_sheds *sheds, const uint8_t *bytes, size_t size,
		   void (*on_bad)(void *userdata, size_t at), void *userdata);
