/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl import --format=F -o OUT FILE: offline, needs no daemon. What the formats share: the
 * input is opened for them, the file they make appears when it is complete. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

/* The names of all, for people */
const char *import_formats(void);

/**
 * verb_import() - see flyrecctl(1)
 */
enum ctl_status verb_import(const struct ctl *ctl, int argc, char **argv);
