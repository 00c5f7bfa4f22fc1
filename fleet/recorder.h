/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecd as other hosts may use it: which sessions take snapshots for them, and take one. Over its
 * control socket, without waiting; a connection that is lost is made again with the next call. Main
 * thread, of an sd-event loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct recorder;

enum recorder_result {
	RECORDER_DONE,
	RECORDER_NOTHING, /* was recorded then */
	RECORDER_LIMITED, /* the budget is used up */
	RECORDER_REFUSED,
	RECORDER_AWAY, /* there is no flyrecd, or it ended */
};

/* @sessions: NULL-terminated, NULL: none; the caller's from now on */
typedef void (*recorder_listed_t)(void *userdata, enum recorder_result result, char **sessions,
				  const char *why);

/* @path: of the file, @had: that was there already; @why: of anything but RECORDER_DONE */
typedef void (*recorder_taken_t)(void *userdata, enum recorder_result result, const char *path,
				 bool had, const char *why);

struct recorder_window {
	uint64_t since_usec, until_usec;
	const char *id, *reason;
};

/**
 * recorder_new() - nothing is connected yet
 * Return: 0 or -ENOMEM.
 */
int recorder_new(sd_event *event, const char *runtime_dir, struct recorder **ret);

/* What was not answered is not answered any more */
void recorder_free(struct recorder *recorder);

/**
 * recorder_list() - sessions that record, and take snapshots for other hosts
 * Return: 0: @done is called, but not before this has returned; or negative errno: flyrecd is away
 */
int recorder_list(struct recorder *recorder, recorder_listed_t done, void *userdata);

/**
 * recorder_take() - a snapshot, within flyrecd's limits
 * Return: as recorder_list().
 */
int recorder_take(struct recorder *recorder, const char *session,
		  const struct recorder_window *window, recorder_taken_t done, void *userdata);
