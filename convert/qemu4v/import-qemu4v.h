/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl import --format=qemu4v: text traces of QEMU4V and of the Tarmac family become events,
 * convert/qemu4v/qemu4v-event.h says which. Main thread.
 */
#pragma once

#include "ctl/import.h"

/**
 * import_qemu4v() - options: --clk=, --strict
 * Return: 0 or negative errno with file, line and reason in @why. What was malformed, and times
 * that ran backwards, are logged.
 */
int import_qemu4v(struct import *import, struct fault *why);
