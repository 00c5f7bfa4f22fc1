/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What of flyrec's own section (formats/own-section.h) is known when a file is made, and the
 * readings of clocks that its sources have. Plain memory, any thread.
 */
#pragma once

#include "formats/own-cause.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"

/* All of it borrowed; what is NULL or 0 the file has not, nor room for it */
struct own_content {
	const struct own_clocks *clocks;
	const struct own_cause *cause;
	uint32_t cause_room;				  /* bytes for others that join */
	uint32_t tasks_room, findings_room, journal_room; /* bytes */
};

/**
 * own_content_build() - the section, in this machine's byte order
 * @ret: malloc'ed; NULL: there is nothing to say
 * @ret_clocks_at: of the data of the clocks, from its beginning; 0: none
 * Return: 0, -ENOMEM or -EFBIG.
 */
int own_content_build(const struct own_content *content, uint8_t **ret, size_t *ret_size,
		      size_t *ret_clocks_at);

/* Readings out of several files */
struct own_readings {
	struct own_clock *list;
	size_t n;
	uint8_t boot_id[16]; /* of the newest of them; 0: not known */
};

void own_readings_done(struct own_readings *readings);

/**
 * own_readings_add() - those of a file, as far as they are near a range of its data: within, the
 * last one before and the first one behind
 * @from_nsec, @to_nsec: by the file's clock; of readings without that all are taken
 * What is damaged there, or is not there, is no error. Return: 0, -ENOMEM or another negative errno
 * with @why.
 */
int own_readings_add(struct own_readings *readings, const struct trace_dat *dat, uint64_t from_nsec,
		     uint64_t to_nsec, struct fault *why);

/**
 * own_readings_merge() - all of them in the order of time, into one that is initialised
 */
void own_readings_merge(struct own_readings *readings, struct own_clocks *clocks);

/**
 * own_content_clocks() - of a file
 * @ret_at: of their data, in the file; may be NULL
 * Return: 0, -ENOENT: it has none, or they are damaged; or another negative errno with @why.
 */
int own_content_clocks(const struct trace_dat *dat, struct own_clocks *ret, uint64_t *ret_at,
		       struct fault *why);
