/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * snapshot: a time range of what was recorded, as a file of its own. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

enum ctl_status verb_snapshot(const struct ctl *ctl, int argc, char **argv);
