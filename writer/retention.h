/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What to delete so that recording can go on for months on a finite disk; journald's words. The
 * choice is a pure function over a list; the rest lists a directory and removes what was chosen.
 * Any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

struct retention_item {
	char *name;
	uint64_t begin_usec; /* realtime of the first data: the order in which they go */
	uint64_t end_usec;   /* realtime of the last data */
	uint64_t bytes;	     /* on the disk */
	bool pinned;	     /* never chosen, but counted */
	bool by_member;	     /* store_is_members() */
	unsigned rank;	     /* of a snapshot; lower ones go first */
	bool damaged;
	bool packed; /* compressed, as far as the file system's attributes tell */
	bool evict;  /* the choice */
};

/* What is not a snapshot of a trigger's, and those that are worth most */
#define RETENTION_RANK_LAST 3

/**
 * retention_rank() - which snapshots of triggers go first, when some must
 * Pressure before what is about somebody: an event, a unit, a signal. Of each kind the first one of
 * a storm goes last: it has what led to it.
 * @repeated: not the first of its trigger for a while
 */
unsigned retention_rank(bool is_pressure, bool repeated);

struct retention_limits {
	uint64_t max_use;      /* bytes, live file and damaged ones included */
	uint64_t keep_free;    /* bytes of the file system */
	uint64_t max_files;    /* the live one included; 0: no limit */
	uint64_t max_age_usec; /* since the last data; 0: no limit */
	uint64_t live_reserve; /* bytes that the live file may grow to, counted as used */
	uint64_t spare;	  /* bytes for the compressed copy of a segment: counted as used, and kept
			     free beyond keep_free, unless that is 0 */
	bool keep_newest; /* of snapshots: none is live, and the newest was just asked for; only
			     age takes it away */
	uint64_t member_use;   /* bytes of all that members asked for, pinned ones aside; 0: no
				  limit of their own */
	uint64_t member_files; /* likewise */
	bool members_only;     /* nothing else may go: it is for a snapshot of a member's */
};

/**
 * retention_choose() - set evict on what has to go, oldest first
 * @items: reordered: oldest first
 * @free_bytes: of the file system now
 * @now_usec: realtime
 * What is too old goes first, then what members asked for, then the rest by rank. Damaged files
 * together may have a quarter of max_use: the oldest of them go beyond that.
 */
void retention_choose(struct retention_item *items, size_t n, const struct retention_limits *limits,
		      uint64_t free_bytes, uint64_t now_usec);

/* What the files that are left say of the past */
struct retention_past {
	uint64_t oldest_usec;  /* realtime of the first data of all; 0: there is no file */
	uint64_t recent_usec;  /* of those that began within the last 24 hours */
	uint64_t recent_bytes; /* in these */
	uint64_t recent_plain; /* of them in files that are not compressed */
};

struct retention_report {
	unsigned files; /* deleted */
	uint64_t bytes;
	unsigned plain_files; /* of them not compressed, nor damaged */
	unsigned kept_files;  /* that are left, and their bytes on the disk */
	uint64_t kept_bytes;
	struct retention_past past;
	uint64_t *cpu_subbufs; /* [n_cpus], the caller's: those of the deleted files are added; or
				  NULL */
	unsigned n_cpus;
};

/**
 * retention_apply() - delete what the limits ask for from a session's directory
 * Looks at finished segments, snapshots and *.damaged only; never at the live file or hidden ones.
 * @ret: cpu_subbufs and n_cpus are set by the caller, the rest here
 * Return: 0 or negative errno with @why set; what was deleted by then is in @ret.
 */
int retention_apply(int dir_fd, const struct retention_limits *limits, struct retention_report *ret,
		    struct fault *why);

/**
 * retention_count() - kept_files and kept_bytes as they are; deletes nothing, opens no file
 */
int retention_count(int dir_fd, struct retention_report *ret);

/* What is being written, for retention_lasts() */
struct retention_live {
	uint64_t bytes, usec;		  /* in the file, and the realtime of its first data */
	uint64_t raw_bytes, packed_bytes; /* what others have become by being compressed, as it will
					     be, too; 0: it will not, or that is not known */
};

/**
 * retention_lasts() - how long @max_use bytes last, at the rate of the last 24 hours
 * Return: microseconds, 0 if that cannot be told yet. Pure function.
 */
uint64_t retention_lasts(const struct retention_past *past, const struct retention_live *live,
			 uint64_t max_use, uint64_t now_usec);

/**
 * retention_pinned() - bytes on the disk of all pinned files of a directory
 */
int retention_pinned(int dir_fd, uint64_t *ret_bytes);

/**
 * retention_pin() - pin a snapshot, if all that are pinned have at most half of @max_use together
 * @dir_fd: its directory
 * @session: for @why
 * Return: 0, also if it was pinned before; -EDQUOT beyond the limit, or another negative errno.
 */
int retention_pin(int dir_fd, int fd, const char *session, uint64_t max_use, struct fault *why);

/**
 * retention_pins_left() - may anything more be pinned? Return: 0, or as retention_pin().
 */
int retention_pins_left(int dir_fd, const char *session, uint64_t max_use, struct fault *why);
