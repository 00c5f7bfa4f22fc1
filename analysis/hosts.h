/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings of several hosts: which file is of which, and the files that a merged one was made of
 * (formats/own-hosts.h). A pid or a CPU of one host is none of another's, so whoever analyses takes
 * the sources of one host after those of the other: struct sources_config.host. One thread.
 */
#pragma once

#include "analysis/source-set.h"

struct host_sources {
	struct source *list; /* each with its host */
	size_t n;
	char **names; /* of hosts, NULL-terminated, in the order of the files; at least one */
	/* What else the list points to */
	char **texts;
};

/**
 * host_sources_find() - look into all files
 * @sources: names and descriptors outlive @ret
 * @ret: undo with host_sources_done()
 * Return: 0 or negative errno with the story in @why.
 */
int host_sources_find(const struct source *sources, size_t n, struct host_sources *ret,
		      struct fault *why);
void host_sources_done(struct host_sources *hosts);
#define _cleanup_host_sources_ _cleanup_(host_sources_done)
