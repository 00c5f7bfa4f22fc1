/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the sparse file of a live recording to a dense one: the gaps between regions are collapsed
 * (metadata only: ext4, xfs), or the data is reflinked into another file (btrfs). Where neither
 * goes the file stays sparse, which any reader takes. Any thread; no worker writes to the file any
 * more.
 */
#pragma once

#include "writer/trace-file.h"

enum compact_result {
	COMPACT_DENSE = 1, /* done; the file object is at its end: free it */
	COMPACT_BUSY,	   /* somebody has it open: a collapse would hurt him, try again later */
	COMPACT_NOT_HERE,  /* this file system cannot */
};

/**
 * compact_file() - make it dense under the same name
 * @name: of the file in @dir_fd, not its archive name: what is seen meanwhile is no valid trace.dat
 * The file must be complete and synced. Killed or cut off from power at any moment, it can be
 * finished with compact_resume().
 * Return: an enum compact_result, or negative errno with @why set (the file is as it was, or as a
 * kill would leave it).
 */
int compact_file(struct trace_file *file, int dir_fd, const char *name, struct fault *why);

/**
 * compact_in_use() - has anybody else this file open? To ask before it is renamed.
 */
bool compact_in_use(struct trace_file *file);

/**
 * compact_interrupted() - was this file being collapsed when its writer ended?
 */
bool compact_interrupted(const struct trace_file *file);

/**
 * compact_resume() - finish a collapse that was interrupted
 * Every hole behind the first region's begin is closed; the regions then follow from the sizes.
 * Where the file system cannot do that the file is sparse again, see trace_file_phase(). Return: 0,
 * -EBADMSG if the data is not as long as the sizes say, or negative errno.
 */
int compact_resume(struct trace_file *file, struct fault *why);
