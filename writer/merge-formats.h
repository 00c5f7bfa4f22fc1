/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The event formats of files of several kernels in one file. Ids of events differ between kernels,
 * and between boots: whatever is the same but for its id becomes one format, and what has the same
 * id, but is something else, gets another one. Refusing would be no answer: two machines hardly
 * ever have the same ids, be it for a module that one of them loaded first. Any thread.
 */
#pragma once

#include "formats/subbuf.h"
#include "formats/trace-dat-read.h"
#include "writer/sections.h"

struct merge_formats {
	struct sections_formats all; /* with their ids in this file */
	uint8_t used[SUBBUF_EVENT_IDS / 8];
	char *common; /* fields that all events begin with, of the first file */
	char *first;  /* its name */
};

void merge_formats_done(struct merge_formats *formats);

/* Of one of the files */
struct merge_ids {
	uint16_t ids[SUBBUF_EVENT_IDS]; /* as subbuf_move() has it; 0: the file has no such event */
	uint32_t pid_at;		/* as subbuf_move() has it */
};

/**
 * merge_formats_add() - of one more file
 * Return: 0; -EINVAL: its events begin with other fields than those before, or there are more
 * events than ids; or another negative errno; with @why.
 */
int merge_formats_add(struct merge_formats *formats, const struct trace_dat *dat,
		      struct merge_ids *ret, struct fault *why);

/**
 * merge_formats_of() - those of a file, with their ids in this one
 * @ret: to be added to; undo with sections_formats_done(); systems are @dat's
 */
int merge_formats_of(const struct trace_dat *dat, const struct merge_ids *ids,
		     struct sections_formats *ret, struct fault *why);
