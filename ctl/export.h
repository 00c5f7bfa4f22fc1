/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl export --format=F [-o OUT] FILE: offline, needs no daemon. What the formats share: the
 * file is opened and the filter understood for them; each has a row in a table in export.c. Main
 * thread.
 */
#pragma once

#include "ctl/ctl.h"

/* The names of all, for people */
const char *export_formats(void);

/**
 * verb_export() - see flyrecctl(1)
 * Return: CTL_DONE, also if the reader of a pipe has enough; CTL_FAILED, CTL_USAGE.
 */
enum ctl_status verb_export(const struct ctl *ctl, int argc, char **argv);
