/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What verify makes of an Arm snapshot: convert/arm/arm-check.h over a directory. Main thread.
 */
#pragma once

#include "ctl/verify-report.h"

/**
 * verify_arm() - report all faults of the snapshot in @dir_fd, as "PATH/FILE:LINE: what"
 * Its text files are not looked for outside the directory, whatever their names say.
 * Return: 0, also with faults, or -ENOMEM.
 */
int verify_arm(int dir_fd, struct verify_report *report);
