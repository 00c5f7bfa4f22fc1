/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl export --format=text|json [-o OUT] FILE: offline, needs no daemon. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

/**
 * verb_export() - see flyrecctl(1)
 * Return: CTL_DONE, also if the reader of a pipe has enough; CTL_FAILED, CTL_USAGE.
 */
enum ctl_status verb_export(const struct ctl *ctl, int argc, char **argv);
