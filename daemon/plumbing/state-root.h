/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state directory, under a lock that no other flyrecd gets. Its file system may be mounted
 * late, and it is let go of while no session uses it, so that it can be unmounted. Owner: the
 * manager; sessions find and leave it. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

struct state_root;

/**
 * state_root_new() - not opened yet
 * @dir, @runtime_dir, @boot_id: the caller's, for as long as it is there. In the runtime directory
 * is noted whether @dir was a file system of its own when it was let go of.
 */
int state_root_new(const char *dir, const char *runtime_dir, const char *boot_id,
		   struct state_root **ret);
void state_root_free(struct state_root *root);

/**
 * state_root_check_mount() - was a directory a file system of its own, and is only what lay below
 * it there now?
 * @path: of it
 * @mounted: as far as is known; is as it is now on success
 * Return: 0; -ESTALE: it is no longer mounted; or negative errno with @why.
 */
int state_root_check_mount(int fd, const char *path, bool *mounted, struct fault *why);

/* -EBADF: it is not there */
int state_root_fd(const struct state_root *root);

/**
 * state_root_find() - open it, or make it, and lock it, or see that it is what its path leads to
 * Another file system may have been mounted there since.
 * Return: 0; -EBUSY when another flyrecd has it; -ESTALE when it was a file system of its own,
 * which is no longer mounted; or negative errno with @why.
 */
int state_root_find(struct state_root *root, struct fault *why);

/* A session that has files in it open; then, no longer */
void state_root_ref(struct state_root *root);
void state_root_unref(struct state_root *root);

/* Close it, so that its file system can be unmounted, unless a session uses it */
void state_root_leave(struct state_root *root);

/* Opened since the last call of this? Sessions that an earlier process left may be in it. */
bool state_root_is_new(struct state_root *root);

/* From now on it may be elsewhere, and need not be a file system of its own */
void state_root_accept(struct state_root *root);

/* The same for the next process */
void state_root_forget_mount(const struct state_root *root);
