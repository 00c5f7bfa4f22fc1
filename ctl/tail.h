/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `flyrecctl tail`: events of a running session, decoded. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

enum ctl_status verb_tail(const struct ctl *ctl, int argc, char **argv);
