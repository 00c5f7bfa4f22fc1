/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An Arm snapshot of this machine's CoreSight trace, or of a tree copied from one: export
 * --format=arm-snapshot and snapshot --coresight=DIR. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

/* A trace.dat to be in it: opened when the sinks have been read, which have less of the past */
struct arm_dat {
	int (*open)(void *userdata); /* an fd, which the caller closes; or negative errno, logged */
	void *userdata;
	const char *path; /* for messages */
};

/**
 * arm_save() - make the directory, whole or not at all; logs what is wrong or left out
 * @ctl: --sysroot=, --memory=
 * @dat: or NULL
 */
enum ctl_status arm_save(const struct ctl *ctl, const char *dir, const struct arm_dat *dat);

/**
 * export_arm() - export --format=arm-snapshot -o DIR [FILE]
 */
enum ctl_status export_arm(const struct ctl *ctl, int argc, char **argv);
