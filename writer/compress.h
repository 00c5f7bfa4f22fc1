/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finished segments of a session's directory become files of version 7, compressed, each in the
 * place of the one that it was made of:
 *
 *	.NAME.new is made, unpacked again and compared (writer/pack.h), gets owner, mode, times and
 *	attributes of NAME, is synced ─▶ the two exchange their names, the directory is synced ─▶
 *	.NAME.new, now the original, is removed
 *
 * NAME is a complete file at each moment, and nothing is written to the original. What a killed
 * process leaves is a ".NAME.new", which store_remove_unfinished() removes at the next start. Who
 * has the original open reads on in it. Thread: job; while it makes the copy it has the lowest
 * priority.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "basic/fault.h"
#include "writer/retention.h"
#include "writer/store.h"

/* A file is expected to become no larger than this part of it: so much room it needs beside it */
#define COMPRESS_SHARE 4U

/* A finished segment */
struct compress_item {
	char *name;
	uint64_t bytes;	    /* on the disk */
	uint64_t raw_bytes; /* of a compressed one, before; 0: unknown */
	bool packed;	    /* is compressed */
	bool refused;	    /* is to stay as it is */
};

/* What a directory has */
struct compress_tally {
	uint64_t files;		   /* compressed ones of which it is known what they were */
	uint64_t bytes, raw_bytes; /* of these: on the disk, and before */
	uint64_t waiting;	   /* segments that are to be compressed */
};

/**
 * compress_choose() - which segment comes next: never the last one, which is what people look at
 * first; of the others the newest, as retention takes the oldest first
 * @items: oldest first
 * Return: its index, or @n if there is none. Pure function.
 */
size_t compress_choose(const struct compress_item *items, size_t n, struct compress_tally *ret);

/**
 * compress_fits() - is there room for a copy of a file of @bytes within MaxUse= and beyond
 * KeepFree=?
 * @used: bytes of all finished files
 * @free_bytes: of the file system
 * Pure function.
 */
bool compress_fits(uint64_t bytes, uint64_t used, uint64_t free_bytes,
		   const struct retention_limits *limits);

struct compress_order {
	int dir_fd;			/* STATE/NAME/record */
	struct retention_limits limits; /* spare is what is meant for this */
	char **refused;			/* names of files to be left alone, or NULL */
	const atomic_bool *cancel;
};

struct compress_report {
	char name[STORE_NAME_SIZE];	 /* "": there was none */
	uint64_t raw_bytes, bytes;	 /* on the disk before and after */
	struct compress_tally tally;	 /* of the directory, afterwards */
	uint64_t kept_files, kept_bytes; /* as retention counts them; 0 files: not counted */
};

enum compress_outcome {
	COMPRESS_NOTHING, /* there is no segment that waits */
	COMPRESS_DONE,
	COMPRESS_NO_ROOM, /* for the one of that name */
};

/**
 * compress_next() - compress one segment, if one waits
 * @ret: filled in whatever is returned
 * Return: an enum compress_outcome, or negative errno with @why set and the segment as it was:
 * -ECANCELED; -ENOENT somebody has removed it, or the copy, meanwhile; -EBADMSG, -ENODATA, -EPERM,
 * -ENOTSUP it cannot be compressed, which another try will not change.
 */
int compress_next(const struct compress_order *order, struct compress_report *ret,
		  struct fault *why);
