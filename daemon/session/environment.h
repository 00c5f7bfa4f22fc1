/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all sessions have in common, and whom they tell. Owner: the manager; for sessions it is
 * there to be read. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct calibration;
struct cmdlines;
struct fdstore;
struct guard;
struct session;
struct state_root;
struct symbols;

struct environment {
	sd_event *event;
	const char *config_dir, *state_dir, *runtime_dir;
	const char *instance_prefix; /* as configured, for the next start of each */
	unsigned workers;	     /* likewise; 0: by the number of CPUs */
	bool stopping, handing_over; /* flyrecd ends: no session is started again */
	uint8_t boot_id[16];
	char boot_id_text[33];
	int tracing_fd; /* the root of tracefs */
	struct symbols *symbols;
	struct fdstore *fdstore;
	struct guard *guard;
	struct state_root *root;
	struct cmdlines *cmdlines;
	struct calibration *calibration;
};

struct session_events {
	/* Something that clients may watch has changed */
	void (*changed)(void *userdata, struct session *session);
	/* One has reached recording, stopped or failed */
	void (*settled)(void *userdata);
	/* Data is coming in: so it is with each flush */
	void (*ticked)(void *userdata);
	/* @path: of the file; @id: of its moment, or "" */
	void (*segment_finished)(void *userdata, struct session *session, const char *path);
	void (*snapshot_finished)(void *userdata, struct session *session, const char *path,
				  const char *id);
	/* Units that fail, or entries of the journal, are to be told of, or no longer */
	void (*watch_wanted)(void *userdata);
	/* The largest KeepFree= of the sessions that record to this file system; bytes */
	uint64_t (*keep_free)(void *userdata, dev_t device);
	void *userdata;
};
