/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon: configuration, sessions, signals, and what sessions share. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/fault.h"
#include "config/config.h"
#include "daemon/plumbing/fdstore.h"
#include "writer/metadata.h"

struct control;
struct guard;
struct session;
struct unit_watch;

/* Order in which the event loop serves what is ready at the same time: small numbers first */
enum daemon_priority {
	PRIORITY_WORKER = SD_EVENT_PRIORITY_NORMAL - 20, /* a full region must not wait */
	PRIORITY_SIGNAL = SD_EVENT_PRIORITY_NORMAL,
	PRIORITY_TRIGGER = SD_EVENT_PRIORITY_NORMAL,
	PRIORITY_ROOT = SD_EVENT_PRIORITY_NORMAL + 10, /* what root asks, whatever others ask for */
	PRIORITY_CONTROL = SD_EVENT_PRIORITY_NORMAL + 20, /* who asks can wait */
};

struct daemon_options {
	const char *config_dir;
	const char *state_dir;
	const char *runtime_dir;
};

enum daemon_phase {
	DAEMON_STARTING,
	DAEMON_RUNNING,
	DAEMON_RELOADING,
	DAEMON_STOPPING,
	DAEMON_HANDING_OVER,
};

struct daemon {
	sd_event *event;
	struct daemon_options options;
	struct daemon_config *config;
	enum daemon_phase phase;
	bool reload_wanted;		  /* once all sessions have got somewhere */
	int state_fd;			  /* the state directory; -EBADF: it is not there */
	int lock_fd;			  /* a file in it that holds its lock */
	sd_event_source *patience_source; /* while it starts or reloads: patience with sessions */
	bool store_mixed;		  /* the FD store may have what no session will take */
	bool state_mounted;		  /* it is a file system of its own */
	bool state_new;			  /* since its sessions were last looked for */
	int mounts_fd;
	sd_event_source *mounts_source; /* off unless a session minds */
	int clock_fd;			/* timerfd that tells when the wall clock is set */
	int64_t clock_usec;		/* what it is ahead of the time since boot */
	int64_t slept_usec;		/* clock_slept_usec(), last time it was looked at */
	int tracing_fd;			/* the root of tracefs */
	uint8_t boot_id[16];
	char boot_id_text[33];
	struct symbols *symbols;
	struct fdstore *fdstore;
	struct session **sessions;
	size_t n_sessions;
	struct control *control; /* NULL: nobody can ask anything */
	struct guard *guard;
	struct unit_watch *units; /* NULL: no session wants it */
	uint64_t started_usec;	  /* monotonic */
	bool cmdlines_raised;
	unsigned cmdlines_old;		    /* saved_cmdlines_size as we found it; 0: not changed */
	uint64_t status_bytes, status_usec; /* for the rate in STATUS= */
};

/**
 * daemon_run() - all of it, until a signal ends it
 * Return: 0 after a clean stop or hand-over, or negative errno; faults have been logged.
 */
int daemon_run(const struct daemon_options *options);

/**
 * daemon_session_settled() - a session has reached recording, stopped or failed
 */
void daemon_session_settled(struct daemon *daemon);

/**
 * daemon_await_sessions() - the start or the reload is over when all sessions have got somewhere,
 * or when that takes too long
 */
void daemon_await_sessions(struct daemon *daemon);

/**
 * daemon_session_changed() - something that clients may watch has changed
 */
void daemon_session_changed(struct daemon *daemon, struct session *session);

/**
 * daemon_segment_finished() - @path: of the file that has just been finished
 */
void daemon_segment_finished(struct daemon *daemon, struct session *session, const char *path);

/**
 * daemon_snapshot_finished() - a snapshot is there: tell clients, and whoever ships files
 * @session: its name
 */
void daemon_snapshot_finished(struct daemon *daemon, const char *session, const char *path);

/**
 * daemon_watch_units() - sessions may have begun, or ceased, to want to know of failed units
 */
void daemon_watch_units(struct daemon *daemon);

/* By name, or NULL */
struct session *daemon_find_session(const struct daemon *daemon, const char *name);

/**
 * daemon_show_status() - STATUS= for the service manager: sessions and rate
 */
void daemon_show_status(struct daemon *daemon);
