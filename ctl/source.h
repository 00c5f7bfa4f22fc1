/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recordings that are to be analysed: files, and sessions of the daemon. All are opened before
 * flyrecctl gives up its rights. Main thread.
 */
#pragma once

#include "analysis/sources.h"
#include "ctl/ctl.h"

struct source_list {
	struct source *sources;
	size_t n;
};

/**
 * source_list_open() - open what the words mean: a path if it has a /, ends in .dat or names a
 * file, else a session: its segments and the one being written
 * @filter: segments that are outside of its times are left out
 * @snapshots: of a session these, too; what they have in common counts once
 * Return: 0, or negative errno after a line on stderr.
 */
int source_list_open(struct ctl *ctl, char *const *words, const struct event_filter *filter,
		     bool snapshots, struct source_list *ret);
/* A file that is open; takes over the descriptor */
int source_list_add(struct source_list *list, const char *name, int fd);
void source_list_done(struct source_list *list);
