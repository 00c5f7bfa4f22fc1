/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What of flyrec's own section (formats/own-section.h) is known when a file is made, and the
 * readings of clocks that its sources have. Plain memory, any thread.
 */
#pragma once

#include "formats/own-cause.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"
#include "formats/own-shed.h"

/* All of it borrowed; what is NULL or 0 the file has not, nor room for it */
struct own_content {
	const struct own_clocks *clocks;
	const struct own_cause *cause;
	uint32_t cause_room;  /* bytes for others that join */
	const uint8_t *tasks; /* parts, as in a file */
	uint32_t tasks_size;
	const struct own_sheds *sheds;
	uint32_t tasks_room, findings_room, journal_room, shed_room; /* bytes */
};

/* Of data in a section, or in a file; 0: it has none */
struct own_places {
	uint64_t clocks;
	uint64_t tasks;
	uint32_t tasks_room, tasks_used; /* bytes */
	uint64_t shed;
	uint32_t shed_room;
};

/**
 * own_content_build() - the section, in this machine's byte order
 * @ret: malloc'ed; NULL: there is nothing to say
 * @ret_places: of what is written later, from its beginning
 * Return: 0, -ENOMEM or -EFBIG.
 */
int own_content_build(const struct own_content *content, uint8_t **ret, size_t *ret_size,
		      struct own_places *ret_places);

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
 * own_content_sheds() - add those of a file
 * What is damaged there, or is not there, is no error. Return: 0, -ENOMEM or another negative errno
 * with @why.
 */
int own_content_sheds(struct own_sheds *sheds, const struct trace_dat *dat, struct fault *why);

/**
 * own_content_clocks() - of a file
 * @ret_places: in the file, also where it has none that can be read; may be NULL
 * Return: 0, -ENOENT: it has none, or they are damaged; or another negative errno with @why.
 */
int own_content_clocks(const struct trace_dat *dat, struct own_clocks *ret,
		       struct own_places *ret_places, struct fault *why);
