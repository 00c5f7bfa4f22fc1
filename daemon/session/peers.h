/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Snapshots that other hosts ask for. A moment is a window of time of which a snapshot is taken, or
 * was: for a trigger of this session, or for another host. Who asks for one that is there gets
 * that; so a storm of messages, in which each host tells of the same, makes one file. Knows no
 * session, but for a few calls. Main thread, but for what runs as a job.
 *
 *   peers_ask()
 *     -> joins a moment whose snapshot is not finished: waits for peers_end(), or
 *     -> looks: one at a time a job finds a file that has the window or the id, and adds the id
 *          -> the answer, or
 *          -> a snapshot of its own (peer_host.order), unless one has begun meanwhile
 *   peers_end()
 *     -> the first gets its answer, those who joined look: their ids are added to the file
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/fault.h"
#include "engine/snapshot-order.h"

#define PEERS_REASON "peer" /* in names of files */

/*
 * @path: of the file that has the moment; @had: it was there, or under way, for somebody else.
 * @result less than 0: there is none, @why.
 */
typedef void (*peers_done_t)(void *userdata, int result, const char *path, bool had,
			     const char *why);

/* What another host asks for */
struct peer_wish {
	const char *id;		     /* own_id_valid() */
	const char *lines;	     /* for the file's text, or "" */
	uint64_t from_usec, to_usec; /* realtime, checked */
	uint64_t most_usec;	     /* that a window may have */
	uid_t uid;
};

struct peer_host {
	/* Take a snapshot: peers_begin() and, even before this returns, peers_end() are called.
	 * Return: 0, or negative errno with @why. */
	int (*order)(void *userdata, const struct snapshot_order *order, uint64_t post_usec,
		     struct fault *why);
	/* @which, if it has not begun, shall have this too, and wait for its end. Return: it will.
	 */
	bool (*widen)(void *userdata, const void *which, uint64_t from_usec, uint64_t to_usec);
	/* STATE/NAME, and the path of a snapshot in it, malloc'ed */
	int (*state_fd)(void *userdata);
	char *(*path)(void *userdata, const char *name);
};

struct peer_ask;
struct peer_look;
struct moment;

struct peers {
	const struct peer_host *host;
	void *userdata;
	sd_event *event;
	const char *name;	/* of the session */
	struct moment *moments; /* that have a snapshot, or get one; newest first */
	struct peer_ask *asks;	/* they may have a file; of the first: */
	struct peer_look *look; /* a job looks */
	struct peer_ask *ordering;
};

/**
 * peers_ask() - a snapshot for another host
 * @done: called once, maybe before this returns
 * Return: 0 or -ENOMEM.
 */
int peers_ask(struct peers *peers, const struct peer_wish *wish, peers_done_t done, void *userdata);

/* A snapshot that has an id is queued. @which: not looked into */
void peers_begin(struct peers *peers, const void *which, const struct snapshot_order *order,
		 uint64_t post_usec);

/* It has ended: @result 0, or negative errno and @made->why */
void peers_end(struct peers *peers, const void *which, int result,
	       const struct snapshot_result *made);

/* The session has stopped or failed: what was not answered is, -ECANCELED */
void peers_drop(struct peers *peers);
