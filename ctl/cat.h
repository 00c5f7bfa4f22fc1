/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cat: a recording out of the daemon's hands, as a file or into a pipe. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

enum ctl_status verb_cat(const struct ctl *ctl, int argc, char **argv);
