/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An Arm snapshot of this machine's CoreSight trace, or of a tree copied from one: export
 * --format=arm-snapshot and snapshot --coresight=DIR. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

/**
 * arm_save() - make the directory, whole or not at all; logs what is wrong or left out
 * @ctl: --sysroot=, --memory=
 * @dat_fd: a trace.dat to be in it; -EBADF: none. @dat_path: for messages
 */
enum ctl_status arm_save(const struct ctl *ctl, const char *dir, int dat_fd, const char *dat_path);

/**
 * export_arm() - export --format=arm-snapshot -o DIR [FILE]
 */
enum ctl_status export_arm(const struct ctl *ctl, int argc, char **argv);
