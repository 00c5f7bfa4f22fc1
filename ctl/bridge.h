/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stdio-bridge: the far end of -H. Bytes go between standard input and output, where ssh is, and
 * the control socket. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

enum ctl_status verb_stdio_bridge(const struct ctl *ctl, int argc, char **argv);
