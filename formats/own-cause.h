/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a snapshot was taken for, in flyrec's own section of a trace.dat: the trigger, and others
 * that came while it was made or soon after.
 *
 *   { size:u32 (of all of it, a multiple of 16) checksum:u32 (of what follows) usec:u64 (realtime)
 *     reason\0 text\0 zeros }*
 *
 * A trigger, and whoever asks for the same moment of several hosts, has an id: a line "id: ID" of
 * the text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/fault.h"

#define OWN_ID_MAX 96

struct trace_dat;

struct own_cause {
	uint64_t usec;	    /* of the trigger, realtime */
	const char *reason; /* its word: "signal", "event" … */
	const char *text;   /* lines, maybe none */
};

/**
 * own_cause_put() - as in the file
 * @ret: malloc'ed
 * Return: 0 or -ENOMEM.
 */
int own_cause_put(const struct own_cause *cause, bool big_endian, uint8_t **ret, size_t *ret_size);

/**
 * own_cause_take() - the next one
 * @bytes: @size of them, of an entry, with a NUL byte behind
 * @at: where it begins, moved behind it; of one that is damaged behind that, if it says where
 * @ret: into @bytes
 * Return: 1, 0 there are no more, or -EBADMSG.
 */
int own_cause_take(const uint8_t *bytes, size_t size, bool big_endian, size_t *at,
		   struct own_cause *ret);

/**
 * own_cause_add() - one more to those of a snapshot, in place and synced
 * @dat: of a file that is open for writing, too
 * Return: 0; -ENOENT: it has no room for causes; -ENOSPC: no more room; or another negative errno
 * with @why.
 */
int own_cause_add(const struct trace_dat *dat, const struct own_cause *cause, struct fault *why);

/**
 * own_id_valid() - can this be an id? 1 to OWN_ID_MAX of A-Z, a-z, 0-9, ".", "_", ":" and "-", the
 * first one a letter or digit
 */
bool own_id_valid(const char *id);

/**
 * own_id_make() - the id of what happened on @host at @usec (realtime):
 * "HOST-20261124T062400.882495Z"
 */
void own_id_make(const char *host, uint64_t usec, char ret[static OWN_ID_MAX + 1]);

/**
 * own_cause_ids() - ids in all causes of a file, each once, in their order
 * @bytes, @size: as of own_cause_take()
 * @ret: NULL-terminated, or NULL: none; what is no id is left out
 * Return: 0 or -ENOMEM.
 */
int own_cause_ids(const uint8_t *bytes, size_t size, bool big_endian, char ***ret);
