/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages that are not done with, each a file STATE_DIRECTORY/ID.json, from which the next process
 * goes on. Not synced: what the machine's end loses is too old after a boot. Main thread.
 */
#pragma once

#include "fleet/message.h"

struct pending {
	int fd; /* -EBADF: there is no directory */
	bool failed_said;
};

/**
 * pending_open() - the directory that the service manager names, if it does
 */
void pending_open(struct pending *pending);

void pending_close(struct pending *pending);

/**
 * pending_put() - what fails is said once
 * Return: there is a file now.
 */
bool pending_put(struct pending *pending, const char *id, const char *payload);

void pending_remove(const struct pending *pending, const char *id);

/* @age_usec: of the file. Return: it is still somebody's, else the file is removed, and that is
 * said. */
typedef bool (*pending_found_t)(void *userdata, const struct message *m, uint64_t age_usec);

/**
 * pending_read() - those that are there, by name; what is no message is removed
 */
void pending_read(struct pending *pending, pending_found_t found, void *userdata);
