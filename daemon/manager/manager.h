/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecd but for its control socket: configuration, sessions, signals, and what sessions share.
 * Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "config/config.h"
#include "daemon/session/environment.h"
#include "daemon/session/session.h"

struct manager;

struct manager_options {
	const char *config_dir;
	const char *state_dir;
	const char *runtime_dir;
};

/* What happens, for those who tell clients. @name: of a session. */
struct manager_listener {
	/* The configuration is another one */
	void (*configured)(void *userdata);
	/* Starting or a reload is over: every session has got somewhere */
	void (*reloaded)(void *userdata);
	/* There is an object for each session that runs, or is only configured: the first of the
	 * two has come, or the last has gone */
	void (*session_added)(void *userdata, const char *name);
	void (*session_removed)(void *userdata, const char *name);
	/* Something that clients may watch is different */
	void (*session_changed)(void *userdata, const char *name);
	/* @path: of the file */
	void (*segment_finished)(void *userdata, const char *name, const char *path);
	/* @finding: the worst thing that analysis found; "": none. @id: of its moment, or "" */
	void (*snapshot_finished)(void *userdata, const char *name, const char *path,
				  const char *finding, const char *id);
};

/**
 * manager_new() - all that can fail before anything is recorded: read the configuration, give up
 * rights, lock the state directory, make the event loop
 * @options: the caller's, for as long as it is there
 * Return: 0 or negative errno; faults have been logged.
 */
int manager_new(const struct manager_options *options, struct manager **ret);

/**
 * manager_new_idle() - one that has nothing to do with the kernel and traces nothing (fuzzer)
 * @config: its own on success. There is an object for the first session in it.
 */
int manager_new_idle(const struct manager_options *options, struct daemon_config *config,
		     struct manager **ret);

/* NULL is fine. Sessions that are there are told to nobody. */
void manager_free(struct manager *manager);

/* @listener, @userdata: the caller's; NULL: nobody listens */
void manager_listen(struct manager *manager, const struct manager_listener *listener,
		    void *userdata);

/**
 * manager_run() - sessions, until a signal ends it; then there are none
 * Return: 0 after a clean stop or hand-over, or negative errno; faults have been logged.
 */
int manager_run(struct manager *manager);

/* --- for those who ask */

/* What sessions have in common, and the event loop */
const struct environment *manager_environment(const struct manager *manager);

/* In force; valid until the next reload */
const struct daemon_config *manager_config(const struct manager *manager);

/* "starting", "running", "reloading", "stopping" or "handing-over" */
const char *manager_phase_name(const struct manager *manager);

/* Neither starting, nor reloading, nor stopping */
bool manager_is_running(const struct manager *manager);

uint64_t manager_started_usec(const struct manager *manager); /* monotonic */

/* Microseconds of CPU time that flyrecd has used, starting sessions and calibration aside */
uint64_t manager_cpu_usec(const struct manager *manager);

/* Why failed units are not known of, or NULL */
const char *manager_unit_trouble(const struct manager *manager);
const char *manager_journal_trouble(const struct manager *manager);

/* By name, or NULL. One that is only configured is no session. */
struct session *manager_find(const struct manager *manager, const char *name);

/* @i: from 0 on; NULL: there are no more. Valid until the event loop goes on. */
struct session *manager_session(const struct manager *manager, size_t i);

/* Is the session enabled? */
bool manager_wants(const struct manager *manager, const char *name);

/* --- for those who ask for something */

/**
 * manager_start_session() - start what is configured, enabled or not
 * Return: 0 or negative errno with @why set. Whether it records in the end is told later.
 */
int manager_start_session(struct manager *manager, const char *name, struct fault *why);

/**
 * manager_reload() - read the configuration again, and do as it says
 * @ret_complaints: what is wrong with it, a line each, "" if nothing is; malloc'ed
 * Return: 0: it is being applied, the listener's reloaded() is called when that is done; -EINVAL:
 * it has errors, the old one stays; -EBUSY: starting or stopping.
 */
int manager_reload(struct manager *manager, char **ret_complaints);

/**
 * manager_refresh_config() - one session's files have been written: only those are read again
 * What it does now stays.
 * Return: 0 or negative errno with @why.
 */
int manager_refresh_config(struct manager *manager, const char *name, struct fault *why);

/* A session is no longer as its configuration says, or is so again */
void manager_session_changed(struct manager *manager, struct session *session);

DEFINE_CLEANUP(struct manager *, manager_free)
