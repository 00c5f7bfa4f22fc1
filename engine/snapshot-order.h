/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A snapshot: what is wanted of it, which stays as it is while it is made, and what came of it. The
 * data comes out of segments (writer/cut.h), out of several sessions' snapshots
 * (writer/together.h), or out of a ring buffer (engine/flight.h). Owner: the session; a job makes
 * one at a time.
 */
#pragma once

#include <sys/types.h>

#include "engine/coresight-job.h"
#include "writer/cut.h"
#include "writer/retention.h"
#include "writer/store.h"
#include "writer/together.h"

#define BOOT_UNKNOWN "unknown" /* in the place of a boot's id */

/* Who wants a snapshot; those before others are served before them */
enum snapshot_origin {
	SNAPSHOT_BY_TRIGGER, /* also a signal */
	SNAPSHOT_BY_ADMIN,   /* root and AdminGroup= */
	SNAPSHOT_BY_MEMBER,  /* of group flyrec */
	SNAPSHOT_BY_PEER,    /* another host, whoever tells us; has the rights of a member */
};

struct snapshot_asker {
	enum snapshot_origin origin;
	uid_t uid;	  /* not of a trigger */
	const void *call; /* the caller's: what it may be cancelled by, or NULL */
};

/* Neither for it nor for its file others make way */
static inline bool snapshot_is_guests(const struct snapshot_asker *asker)
{
	return asker->origin >= SNAPSHOT_BY_MEMBER;
}

/* Others may join it: there is to be room for what they say */
static inline bool snapshot_is_joined(const struct snapshot_asker *asker)
{
	return asker->origin == SNAPSHOT_BY_TRIGGER || asker->origin == SNAPSHOT_BY_PEER;
}

struct snapshot_order {
	uint64_t from_usec, to_usec; /* realtime */
	const char *reason;
	const char *detail;  /* more lines for the text in the file, or NULL */
	const char *id;	     /* formats/own-cause.h; in @detail, too; or NULL */
	unsigned rank;	     /* see retention_rank(); of a trigger's */
	const char *session; /* for the text in the file; of several all names */
	char boot_id[33];    /* of the boot that it is from; "": this one, or what the data says */
	uint64_t trigger_usec;		 /* realtime */
	const struct own_clocks *clocks; /* readings of now, of this boot; or NULL */
	struct snapshot_asker asker;
	bool coresight; /* a CoreSight snapshot too */
	bool pin;
	bool analyze; /* there shall be room for what that finds, */
	bool journal; /* and for lines of the journal */
	bool is_part; /* of a snapshot of several sessions: a file without a name */
	const struct together_part *parts; /* put these together instead; borrowed */
	size_t n_parts;
	struct retention_limits limits;
};

struct snapshot_result {
	int dir_fd;			/* STATE/NAME/snapshot, from snapshot_order_open() on */
	char name[STORE_NAME_SIZE];	/* of the file there */
	char *path;			/* the session's: once it is there */
	int part_fd;			/* of a part: the file */
	char boot_id[33];		/* of the data; "": this boot */
	struct coresight_job coresight; /* its directory beside it */
	struct cut_report report;
	uint64_t kept_files; /* all finished snapshots, afterwards */
	uint64_t kept_bytes;
	unsigned evicted_files; /* that had to go for it */
	uint64_t evicted_bytes;
	struct fault complaint; /* of their retention */
	struct fault nameless;	/* its task names could not be written */
	struct fault unpinned;	/* it was to be pinned, and why it is not */
	struct fault why;	/* there is none, or less than was ordered */

	/* between snapshot_order_find() and snapshot_order_make() */
	char *text;
	struct cut *found; /* NULL: there are parts */
};

#define SNAPSHOT_RESULT_INIT                        \
	{                                           \
		.dir_fd = -EBADF, .part_fd = -EBADF \
	}

/* Frees; closes; what was not given a name is gone */
void snapshot_result_done(struct snapshot_result *result);

/**
 * snapshot_order_open() - the folder it goes to, and first of all what the trace hardware holds,
 * where that is wanted
 * @state_fd: STATE/NAME
 * Thread: job. Return: 0 or negative errno with @why.
 */
int snapshot_order_open(const struct snapshot_order *order, int state_fd,
			struct snapshot_result *result, struct fault *why);

/**
 * snapshot_order_find() - what belongs to a snapshot of a time range, or of several sessions
 * @record_fd: STATE/NAME/record, unless there are parts
 * The files that it is in stay open, so that they are not made dense meanwhile.
 * Thread: job. Return: 0 or negative errno with @why.
 */
int snapshot_order_find(const struct snapshot_order *order, int record_fd,
			struct snapshot_result *result, struct fault *why);

/**
 * snapshot_order_make() - make the file of what was found, then the snapshots' own retention
 * Thread: job, for as long as it takes. Return: 0 or negative errno with @why.
 */
int snapshot_order_make(const struct snapshot_order *order, struct snapshot_result *result,
			struct fault *why);

/**
 * snapshot_order_label() - the file is there: extended attributes for those who list files without
 * opening them, where the file system takes them; the CoreSight snapshot gets its name
 * Thread: job.
 */
void snapshot_order_label(const struct snapshot_order *order, struct snapshot_result *result);

/* --- for those who make the file themselves: engine/flight-export.c */

/* Name the snapshot, and say what makes the file explain itself, wherever it is carried: shown by
 * trace-cmd report --stat; malloc'ed */
int snapshot_order_name(const struct snapshot_order *order, struct snapshot_result *result,
			char **ret_text, struct fault *why);

/* The same for flyrec's own section: what it was taken for. @ret_cause: borrowed by @ret */
void snapshot_order_cause(const struct snapshot_order *order, struct own_cause *ret_cause,
			  struct own_content *ret);

/*
 * Before a file of @bytes is written: may there be one? For a trigger's or an administrator's older
 * snapshots make way for it, for a member's nothing does.
 * Return: 0; -ENOSPC it would leave less than KeepFree=; -EDQUOT it cannot be pinned; or another
 * negative errno with @why.
 */
int snapshot_order_make_way(const struct snapshot_order *order, uint64_t bytes,
			    struct snapshot_result *result, struct fault *why);

/*
 * After a new one: whose it is, pinned if it is to be, then the snapshots' own retention: kept_*,
 * evicted_*, complaint, unpinned
 * Return: 0, or negative errno with @why: it could not be marked as a member's and is gone again.
 */
int snapshot_order_retain(const struct snapshot_order *order, struct snapshot_result *result,
			  struct fault *why);
