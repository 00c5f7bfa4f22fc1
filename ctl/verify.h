/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl verify FILE|DIR…: offline, needs no daemon. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

/**
 * verb_verify() - check files, and all *.dat below directories in sorted order
 * Return: CTL_DONE if all are right, CTL_FAILED for any fault or where there is none, CTL_USAGE
 * without an argument.
 */
enum ctl_status verb_verify(const struct ctl *ctl, int argc, char **argv);
